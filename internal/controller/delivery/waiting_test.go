package delivery

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// crowded is a view of a synthesis that replaces many objects, and whose manifests cannot
// be applied.
func crowded(many int, message string) *model.Composition {
	d := idle()
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u"}
	slices := make([]enov1.ResourceSlice, 1)
	for i := range many {
		for name, deleted := range map[string]bool{"new": false, "old": true} {
			slices[0].Spec.Resources = append(slices[0].Spec.Resources, enov1.Manifest{
				Manifest: fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"%s-%d","namespace":"n"}}`, name, i), Deleted: deleted,
			})
		}
	}
	v := d.NewView(c, slices)
	v.Start()
	for _, it := range v.Items {
		if !it.Tombstone {
			v.Settle(it, enov1.ResourceState{ReconciliationError: &message})
		}
	}

	return v
}

// TestPruneWaitingFollows has the condition follow the states of items.
func TestPruneWaitingFollows(t *testing.T) {
	v := crowded(3, "provided port is already allocated")
	if got := v.PruneWaiting(); !strings.Contains(got, "cannot be applied (provided port is already allocated)") || !strings.HasSuffix(got, "(and 2 more manifests)") {
		t.Errorf("got %q", got)
	}
	if !v.ConcernsWaiting(enov1.ResourceState{}) {
		t.Error("a manifest that is applied changes the condition")
	}
	for _, it := range v.Items {
		if !it.Tombstone {
			v.Settle(it, enov1.ResourceState{Reconciled: true})
		}
	}
	if got := v.PruneWaiting(); got != "" {
		t.Errorf("everything is applied, and it is %q", got)
	}
	if v.ConcernsWaiting(enov1.ResourceState{}) {
		t.Error("a manifest that is applied changes nothing any more")
	}
}

// BenchmarkPruneWaiting has 5,000 manifests that cannot be applied, and 5,000 objects that
// are deleted later.
func BenchmarkPruneWaiting(b *testing.B) {
	v := crowded(5_000, `Service "new" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is out of range`)
	b.ReportAllocs()
	for b.Loop() {
		if text := v.PruneWaiting(); text != "" {
			b.Fatal(text)
		}
	}
}
