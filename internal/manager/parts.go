package manager

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	podgroupcontroller "github.com/arbor-control/arbor/internal/controller/podgroup"
	"github.com/arbor-control/arbor/internal/controller/poolstatus"
	"github.com/arbor-control/arbor/internal/controller/subnet"
	"github.com/arbor-control/arbor/internal/controller/subnetclaim"
	"github.com/arbor-control/arbor/internal/controller/subnetpool"
	"github.com/arbor-control/arbor/internal/controller/subnetpoolclaim"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/view"
	"github.com/arbor-control/arbor/internal/webhook"
	podgroupwebhook "github.com/arbor-control/arbor/internal/webhook/podgroup"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// A part is what --controllers can switch on.
type part struct {
	name string
	// preview parts are off unless they are named: not all of them is there.
	preview bool
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
	{
		name:    "subnets",
		preview: true,
		kinds: []schema.GroupKind{
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetPoolKind},
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetKind},
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetClaimKind},
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetPoolClaimKind},
		},
		scheme:      v1alpha1.AddToScheme,
		controllers: setupSubnets,
	},
}

// setupSubnets starts what serves subnet pools. Status and allocation share a
// view, which is fed while this replica leads.
func setupSubnets(mgr ctrl.Manager) error {
	if err := kube.IndexSubnets(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	pools, m := view.NewPools(), poolstatus.NewMetrics(metrics.Registry)
	feed := view.NewFeed(pools, m.Requeued)
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return feed.Start(ctx, mgr.GetCache()) }))
	if err != nil {
		return err
	}
	if err := subnet.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := subnetclaim.SetupAllocator(mgr, pools, feed); err != nil {
		return err
	}
	if err := subnetclaim.SetupBinder(mgr); err != nil {
		return err
	}
	if err := subnetpoolclaim.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := subnetpool.SetupWithManager(mgr, feed); err != nil {
		return err
	}

	return poolstatus.SetupWithManager(mgr, pools, feed, m)
}

// DefaultParts returns the names of the parts that are on by default.
func DefaultParts() []string {
	var names []string
	for _, p := range parts {
		if !p.preview {
			names = append(names, p.name)
		}
	}

	return names
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
