package subnetpool

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

func TestReleased(t *testing.T) {
	restoring := func(p *v1alpha1.SubnetPool) {
		p.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: "old"}
	}
	deleting := func(p *v1alpha1.SubnetPool) {
		restoring(p)
		p.DeletionTimestamp = new(metav1.Now())
	}
	cases := map[string]struct {
		reason      string
		before, now *v1alpha1.SubnetPool
		want        bool
	}{
		"Same":     {"Nothing has changed.", child(restoring), child(restoring), false},
		"Replaced": {"Another pool has the name.", child(nil), child(func(p *v1alpha1.SubnetPool) { p.UID = "v" }), true},
		"Restored": {"Blocks are kept until the end of a restore.", child(restoring), child(nil), true},
		"Deleting": {"A pool that is being deleted is no longer restored.", child(restoring), child(deleting), true},
		"Finalize": {"It was being deleted before.", child(deleting), child(deleting), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := released.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.now}); got != tc.want {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
		})
	}
}
