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
		want                 time.Duration
	}{
		"Pool":   {"The pool came last.", 3, 20, 20, 7 * time.Minute},
		"Subnet": {"A Subnet came last.", 20, 4, 20, 6 * time.Minute},
		"Claim":  {"A claim came last.", 20, 20, 5, 5 * time.Minute},
		"Over":   {"Nothing has arrived for long enough.", 20, 20, 12, -2 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRestores(10*time.Minute, func(types.NamespacedName) time.Time { return ago(tc.subnet) })
			key := types.NamespacedName{Namespace: "ns", Name: "p"}
			r.now = func() time.Time { return ago(tc.claims) }
			r.claimArrived(key)
			r.now = func() time.Time { return now }
			p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", CreationTimestamp: metav1.NewTime(ago(tc.pool))}}
			if got := r.remaining(p); got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
			r.forget(key)
			if len(r.claims) != 0 {
				t.Error("a pool that is restored is remembered")
			}
		})
	}
}
