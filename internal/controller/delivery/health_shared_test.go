package delivery

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/health"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

// A compositionStore is a client of a cluster with one composition.
type compositionStore struct {
	client.Client

	stored *enov1.Composition
	writes int
}

func (s *compositionStore) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.stored.DeepCopyInto(o.(*enov1.Composition))

	return nil
}

func (s *compositionStore) Status() client.SubResourceWriter { return statusStore{store: s} }

// A statusStore writes the status of a composition.
type statusStore struct {
	client.SubResourceWriter

	store *compositionStore
}

func (s statusStore) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	s.store.stored = o.(*enov1.Composition).DeepCopy()
	s.store.writes++

	return nil
}

// TestSharedHealth has a composition that was unhealthy here, and is delivered by another
// delivery or by two of them from now on.
func TestSharedHealth(t *testing.T) {
	const (
		config  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`
		other   = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"n"}}`
		invalid = `{"kind":"ConfigMap"}`
	)
	before := metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: enov1.ReasonDegraded, Message: "before"}
	shared := metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonShared, Message: "several deliveries share the composition, and none of them knows all objects"}
	for name, tc := range map[string]struct {
		reason    string
		manifests []string
		selector  string
		filter    string
		suspended string
		want      metav1.Condition
	}{
		"Elsewhere": {"The delivery that selects it writes the condition.", []string{config}, "team=other", "true", "", before},
		"Shared":    {"No delivery knows all objects.", []string{config, other}, "", `self.kind == "Secret"`, "", shared},
		"SharedToo": {"The other one reports the same.", []string{config, other}, "", `self.kind != "Secret"`, "", shared},
		"None":      {"The other one may have all manifests.", []string{config}, "", `self.kind == "Secret"`, "", before},
		"Unread":    {"A manifest that cannot be read belongs to no delivery.", []string{config, invalid}, "", `self.kind == "Secret"`, "", before},
		"Suspended": {"All deliveries know that it is suspended.", []string{config, other}, "", `self.kind == "Secret"`, "true", metav1.Condition{
			Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonSuspended, Message: "the health of objects is not evaluated while the composition is suspended",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := idle()
			var err error
			if d.Filter, err = ParseFilter(tc.filter); err != nil {
				t.Fatal(err)
			}
			if d.Selector, err = labels.Parse(tc.selector); err != nil {
				t.Fatal(err)
			}
			c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
			if tc.suspended != "" {
				c.Annotations = map[string]string{enov1.AnnotationSuspend: tc.suspended}
			}
			c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u"}
			meta.SetStatusCondition(&c.Status.Conditions, before)
			store := &compositionStore{stored: c}
			d.Client = store
			all := make([]enov1.ResourceSlice, 1)
			for _, text := range tc.manifests {
				all[0].Spec.Resources = append(all[0].Spec.Resources, enov1.Manifest{Manifest: text})
			}
			v := d.NewView(c, all)
			d.swap(v.Name, v)
			d.Health.SetState(v.Name, objecthealth.Degraded)
			now := time.Unix(1_000_000, 0)
			d.Health.Now = func() time.Time { return now }
			for range 2 {
				now = now.Add(health.Pause)
				if err := d.reportHealth(t.Context(), v.Name); err != nil {
					t.Fatal(err)
				}
			}
			got := *meta.FindStatusCondition(store.stored.Status.Conditions, enov1.ConditionHealthy)
			got.LastTransitionTime = metav1.Time{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if n := d.Health.Unhealthy(); n != 0 {
				t.Errorf("%s\n%d compositions count as unhealthy", tc.reason, n)
			}
			if store.writes > 1 {
				t.Errorf("%s\nthe condition was written %d times", tc.reason, store.writes)
			}
		})
	}
}
