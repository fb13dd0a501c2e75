package release_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
)

// Only a pool that exists has a Subnet: the UID in spec.backs may be that of a backup.
func TestPoolHolding(t *testing.T) {
	child := func(uid types.UID) *v1alpha1.SubnetPool {
		return &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "child", UID: uid}}
	}
	for name, tc := range map[string]struct {
		reason string
		child  *v1alpha1.SubnetPool
		backs  *v1alpha1.PoolReference
		want   types.UID
	}{
		"Same":     {"It was created for the pool.", child("u"), &v1alpha1.PoolReference{Name: "child", UID: "u"}, "u"},
		"Gone":     {"The pool was deleted, or is not restored yet.", nil, &v1alpha1.PoolReference{Name: "child", UID: "u"}, ""},
		"Restored": {"The pool is bound to it later.", child("new"), &v1alpha1.PoolReference{Name: "child", UID: "u"}, ""},
		"Claim":    {"The pool of a SubnetPoolClaim is created later than its block.", child("u"), &v1alpha1.PoolReference{Name: "child"}, ""},
		"Plain":    {"It is for no pool.", child("u"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := release.PoolHolding(tc.child, &v1alpha1.Subnet{Spec: v1alpha1.SubnetSpec{Backs: tc.backs}}); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestClaimHolding(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*release.Facts)
		want   types.UID
	}{
		"Same":     {"It was created for the claim.", func(f *release.Facts) { withClaim(f, "c", 24) }, "c"},
		"Gone":     {"The claim was deleted, or is not restored yet.", func(*release.Facts) {}, ""},
		"Restored": {"The claim adopts it later.", func(f *release.Facts) { withClaim(f, "new", 24) }, ""},
		"Forged":   {"A Subnet that was created by hand can name any claim.", func(f *release.Facts) { withClaim(f, "c", 25) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFacts(false)
			tc.change(&f)
			if got := release.ClaimHolding(f.Claim, f.Subnet); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDecideAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*release.Facts)
		want   int
	}{
		"Late":    {"Its claim may have been deleted before it was judged.", restoredSubnet, 9},
		"Held":    {"A claim has had it.", func(*release.Facts) {}, 0},
		"Over":    {"Time changes nothing any more.", func(f *release.Facts) { restoredSubnet(f); f.Waited = 2 * grace }, 0},
		"NoClaim": {"It is for no claim.", func(f *release.Facts) { restoredSubnet(f); f.Subnet.Spec.ClaimRef = nil }, 0},
		"Backup":  {"It was created for a claim of another pool.", func(f *release.Facts) { restoredSubnet(f); f.Pool.UID = "new" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFacts(false)
			tc.change(&f)
			if got := release.DecideAgain(f); got.Minutes() != float64(tc.want) {
				t.Errorf("%s\ngot %s, want %d minutes", tc.reason, got, tc.want)
			}
		})
	}
}
