package synthesispod

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/synthesis"
)

// cluster has a Composition, its Synthesizer and all namespaces. It records what is written.
type cluster struct {
	client.Client

	composition *enov1.Composition
	synthesizer *enov1.Synthesizer
	created     []client.Object
}

func (c *cluster) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *enov1.Composition:
		c.composition.DeepCopyInto(o)
	case *enov1.Synthesizer:
		c.synthesizer.DeepCopyInto(o)
	default:
		if into.GetObjectKind().GroupVersionKind().Kind != "Namespace" {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
	}

	return nil
}

func (c *cluster) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	c.created = append(c.created, o)

	return nil
}

func (c *cluster) Status() client.SubResourceWriter { return statusOf{cluster: c} }

type statusOf struct {
	client.SubResourceWriter

	cluster *cluster
}

func (s statusOf) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	if c, ok := o.(*enov1.Composition); ok {
		c.DeepCopyInto(s.cluster.composition)
	}

	return nil
}

// TestForbiddenEnvironment has the environment of a Composition change after the scheduler had
// checked it and had begun a synthesis.
func TestForbiddenEnvironment(t *testing.T) {
	const message = `synthesisEnv: variable "BASH_ENV" can make the program of the Synthesizer run other code; remove it, or have the Synthesizer set it in its command`
	cases := map[string]struct {
		reason   string
		scope    tenancy.Scope
		variable string
		pods     int
		results  []enov1.Result
	}{
		"Forbidden": {
			reason: "A pod would run the code of the tenant.", scope: tenancy.Namespace, variable: "BASH_ENV",
			results: []enov1.Result{{Message: message, Severity: enov1.SeverityError}},
		},
		"Harmless": {reason: "Other variables reach the program.", scope: tenancy.Namespace, variable: "STAGE", pods: 1},
		"Cluster":  {reason: "Authors of Compositions are trusted.", scope: tenancy.Cluster, variable: "BASH_ENV", pods: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, s, o := given()
			c.Spec.SynthesisEnv = []enov1.EnvVar{{Name: tc.variable, Value: "/dev/stdin"}}
			o.Rules = tenancy.Rules{Scope: tc.scope}
			fake := &cluster{composition: c, synthesizer: s}
			r := &Reconciler{
				client: fake, reader: fake, options: o, now: time.Now, recorder: &events.FakeRecorder{},
				runner: &synthesis.Runner{Client: fake, Reader: fake, Now: time.Now},
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
				t.Fatal(err)
			}
			if len(fake.created) != tc.pods {
				t.Errorf("%s\n%d pods were created, want %d", tc.reason, len(fake.created), tc.pods)
			}
			for _, o := range fake.created {
				if _, ok := o.(*corev1.Pod); !ok {
					t.Errorf("%s\n%T was created", tc.reason, o)
				}
			}
			if diff := cmp.Diff(tc.results, fake.composition.Status.InFlightSynthesis.Results); diff != "" {
				t.Errorf("%s\nresults: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
