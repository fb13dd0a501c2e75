package release_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
)

func TestCoolingOfClaims(t *testing.T) {
	deleted := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type objects struct {
		subnet *v1alpha1.Subnet
		pool   *v1alpha1.SubnetPool
		claim  *v1alpha1.SubnetClaim
	}
	for name, test := range map[string]struct {
		reason string
		change func(*objects)
		after  time.Duration
		want   time.Duration
	}{
		"Released":     {reason: "the block stays unused for the time that the pool says", want: time.Hour},
		"Later":        {reason: "the time runs from the deletion", after: 50 * time.Minute, want: 10 * time.Minute},
		"Over":         {reason: "the time is over", after: 2 * time.Hour},
		"PoolDeleting": {reason: "the pool waits for its Subnets", change: func(o *objects) { o.pool.DeletionTimestamp = &metav1.Time{Time: deleted} }},
		"PoolGone":     {reason: "nothing can be allocated from it", change: func(o *objects) { o.pool = nil }},
		"NoTime":       {reason: "the pool does not keep blocks unused", change: func(o *objects) { o.pool.Spec.ReuseAfter = nil }},
		"Failed":       {reason: "it never held its block", change: func(o *objects) { o.subnet.Status.Phase = v1alpha1.SubnetFailed }},
		"NotJudged":    {reason: "it never held its block", change: func(o *objects) { o.subnet.Status.Phase = "" }},
		"ClaimIsBack":  {reason: "the claim takes its block back", change: func(o *objects) { o.claim = recordFor("10.0.0.0/24") }},
		"OtherRecord":  {reason: "the claim had another block", change: func(o *objects) { o.claim = recordFor("10.0.1.0/24") }, want: time.Hour},
		"Requested":    {reason: "the claim asks for this block", change: func(o *objects) { o.claim = requestFor("10.0.0.0/24") }},
		"OtherRequest": {reason: "the claim asks for another block", change: func(o *objects) { o.claim = requestFor("10.0.1.0/24") }, want: time.Hour},
		"AnyBlock":     {reason: "the claim may get another block, and this one would be free for all", change: func(o *objects) { o.claim = claimFor(24) }, want: time.Hour},
		"OtherName":    {reason: "the claim of another name waits", change: func(o *objects) { o.claim = requestFor("10.0.0.0/24"); o.claim.Name = "d" }, want: time.Hour},
		"ClaimIsBound": {
			reason: "the claim has a block", want: time.Hour,
			change: func(o *objects) {
				o.claim = recordFor("10.0.0.0/24")
				o.claim.Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, AllocatedCIDR: "10.0.0.0/24"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects{
				subnet: &v1alpha1.Subnet{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", DeletionTimestamp: &metav1.Time{Time: deleted}},
					Spec:       v1alpha1.SubnetSpec{PoolRef: "p", ClusterID: "c", CIDR: "10.0.0.0/24", ClaimRef: &v1alpha1.ClaimReference{Name: "c"}},
					Status:     v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated},
				},
				pool: &v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{ReuseAfter: &metav1.Duration{Duration: time.Hour}}},
			}
			if test.change != nil {
				test.change(&o)
			}
			if got := release.Cooling(release.Facts{Subnet: o.subnet, Pool: o.pool, Claim: o.claim, Now: deleted.Add(test.after)}); got != test.want {
				t.Errorf("%s: it stays unused for %s, want %s", test.reason, got, test.want)
			}
		})
	}
}

func claimFor(length int32) *v1alpha1.SubnetClaim {
	return &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "c", BlockSize: &length},
	}
}

// recordFor returns a claim that had a block before a restore.
func recordFor(block string) *v1alpha1.SubnetClaim {
	c := claimFor(24)
	c.Annotations = map[string]string{v1alpha1.BlockAnnotation: "p/" + block}

	return c
}

// requestFor returns a claim that asks for one exact block.
func requestFor(block string) *v1alpha1.SubnetClaim {
	c := claimFor(24)
	c.Spec.BlockSize, c.Spec.RequestedCIDR = nil, block

	return c
}

func TestCoolingOfPools(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	child := func(change func(*v1alpha1.SubnetPool)) *v1alpha1.SubnetPool {
		p := &v1alpha1.SubnetPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", UID: "u"},
			Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/20", Parent: "parent"},
		}
		if change != nil {
			change(p)
		}

		return p
	}
	living := func(change func(*v1alpha1.Subnet)) v1alpha1.Subnet {
		s := ipamrules.BackingSubnet(child(nil))
		s.Status.Phase, s.Status.PoolUID = v1alpha1.SubnetAllocated, "u"
		if change != nil {
			change(s)
		}

		return *s
	}
	deleted := func(ago time.Duration, change func(*v1alpha1.Subnet)) v1alpha1.Subnet {
		s := living(change)
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
		"Living":    {"It is to be deleted first.", living(nil), parent, nil, 0},
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
			if got := release.Cooling(release.Facts{Subnet: &tc.subnet, Pool: tc.parent, Child: tc.child, Now: now}); got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
