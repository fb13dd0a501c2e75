package subnetpool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A restore ends the grace period after the last of the pool, its Subnets and its
// claims has arrived.
func TestRemaining(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	cases := map[string]struct {
		reason               string
		pool, subnet, claims int
		seen                 int
		want                 time.Duration
	}{
		"Pool":   {"The pool came last.", 3, 20, 20, 3, 7 * time.Minute},
		"Subnet": {"A Subnet came last.", 20, 4, 20, 20, 6 * time.Minute},
		"Claim":  {"A claim came last.", 20, 20, 5, 20, 5 * time.Minute},
		"Over":   {"Nothing has arrived for long enough.", 20, 20, 12, 20, -2 * time.Minute},
		"Ahead":  {"The clock of the manager is an hour ahead of that of the API server.", 62, 100, 100, 2, 8 * time.Minute},
		"Behind": {"The clock of the manager is two minutes behind.", 1, 100, 100, 3, 9 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRestores(10*time.Minute, func(types.NamespacedName) time.Time { return ago(tc.subnet) })
			key := types.NamespacedName{Namespace: "ns", Name: "p"}
			r.now = func() time.Time { return ago(tc.claims) }
			r.claimArrived(key)
			p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", CreationTimestamp: metav1.NewTime(ago(tc.pool))}}
			r.now = func() time.Time { return ago(tc.seen) }
			r.remaining(p)
			r.now = func() time.Time { return now }
			if got := r.remaining(p); got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
			p.UID = "again"
			if got := r.remaining(p); got != r.grace {
				t.Errorf("a pool that was deleted and restored again waits for %s", got)
			}
			r.forget(key)
			if len(r.claims)+len(r.seen) != 0 {
				t.Error("a pool that is restored is remembered")
			}
		})
	}
}
