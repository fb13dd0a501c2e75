package manager

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	podgroupcontroller "github.com/arbor-control/arbor/internal/controller/podgroup"
	"github.com/arbor-control/arbor/internal/webhook"
	podgroupwebhook "github.com/arbor-control/arbor/internal/webhook/podgroup"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// A part is what --controllers can switch on.
type part struct {
	name string
	// kinds whose definitions it needs.
	kinds []schema.GroupKind
	// scheme of those kinds.
	scheme func(*runtime.Scheme) error
	// controllers starts them with the manager.
	controllers func(ctrl.Manager) error
	// webhooks admit the kinds.
	webhooks []hook
}

// A hook is a webhook and what answers it.
type hook struct {
	serving.Webhook

	handler func(*webhook.Metrics) admission.Handler
	// refused returns an object that it must refuse; see Probe.
	refused func() client.Object
}

// parts is the list of everything that Arbor can run.
var parts = []part{
	{
		name:        "podgroups",
		kinds:       []schema.GroupKind{{Group: v2alpha2.GroupVersion.Group, Kind: v2alpha2.PodGroupKind}},
		scheme:      v2alpha2.AddToScheme,
		controllers: podgroupcontroller.SetupWithManager,
		webhooks: []hook{{
			Webhook: podgroupwebhook.Registration,
			handler: func(m *webhook.Metrics) admission.Handler { return podgroupwebhook.NewHandler(m) },
			refused: func() client.Object {
				return &v2alpha2.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "arbor-probe"},
					Spec:       v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "REFUSED"}}},
				}
			},
		}},
	},
}

// Parts returns the names that --controllers knows.
func Parts() []string {
	names := make([]string, 0, len(parts))
	for _, p := range parts {
		names = append(names, p.name)
	}

	return names
}

// selected returns the parts of these names.
func selected(names []string) []part {
	var on []part
	for _, p := range parts {
		if slices.Contains(names, p.name) {
			on = append(on, p)
		}
	}

	return on
}

func (p part) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(p.kinds))
	for _, k := range p.kinds {
		crd, ok := crds.ByKind(k.Group, k.Kind)
		if !ok {
			return nil, fmt.Errorf("there is no definition of %s", k)
		}
		all = append(all, crd)
	}

	return all, nil
}
