package subnetpool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

func TestCooling(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deleted := func(ago time.Duration, change func(*v1alpha1.Subnet)) v1alpha1.Subnet {
		s := backingIn(v1alpha1.SubnetAllocated, "u", change)
		s.DeletionTimestamp = new(metav1.NewTime(now.Add(-ago)))

		return s
	}
	recent := deleted(time.Minute, nil)
	parent := &v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{ReuseAfter: &metav1.Duration{Duration: time.Hour}}}
	ending := parent.DeepCopy()
	ending.DeletionTimestamp = new(metav1.NewTime(now))
	cases := map[string]struct {
		reason        string
		subnet        v1alpha1.Subnet
		parent, child *v1alpha1.SubnetPool
		want          time.Duration
	}{
		"Recent":    {"The block stays unused for an hour.", recent, parent, nil, 59 * time.Minute},
		"Over":      {"The hour is over.", deleted(2*time.Hour, nil), parent, nil, 0},
		"Living":    {"It is to be deleted first.", backingIn(v1alpha1.SubnetAllocated, "u", nil), parent, nil, 0},
		"Pending":   {"It never held the block.", deleted(time.Minute, func(s *v1alpha1.Subnet) { s.Status.Phase = "" }), parent, nil, 0},
		"Claim":     {"So does the block of a SubnetPoolClaim.", deleted(time.Minute, func(s *v1alpha1.Subnet) { s.Spec.ClaimRef = &v1alpha1.ClaimReference{} }), parent, nil, 59 * time.Minute},
		"Unset":     {"The parent has no spec.reuseAfter.", recent, &v1alpha1.SubnetPool{}, nil, 0},
		"Gone":      {"The parent does not exist.", recent, nil, nil, 0},
		"Deleting":  {"The parent allocates no more blocks.", recent, ending, nil, 0},
		"Again":     {"The pool was created again.", recent, parent, child(nil), 0},
		"Elsewhere": {"The new pool of the name has other addresses.", recent, parent, child(func(p *v1alpha1.SubnetPool) { p.Spec.CIDR = "10.9.0.0/20" }), 59 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := cooling(&tc.subnet, tc.parent, tc.child, now); got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
