package subnetpool

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

func child(change func(*v1alpha1.SubnetPool)) *v1alpha1.SubnetPool {
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
	s := backingSubnet(child(nil))
	s.Status.Phase, s.Status.PoolUID = phase, uid
	if change != nil {
		change(s)
	}

	return *s
}

func TestChoose(t *testing.T) {
	const pending, allocated, failed = v1alpha1.SubnetPending, v1alpha1.SubnetAllocated, v1alpha1.SubnetFailed
	opened := func(p *v1alpha1.SubnetPool) { p.Status.UID, p.Status.CIDR = p.UID, p.Spec.CIDR }
	claimed := func(p *v1alpha1.SubnetPool) { p.Labels = map[string]string{v1alpha1.PoolClaimLabel: "child"} }
	owned := func(p *v1alpha1.SubnetPool) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.SubnetPoolClaimKind, Name: strings.Repeat("x", 64)}}
	}
	deleting := func(s *v1alpha1.Subnet) { s.DeletionTimestamp = new(metav1.Now()) }
	elsewhere := func(s *v1alpha1.Subnet) { s.Spec.CIDR = "10.9.0.0/20" }
	bare := func(s *v1alpha1.Subnet) { s.Finalizers = nil }

	cases := map[string]struct {
		reason  string
		pool    *v1alpha1.SubnetPool
		subnets []v1alpha1.Subnet
		want    step
	}{
		"None":        {"A child pool needs a Subnet.", child(nil), nil, stepCreate},
		"Claimed":     {"The claim of a SubnetPoolClaim gets the Subnet.", child(claimed), nil, stepNone},
		"LongName":    {"So does that of a claim whose name is no label value.", child(owned), nil, stepNone},
		"Open":        {"The Subnet of an open pool was deleted while Arbor was not installed.", child(opened), nil, stepCreate},
		"OpenFailed":  {"It did not get its block back, but may get it now.", child(opened), []v1alpha1.Subnet{backingIn(failed, "", nil)}, stepRetry},
		"OpenClaimed": {"The claim of a SubnetPoolClaim gets the Subnet, also if it had one.", child(func(p *v1alpha1.SubnetPool) { opened(p); claimed(p) }), nil, stepNone},
		"OpenMore":    {"An open pool that asks for other addresses keeps its block.", child(func(p *v1alpha1.SubnetPool) { opened(p); p.Spec.CIDR = "10.9.0.0/20" }), []v1alpha1.Subnet{backingIn(allocated, "u", nil)}, stepNone},
		"Pending":     {"A Subnet that is not decided may still be Allocated.", child(nil), []v1alpha1.Subnet{backingIn(pending, "", nil)}, stepNone},
		"Bound":       {"There is nothing left to do.", child(nil), []v1alpha1.Subnet{backingIn(allocated, "u", nil)}, stepNone},
		"Bare":        {"A bound Subnet without the finalizer gets it.", child(nil), []v1alpha1.Subnet{backingIn(allocated, "u", bare)}, stepBind},
		"Unbound":     {"The Subnet of a SubnetPoolClaim is bound to the pool.", child(claimed), []v1alpha1.Subnet{backingIn(allocated, "", nil)}, stepBind},
		"Restored":    {"A Subnet from a backup has the UID of the old pool.", child(nil), []v1alpha1.Subnet{backingIn(allocated, "old", nil)}, stepBind},
		"Failed":      {"A Failed Subnet is final, another one may be Allocated.", child(nil), []v1alpha1.Subnet{backingIn(failed, "", nil)}, stepRetry},
		"FailedClaim": {"That of a claim is replaced by the allocator.", child(claimed), []v1alpha1.Subnet{backingIn(failed, "", nil)}, stepNone},
		"Deleting":    {"A Subnet that is being deleted backs no pool, and keeps others away.", child(nil), []v1alpha1.Subnet{backingIn(allocated, "", deleting)}, stepNone},
		"Elsewhere":   {"The pool asked for other addresses first. It has one block, which it keeps.", child(nil), []v1alpha1.Subnet{backingIn(allocated, "u", elsewhere)}, stepNone},
		"Undecided":   {"It is not decided whether the pool gets the block that it asked for first.", child(nil), []v1alpha1.Subnet{backingIn(pending, "", elsewhere)}, stepNone},
		"Refused":     {"It did not get the block that it asked for first.", child(nil), []v1alpha1.Subnet{backingIn(failed, "", elsewhere)}, stepRetry},
		"Former":      {"A pool of this name, which is gone, had another block.", child(nil), []v1alpha1.Subnet{backingIn(allocated, "old", elsewhere)}, stepCreate},
		"Second":      {"One Subnet that fits is enough.", child(nil), []v1alpha1.Subnet{backingIn(failed, "", nil), backingIn(allocated, "u", nil)}, stepNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, got := choose(tc.pool, netip.MustParsePrefix(rangeOf(tc.pool)), tc.subnets); got != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// A backing Subnet is protected from its creation, and its clusterID is a label value
// whatever the name of the pool.
func TestBackingSubnet(t *testing.T) {
	s := backingSubnet(child(nil))
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
	open := backingSubnet(child(func(p *v1alpha1.SubnetPool) {
		p.Status.UID, p.Status.CIDR, p.Status.Parent, p.Spec.CIDR = p.UID, p.Spec.CIDR, "parent", "10.0.0.0/24"
	}))
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("an open pool needs all addresses that it has (-want +got):\n%s", diff)
	}
	long := backingSubnet(child(func(p *v1alpha1.SubnetPool) { p.Name = strings.Repeat("x", 200) }))
	if id := long.Spec.ClusterID; len(id) > 63 || id == s.Spec.ClusterID || long.Spec.Backs.Name != strings.Repeat("x", 200) {
		t.Errorf("a long name has the clusterID %s", id)
	}
}

func TestProtected(t *testing.T) {
	owner := metav1.OwnerReference{Kind: v1alpha1.SubnetPoolClaimKind, Name: "claim", UID: "c"}
	other := metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "x"}
	long := metav1.OwnerReference{Kind: v1alpha1.SubnetPoolClaimKind, Name: strings.Repeat("x", 64), UID: "c"}
	cases := map[string]struct {
		reason string
		has    metav1.ObjectMeta
		want   metav1.ObjectMeta
	}{
		"New": {
			"The finalizer and the UID are written together.",
			metav1.ObjectMeta{UID: "u"},
			metav1.ObjectMeta{UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "u"}},
		},
		"Restored": {
			"The UID in a backup stays until the restore is over.",
			metav1.ObjectMeta{UID: "u", Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "old"}},
			metav1.ObjectMeta{UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "old"}},
		},
		"LongName": {
			"The owner reference stays if a label cannot replace it.",
			metav1.ObjectMeta{UID: "u", OwnerReferences: []metav1.OwnerReference{long}},
			metav1.ObjectMeta{
				UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "u"},
				OwnerReferences: []metav1.OwnerReference{long},
			},
		},
		"Owned": {
			"The label replaces the owner reference to the claim, and no other.",
			metav1.ObjectMeta{Name: "claim-7kd2p", UID: "u", OwnerReferences: []metav1.OwnerReference{owner, other}},
			metav1.ObjectMeta{
				Name: "claim-7kd2p", UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "u"},
				Labels: map[string]string{v1alpha1.PoolClaimLabel: "claim"}, OwnerReferences: []metav1.OwnerReference{other},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SubnetPool{ObjectMeta: tc.has}
			if !protected(p) {
				t.Errorf("%s\nnothing is written", tc.reason)
			}
			if diff := cmp.Diff(tc.want, p.ObjectMeta); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if protected(p) {
				t.Error("it is written twice")
			}
		})
	}
}
