package ipam_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

func childPool(change func(*v1alpha1.SubnetPool)) *v1alpha1.SubnetPool {
	p := &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", UID: "u", Generation: 1},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/20", Parent: "parent"},
	}
	if change != nil {
		change(p)
	}

	return p
}

func backingIn(phase v1alpha1.SubnetPhase, uid types.UID, change func(*v1alpha1.Subnet)) v1alpha1.Subnet {
	s := ipam.BackingSubnet(childPool(nil))
	s.Status.Phase, s.Status.PoolUID = phase, uid
	if change != nil {
		change(s)
	}

	return *s
}

func TestDecideBacking(t *testing.T) {
	const pending, allocated, failed = v1alpha1.SubnetPending, v1alpha1.SubnetAllocated, v1alpha1.SubnetFailed
	opened := func(p *v1alpha1.SubnetPool) { p.Status.UID, p.Status.CIDR = p.UID, p.Spec.CIDR }
	claimed := func(p *v1alpha1.SubnetPool) { p.Labels = map[string]string{v1alpha1.PoolClaimLabel: "child"} }
	owned := func(p *v1alpha1.SubnetPool) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.SubnetPoolClaimKind, Name: strings.Repeat("x", 64)}}
	}
	deleting := func(s *v1alpha1.Subnet) { s.DeletionTimestamp = new(metav1.Now()) }
	elsewhere := func(s *v1alpha1.Subnet) { s.Spec.CIDR = "10.9.0.0/20" }
	foreign := func(s *v1alpha1.Subnet) { s.UID, s.Status.UID = "s", "old" }
	bare := func(s *v1alpha1.Subnet) { s.Finalizers = nil }

	cases := map[string]struct {
		reason  string
		pool    *v1alpha1.SubnetPool
		subnets []v1alpha1.Subnet
		want    ipam.BackingStep
	}{
		"None":        {"A child pool needs a Subnet.", childPool(nil), nil, ipam.CreateBlock},
		"Claimed":     {"The claim of a SubnetPoolClaim gets the Subnet.", childPool(claimed), nil, ipam.KeepBlock},
		"LongName":    {"So does that of a claim whose name is not a label value.", childPool(owned), nil, ipam.KeepBlock},
		"Open":        {"The Subnet of an open pool was deleted while Arbor was not installed.", childPool(opened), nil, ipam.CreateBlock},
		"OpenFailed":  {"It did not get its block back, but may get it now.", childPool(opened), []v1alpha1.Subnet{backingIn(failed, "", nil)}, ipam.RetryBlock},
		"OpenClaimed": {"The claim of a SubnetPoolClaim gets the Subnet, also if it had one.", childPool(func(p *v1alpha1.SubnetPool) { opened(p); claimed(p) }), nil, ipam.KeepBlock},
		"OpenMore":    {"An open pool that asks for other addresses keeps its block.", childPool(func(p *v1alpha1.SubnetPool) { opened(p); p.Spec.CIDR = "10.9.0.0/20" }), []v1alpha1.Subnet{backingIn(allocated, "u", nil)}, ipam.KeepBlock},
		"Pending":     {"A Subnet that is not decided may still be Allocated.", childPool(nil), []v1alpha1.Subnet{backingIn(pending, "", nil)}, ipam.KeepBlock},
		"Bound":       {"There is nothing left to do.", childPool(nil), []v1alpha1.Subnet{backingIn(allocated, "u", nil)}, ipam.KeepBlock},
		"Bare":        {"A bound Subnet without the finalizer gets it.", childPool(nil), []v1alpha1.Subnet{backingIn(allocated, "u", bare)}, ipam.BindBlock},
		"Unbound":     {"The Subnet of a SubnetPoolClaim is bound to the pool.", childPool(claimed), []v1alpha1.Subnet{backingIn(allocated, "", nil)}, ipam.BindBlock},
		"Restored":    {"A Subnet from a backup has the UID of the old pool.", childPool(nil), []v1alpha1.Subnet{backingIn(allocated, "old", nil)}, ipam.BindBlock},
		"Foreign":     {"The status of a backup counts as none, and is about to be reset.", childPool(nil), []v1alpha1.Subnet{backingIn(allocated, "old", foreign)}, ipam.KeepBlock},
		"Failed":      {"A Failed Subnet is final, another one may be Allocated.", childPool(nil), []v1alpha1.Subnet{backingIn(failed, "", nil)}, ipam.RetryBlock},
		"FailedClaim": {"That of a claim is replaced by the allocator.", childPool(claimed), []v1alpha1.Subnet{backingIn(failed, "", nil)}, ipam.KeepBlock},
		"Deleting":    {"A Subnet that is being deleted backs no pool, and still reserves its addresses.", childPool(nil), []v1alpha1.Subnet{backingIn(allocated, "", deleting)}, ipam.KeepBlock},
		"Elsewhere":   {"The pool asked for other addresses first. It has one block, which it keeps.", childPool(nil), []v1alpha1.Subnet{backingIn(allocated, "u", elsewhere)}, ipam.KeepBlock},
		"Undecided":   {"It is not decided whether the pool gets the block that it asked for first.", childPool(nil), []v1alpha1.Subnet{backingIn(pending, "", elsewhere)}, ipam.KeepBlock},
		"Refused":     {"It did not get the block that it asked for first.", childPool(nil), []v1alpha1.Subnet{backingIn(failed, "", elsewhere)}, ipam.RetryBlock},
		"Former":      {"A pool of this name, which is gone, had another block.", childPool(nil), []v1alpha1.Subnet{backingIn(allocated, "old", elsewhere)}, ipam.CreateBlock},
		"Second":      {"One Subnet that fits is enough.", childPool(nil), []v1alpha1.Subnet{backingIn(failed, "", nil), backingIn(allocated, "u", nil)}, ipam.KeepBlock},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, got := ipam.DecideBacking(tc.pool, netip.MustParsePrefix(ipam.BackedRange(tc.pool)), tc.subnets); got != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// A backing Subnet is protected from its creation, and its clusterID is a label value
// whatever the name of the pool.
func TestBackingSubnet(t *testing.T) {
	s := ipam.BackingSubnet(childPool(nil))
	want := &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pool.child", Finalizers: []string{v1alpha1.Finalizer},
			Labels: map[string]string{v1alpha1.ClusterIDLabel: "pool.child"},
		},
		Spec: v1alpha1.SubnetSpec{
			PoolRef: "parent", CIDR: "10.0.0.0/20", ClusterID: "pool.child", Backs: &v1alpha1.PoolReference{Name: "child", UID: "u"},
		},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	open := ipam.BackingSubnet(childPool(func(p *v1alpha1.SubnetPool) {
		p.Status.UID, p.Status.CIDR, p.Status.Parent, p.Spec.CIDR = p.UID, p.Spec.CIDR, "parent", "10.0.0.0/24"
	}))
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("an open pool needs all addresses that it has (-want +got):\n%s", diff)
	}
	long := ipam.BackingSubnet(childPool(func(p *v1alpha1.SubnetPool) { p.Name = strings.Repeat("x", 200) }))
	if id := long.Spec.ClusterID; len(id) > 63 || id == s.Spec.ClusterID || long.Spec.Backs.Name != strings.Repeat("x", 200) {
		t.Errorf("a long name has the clusterID %s", id)
	}
}
