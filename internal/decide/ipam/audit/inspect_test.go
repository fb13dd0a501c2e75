package audit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

var deleted = metav1.Unix(1767225600, 0)

// A world is an estate that a case changes a little.
type world struct{ audit.Inventory }

func find[T any](all []T, name string, of func(*T) string) *T {
	for i := range all {
		if of(&all[i]) == name {
			return &all[i]
		}
	}
	panic("there is no " + name)
}

func (w *world) pool(name string) *v1alpha1.SubnetPool {
	return find(w.Pools, name, func(o *v1alpha1.SubnetPool) string { return o.Name })
}

func (w *world) subnet(name string) *v1alpha1.Subnet {
	return find(w.Subnets, name, func(o *v1alpha1.Subnet) string { return o.Name })
}

func (w *world) claim(name string) *v1alpha1.SubnetClaim {
	return find(w.Claims, name, func(o *v1alpha1.SubnetClaim) string { return o.Name })
}

func (w *world) poolClaim(name string) *v1alpha1.SubnetPoolClaim {
	return find(w.PoolClaims, name, func(o *v1alpha1.SubnetPoolClaim) string { return o.Name })
}

func (w *world) lose(name string) {
	w.Pools = slices.DeleteFunc(w.Pools, func(o v1alpha1.SubnetPool) bool { return "pool "+o.Name == name })
	w.Subnets = slices.DeleteFunc(w.Subnets, func(o v1alpha1.Subnet) bool { return "subnet "+o.Name == name })
	w.Claims = slices.DeleteFunc(w.Claims, func(o v1alpha1.SubnetClaim) bool { return "claim "+o.Name == name })
	w.PoolClaims = slices.DeleteFunc(w.PoolClaims, func(o v1alpha1.SubnetPoolClaim) bool { return "poolclaim "+o.Name == name })
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "net", Name: name, UID: types.UID("uid-" + name), Generation: 1}
}

func subnetOf(poolName, name, block string, phase v1alpha1.SubnetPhase) v1alpha1.Subnet {
	return v1alpha1.Subnet{
		ObjectMeta: meta(name),
		Spec:       v1alpha1.SubnetSpec{PoolRef: poolName, CIDR: block, ClusterID: "of-" + name},
		Status:     v1alpha1.SubnetStatus{Phase: phase},
	}
}

func takenFor(claim string, s v1alpha1.Subnet) v1alpha1.Subnet {
	s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: claim, UID: types.UID("uid-" + claim)}

	return s
}

func bound(poolName, name, subnet, block string) v1alpha1.SubnetClaim {
	return v1alpha1.SubnetClaim{
		ObjectMeta: meta(name),
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: poolName, ClusterID: name, BlockSize: new(int32(24))},
		Status:     v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, SubnetRef: subnet, AllocatedCIDR: block},
	}
}

func ownedBy(poolClaim string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: v1alpha1.SubnetPoolClaimKind, Name: poolClaim, UID: types.UID("uid-" + poolClaim), Controller: new(true)}}
}

// counted is an open pool with the status that belongs on it when Subnets, named with
// their owners, and child pools are taken from it.
func counted(name, block, parent string, subnets map[string]string, children ...string) v1alpha1.SubnetPool {
	p := open(unwritten(name, block, parent))
	count(&p, subnets, children...)

	return p
}

// closed is a pool that Arbor has not opened yet.
func closed(name, block, parent string, children ...string) v1alpha1.SubnetPool {
	p := unwritten(name, block, parent)
	count(&p, nil, children...)

	return p
}

func count(p *v1alpha1.SubnetPool, subnets map[string]string, children ...string) {
	prefix := netip.MustParsePrefix(p.Spec.CIDR)
	all, err := cidr.New(prefix)
	own, _ := cidr.New(prefix)
	for s := range subnets {
		err = errors.Join(err, all.AllocateExact(netip.MustParsePrefix(s)), own.AllocateExact(netip.MustParsePrefix(s)))
	}
	for _, c := range children {
		err = errors.Join(err, all.AllocateExact(netip.MustParsePrefix(c)))
	}
	if err != nil {
		panic(err)
	}
	p.Status = ipamrules.PoolStatus(p, ipamrules.PoolFigures{All: all, Own: own, Delegated: len(children), Listed: subnets}, metav1.Time{})
}

// healthy is an estate with all that there can be: a root, a child pool of a
// SubnetPoolClaim and one made by hand, each with the Subnet that holds its block,
// Subnets with and without claims, one that failed, and another namespace
// with the same addresses.
func healthy() *world {
	w := &world{audit.Inventory{
		Pools: []v1alpha1.SubnetPool{
			counted("root", "10.0.0.0/16", "", map[string]string{"10.0.0.0/24": "of-a"}, "10.0.16.0/20", "10.0.32.0/20"),
			counted("lab", "10.0.16.0/20", "root", map[string]string{"10.0.16.0/24": "of-b"}),
			counted("hand", "10.0.32.0/20", "root", nil),
			counted("six", "fd00::/48", "", map[string]string{"fd00::/64": "of-c"}),
		},
		Subnets: []v1alpha1.Subnet{
			takenFor("team", subnetOf("root", "a", "10.0.0.0/24", v1alpha1.SubnetAllocated)),
			takenFor("lab", subnetOf("root", "held", "10.0.16.0/20", v1alpha1.SubnetAllocated)),
			takenFor("gone", subnetOf("root", "failed", "10.0.0.0/17", v1alpha1.SubnetFailed)),
			backing("hand", "10.0.32.0/20"),
			subnetOf("lab", "b", "10.0.16.0/24", v1alpha1.SubnetAllocated),
			subnetOf("six", "c", "fd00::/64", v1alpha1.SubnetAllocated),
		},
		Claims:     []v1alpha1.SubnetClaim{bound("root", "team", "a", "10.0.0.0/24"), bound("root", "lab", "held", "10.0.16.0/20")},
		PoolClaims: []v1alpha1.SubnetPoolClaim{{ObjectMeta: meta("lab"), Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "root", DesiredBlockSize: 20}, Status: v1alpha1.SubnetPoolClaimStatus{Phase: v1alpha1.ClaimBound, BoundPoolName: "lab"}}},
	}}
	w.pool("lab").Labels, w.claim("lab").Labels = map[string]string{v1alpha1.PoolClaimLabel: "lab"}, map[string]string{v1alpha1.PoolClaimLabel: "lab"}
	held := w.subnet("held")
	held.Finalizers, held.Spec.Backs, held.Status.PoolUID = []string{v1alpha1.Finalizer}, &v1alpha1.PoolReference{Name: "lab"}, "uid-lab"
	hand := w.pool("hand")
	hand.Spec.Parent, hand.Labels = "", map[string]string{v1alpha1.ParentLabel: "root"}
	elsewhere := counted("elsewhere", "10.0.0.0/16", "", nil)
	elsewhere.Namespace = "other"
	w.Pools = append(w.Pools, elsewhere)

	return w
}

func said(all []audit.Finding) []string {
	var lines []string
	for _, f := range all {
		lines = append(lines, fmt.Sprintf("%s %s %s/%s %s %s=%s: %s (%s)", f.Severity, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Reason, f.Field, f.Value, f.Message, f.Fix))
	}

	return lines
}

func TestInspect(t *testing.T) {
	const (
		allocated = v1alpha1.SubnetAllocated
		manager   = " (see whether a manager runs with --controllers=subnets)"
		another   = " (delete the claim and make another)"
		inUse     = " (see which addresses are in use, then delete the claim and make another)"
		whoUses   = " (see who uses it; delete the Subnet, and its claim, if nobody does)"
		other     = " (choose other addresses for one of them, or delete it)"
		migrate   = " (stop the manager, and run arbor pools migrate)"
		whoShares = " (see who uses these addresses, and delete the claim of the other)"
	)
	recount := func(pool string) string {
		return " (have it counted anew: POST /recalculate?namespace=net&pool=" + pool + " to the manager)"
	}
	add := func(s ...v1alpha1.Subnet) func(*world) {
		return func(w *world) { w.Subnets = append(w.Subnets, s...) }
	}

	cases := map[string]struct {
		reason string
		change func(w *world)
		want   []string
	}{
		"Healthy": {reason: "Where all is well nothing is said.", change: func(*world) {}},

		"Overlap": {
			reason: "Two Allocated Subnets have the same addresses.",
			change: add(subnetOf("root", "x", "10.0.0.128/25", allocated)),
			want:   []string{"error Subnet net/x Overlap spec.cidr=10.0.0.128/25: 10.0.0.128/25 overlaps 10.0.0.0/24 of Subnet a, and both are Allocated" + whoShares},
		},
		"OverlapAround": {
			reason: "Whichever is larger, the smaller one is named with it.",
			change: add(subnetOf("root", "x", "10.0.0.0/23", allocated)),
			want:   []string{"error Subnet net/a Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/23 of Subnet x, and both are Allocated" + whoShares},
		},
		"OverlapChain": {
			reason: "Of three, each is named, and nobody twice.",
			change: add(subnetOf("root", "x", "10.0.0.0/24", allocated), subnetOf("root", "y", "10.0.0.0/26", allocated)),
			want: []string{
				"error Subnet net/x Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet a, and both are Allocated" + whoShares,
				"error Subnet net/y Overlap spec.cidr=10.0.0.0/26: 10.0.0.0/26 overlaps 10.0.0.0/24 of Subnet x, and both are Allocated" + whoShares,
			},
		},
		"OverlapNoPool": {
			reason: "Whether the pool is there or not.",
			change: add(subnetOf("gone", "x", "10.0.0.0/24", allocated), subnetOf("gone", "y", "10.0.0.0/24", allocated)),
			want: []string{
				"error Subnet net/x PoolNotFound spec.poolRef=gone: its pool gone does not exist (make pool gone again, with a CIDR that contains 10.0.0.0/24)",
				"error Subnet net/y PoolNotFound spec.poolRef=gone: its pool gone does not exist (make pool gone again, with a CIDR that contains 10.0.0.0/24)",
				"error Subnet net/y Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet x, and both are Allocated" + whoShares,
			},
		},
		"OverlapFailed": {reason: "What failed has nothing.", change: add(subnetOf("root", "x", "10.0.0.0/25", v1alpha1.SubnetFailed))},
		"OverlapPending": {
			reason: "What waits has nothing yet: it will fail.",
			change: add(subnetOf("root", "x", "10.0.0.0/25", v1alpha1.SubnetPending)),
			want:   []string{"warning Subnet net/x NotJudged status.phase=Pending: it was not judged yet, so nobody may use it" + manager},
		},
		"OverlapNeighbours": {
			reason: "Neighbours share nothing.",
			change: func(w *world) {
				w.Subnets = append(w.Subnets, subnetOf("root", "x", "10.0.1.0/24", allocated))
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a", "10.0.1.0/24": "of-x"}, "10.0.16.0/20", "10.0.32.0/20")
			},
		},
		"Delegated": {
			reason: "A Subnet lies in what a child pool hands out.",
			change: add(subnetOf("root", "x", "10.0.32.0/24", allocated)),
			want:   []string{"error Subnet net/x Delegated spec.cidr=10.0.32.0/24: 10.0.32.0/24 overlaps 10.0.32.0/20 of the child pool hand, which hands it out too (see who uses these addresses; delete the Subnet, or pool hand)"},
		},
		"DelegatedAround": {
			reason: "Or around it.",
			change: add(subnetOf("root", "x", "10.0.32.0/19", allocated)),
			want:   []string{"error Subnet net/x Delegated spec.cidr=10.0.32.0/19: 10.0.32.0/19 overlaps 10.0.32.0/20 of the child pool hand, which hands it out too (see who uses these addresses; delete the Subnet, or pool hand)"},
		},
		"DelegatedSame": {
			reason: "The very block of a pool that was made by hand is nobody else's. It counts once, as delegated.",
			change: add(subnetOf("root", "x", "10.0.32.0/20", allocated)),
			want:   []string{"error Subnet net/x Delegated spec.cidr=10.0.32.0/20: 10.0.32.0/20 overlaps 10.0.32.0/20 of the child pool hand, which hands it out too (see who uses these addresses; delete the Subnet, or pool hand)"},
		},

		"DelegatedHeld": {
			reason: "In the block of a claimed pool it is said once, not of the Subnet that holds the block too.",
			change: add(subnetOf("root", "x", "10.0.17.0/24", allocated), subnetOf("root", "y", "10.0.0.0/18", allocated)),
			want: []string{
				"error Subnet net/a Overlap spec.cidr=10.0.0.0/24: 10.0.0.0/24 overlaps 10.0.0.0/18 of Subnet y, and both are Allocated" + whoShares,
				"error Subnet net/x Overlap spec.cidr=10.0.17.0/24: 10.0.17.0/24 overlaps 10.0.0.0/18 of Subnet y, and both are Allocated" + whoShares,
				"error Subnet net/x Delegated spec.cidr=10.0.17.0/24: 10.0.17.0/24 overlaps 10.0.16.0/20 of the child pool lab, which hands it out too (see who uses these addresses; delete the Subnet, or pool lab)",
				"error Subnet net/y Delegated spec.cidr=10.0.0.0/18: 10.0.0.0/18 overlaps 10.0.16.0/20 of the child pool lab, which hands it out too (see who uses these addresses; delete the Subnet, or pool lab)",
			},
		},

		"PoolRule": {
			reason: "Pools keep to their rules.",
			change: func(w *world) { w.pool("lab").Spec.MaxBlockSize = new(int32(33)) },
			want:   []string{"error SubnetPool net/lab InvalidBlockSize spec.maxBlockSize=33: IPv4 has no prefix of length 33 (choose a length of at most 32)"},
		},
		"PoolWarning": {
			reason: "What the rules warn of is a warning.",
			change: func(w *world) { w.pool("lab").Spec.MaxBlockSize = new(int32(16)) },
			want:   []string{"warning SubnetPool net/lab Warning spec.maxBlockSize=: no block of at most /16 fits into 10.0.16.0/20, so every claim will fail ()"},
		},
		"PoolLimit": {reason: "What they allow is not.", change: func(w *world) { w.pool("lab").Spec.MaxBlockSize = new(int32(32)) }},
		"PoolUnmasked": {
			reason: "A pool that is no prefix should say so of itself.",
			change: func(w *world) { w.pool("six").Spec.CIDR = "fd00::1/48"; w.lose("subnet c") },
			want: []string{
				"error SubnetPool net/six NotMasked spec.cidr=fd00::1/48: fd00::1/48 has bits set behind its length (write fd00::/48)",
				"error SubnetPool net/six StatusDiffers status.allocatedCount=1: a recount finds that allocatedCount is 0, not 1, freeCountBySize[48] is absent, not 0, allocatableCountBySize[48] is absent, not 0, fragmentationPercent is 0, not 49, allocatedCIDRs[fd00::/64] is absent, not of-c" + recount("six"),
				"error SubnetPool net/six ConditionDiffers status.conditions[Ready]=True: Ready is True, but should be False: fd00::1/48 has bits set behind its length: write fd00::/48" + recount("six"),
			},
		},
		"Roots": {
			reason: "Roots that overlap are both wrong.",
			change: func(w *world) { w.Pools = append(w.Pools, counted("x", "10.0.255.0/24", "", nil)) },
			want: []string{
				"error SubnetPool net/root Overlap spec.cidr=10.0.0.0/16: 10.0.0.0/16 overlaps 10.0.255.0/24 of pool x, which is a root pool of this namespace too (choose other addresses, or set spec.parent if one is taken from the other)",
				"error SubnetPool net/x Overlap spec.cidr=10.0.255.0/24: 10.0.255.0/24 overlaps 10.0.0.0/16 of pool root, which is a root pool of this namespace too (choose other addresses, or set spec.parent if one is taken from the other)",
			},
		},
		"RootsApart": {reason: "Those that do not are fine.", change: func(w *world) { w.Pools = append(w.Pools, counted("x", "10.1.0.0/16", "", nil)) }},
		"Outside": {
			reason: "A child outside of its parent is said once, of the child.",
			change: func(w *world) { w.Pools = append(w.Pools, closed("x", "10.1.0.0/16", "root")) },
			want:   []string{"error SubnetPool net/x OutsideParent spec.cidr=10.1.0.0/16: 10.1.0.0/16 is not inside of 10.0.0.0/16, which its parent root has (choose a part of 10.0.0.0/16, or another parent)"},
		},
		"Ring": {
			reason: "Pools that are taken from each other are found, each of them.",
			change: func(w *world) {
				w.Pools = append(w.Pools, closed("x", "10.1.0.0/16", "y", "10.1.0.0/16"), closed("y", "10.1.0.0/16", "x", "10.1.0.0/16"))
			},
			want: []string{
				"error SubnetPool net/x ParentCycle spec.parent=y: pool x would be taken from itself: x -> y -> x (name a parent that is not among its own children, or none)",
				"error SubnetPool net/y ParentCycle spec.parent=x: pool y would be taken from itself: y -> x -> y (name a parent that is not among its own children, or none)",
			},
		},

		"NoPool": {
			reason: "A Subnet whose pool is gone.",
			change: func(w *world) { w.lose("pool six") },
			want:   []string{"error Subnet net/c PoolNotFound spec.poolRef=six: its pool six does not exist (make pool six again, with a CIDR that contains fd00::/64)"},
		},
		"NoPoolDeleted": {reason: "One that is going as well is no orphan.", change: func(w *world) { w.lose("pool six"); w.subnet("c").DeletionTimestamp = &deleted }},
		"NoPoolFailed":  {reason: "Nor is one that failed.", change: add(subnetOf("gone", "x", "10.0.0.0/24", v1alpha1.SubnetFailed))},
		"NoClaim": {
			reason: "A Subnet whose claim is gone.",
			change: func(w *world) { w.lose("claim team") },
			want:   []string{"error Subnet net/a ClaimNotFound spec.claimRef=team: SubnetClaim team, for which it was taken, is gone (delete the Subnet, if nobody uses 10.0.0.0/24)"},
		},
		"NoClaimDeleted": {reason: "While the two are deleted one after the other, all is well.", change: func(w *world) { w.lose("claim team"); w.subnet("a").DeletionTimestamp = &deleted }},
		"NoClaimByHand":  {reason: "A Subnet that was made by hand needs none.", change: func(w *world) { w.lose("claim team"); w.subnet("a").Spec.ClaimRef = nil }},
		"NewClaim": {
			reason: "A claim of the same name is not the same claim. It has nothing yet.",
			change: func(w *world) { w.claim("team").UID = "another"; w.claim("team").Status = v1alpha1.SubnetClaimStatus{} },
			want:   []string{"error Subnet net/a ClaimReplaced spec.claimRef=team: SubnetClaim team, for which it was taken, is gone; the one of that name is another (delete the Subnet, if nobody uses 10.0.0.0/24)"},
		},
		"Restoring": {
			reason: "While a pool is being restored, claims have new UIDs or are not there yet. No finding advises to delete anything.",
			change: func(w *world) {
				w.claim("team").UID, w.claim("team").Status = "another", v1alpha1.SubnetClaimStatus{}
				w.lose("poolclaim lab")
				w.subnet("held").Spec.ClaimRef.Name = "gone"
				w.lose("claim lab")
				w.pool("root").Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: "former"}
				w.pool("lab").Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: "former"}
			},
			want: []string{
				"warning SubnetPool net/lab PoolClaimNotFound metadata.labels[ipam.plexaubnet.io/pool-claim]=lab: pool lab is being restored, and no claim lab has taken this SubnetPool back yet (wait; if everything is restored, run arbor pools restored lab)",
				"warning Subnet net/a ClaimReplaced spec.claimRef=team: pool root is being restored, and no claim team has taken this Subnet back yet (wait; if everything is restored, run arbor pools restored root)",
				"warning Subnet net/held ClaimNotFound spec.claimRef=gone: pool root is being restored, and no claim gone has taken this Subnet back yet (wait; if everything is restored, run arbor pools restored root)",
			},
		},
		"Restored": {
			reason: "When the restore has ended, they are errors.",
			change: func(w *world) {
				w.lose("claim team")
				w.pool("root").Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: string(w.pool("root").UID)}
			},
			want: []string{"error Subnet net/a ClaimNotFound spec.claimRef=team: SubnetClaim team, for which it was taken, is gone (delete the Subnet, if nobody uses 10.0.0.0/24)"},
		},
		"NoUID": {reason: "Who says no UID is taken by the name.", change: func(w *world) { w.subnet("a").Spec.ClaimRef.UID = "" }},
		"NoParent": {
			reason: "A child pool whose parent is gone.",
			change: func(w *world) {
				w.pool("hand").Status.Parent = "gone"
				w.lose("subnet pool-hand")
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a"}, "10.0.16.0/20")
			},
			want: []string{
				"error SubnetPool net/hand Overlap spec.cidr=10.0.32.0/20: 10.0.32.0/20 overlaps 10.0.0.0/16 of pool root, which is a root pool of this namespace (create the parent gone first, or choose other addresses)",
				"error SubnetPool net/hand ParentNotFound spec.parent=gone: its parent gone does not exist, so nothing prevents 10.0.32.0/20 from being allocated a second time (create pool gone again with a CIDR that contains 10.0.32.0/20)",
				"error SubnetPool net/root Overlap spec.cidr=10.0.0.0/16: 10.0.0.0/16 overlaps 10.0.32.0/20 of pool hand, which is taken from gone, a pool that does not exist (choose other addresses, or set spec.parent if one is taken from the other)",
			},
		},
		"NoParentClosed": {
			reason: "A pool that was never opened waits for its parent, and allocates nothing.",
			change: func(w *world) { w.Pools = append(w.Pools, closed("x", "10.1.0.0/16", "nowhere")) },
			want: []string{
				"error SubnetPool net/x ParentNotFound spec.parent=nowhere: it is closed and allocates no blocks: it waits for its parent nowhere, which does not exist (create pool nowhere with a CIDR that contains 10.1.0.0/16; if the name is wrong, delete this pool and create it with another spec.parent)",
			},
		},
		"NoParentInUse": {
			reason: "A closed pool with Subnets, as after a restore, cannot be deleted.",
			change: func(w *world) {
				w.Pools = append(w.Pools, closed("x", "10.1.0.0/16", "nowhere"))
				w.Subnets = append(w.Subnets, subnetOf("x", "d", "10.1.0.0/24", allocated))
				count(w.pool("x"), map[string]string{"10.1.0.0/24": "of-d"})
			},
			want: []string{
				"error SubnetPool net/x ParentNotFound spec.parent=nowhere: it is closed and allocates no blocks: it waits for its parent nowhere, which does not exist (create pool nowhere with a CIDR that contains 10.1.0.0/16)",
			},
		},
		"NoBoundPool": {
			reason: "A claim for a pool that is gone.",
			change: func(w *world) {
				w.lose("pool lab")
				w.lose("subnet b")
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a"}, "10.0.16.0/20", "10.0.32.0/20")
			},
			want: []string{`error SubnetPoolClaim net/lab PoolNotFound status.boundPoolName=lab: it is Bound, but pool "lab" does not exist` + another},
		},
		"NoBoundPoolDeleted": {
			reason: "When a claim is deleted, its pool goes first.",
			change: func(w *world) {
				w.lose("pool lab")
				w.lose("subnet b")
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a"}, "10.0.16.0/20", "10.0.32.0/20")
				w.poolClaim("lab").DeletionTimestamp = &deleted
			},
		},
		"NoBoundPoolPending": {
			reason: "A claim that waits has no pool yet.",
			change: func(w *world) {
				w.lose("pool lab")
				w.lose("subnet b")
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a"}, "10.0.16.0/20", "10.0.32.0/20")
				w.poolClaim("lab").Status = v1alpha1.SubnetPoolClaimStatus{Phase: v1alpha1.ClaimPending}
			},
		},
		"NoPoolClaim": {
			reason: "A pool and the claim for its block whose SubnetPoolClaim is gone.",
			change: func(w *world) { w.lose("poolclaim lab") },
			want: []string{
				"error SubnetPool net/lab PoolClaimNotFound metadata.labels[ipam.plexaubnet.io/pool-claim]=lab: SubnetPoolClaim lab, for which it was made, is gone (delete this SubnetPool, if nobody uses its addresses)",
				"error SubnetClaim net/lab PoolClaimNotFound metadata.labels[ipam.plexaubnet.io/pool-claim]=lab: SubnetPoolClaim lab, for which it was made, is gone (delete this SubnetClaim, if nobody uses its addresses)",
			},
		},
		"NoPoolClaimDeleted": {
			reason: "Those that are going too are no orphans.",
			change: func(w *world) {
				w.lose("poolclaim lab")
				w.pool("lab").DeletionTimestamp, w.claim("lab").DeletionTimestamp = &deleted, &deleted
				apimeta.SetStatusCondition(&w.pool("lab").Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: ipamrules.ReasonDeleting})
			},
		},
		"OtherOwner": {
			reason: "What others own is theirs to look after.",
			change: func(w *world) {
				for _, name := range []string{"poolclaim lab", "claim lab", "subnet held"} {
					w.lose(name)
				}
				w.pool("lab").Labels, w.pool("lab").OwnerReferences = nil, ownedBy("lab")
				w.pool("lab").OwnerReferences[0].Kind = "Tenant"
			},
			want: []string{"error SubnetPool net/lab NotBacked spec.parent=root: no Allocated Subnet of pool root holds 10.0.16.0/20, it may be handed out by root again" + migrate},
		},
		"NoBlock": {
			reason: "A pool whose block nobody holds in the parent.",
			change: func(w *world) { w.lose("claim lab"); w.lose("subnet held") },
			want:   []string{"error SubnetPool net/lab NotBacked spec.parent=root: no Allocated Subnet of pool root holds 10.0.16.0/20, it may be handed out by root again" + migrate, "error SubnetPoolClaim net/lab BlockNotFound status.boundPoolName=lab: it is Bound, but the SubnetClaim lab that took the block of its pool from root is gone" + inUse},
		},
		"NotMigrated": {
			reason: "A child pool from before an upgrade is in use, and has no Subnet of its parent.",
			change: func(w *world) {
				w.Pools = append(w.Pools, closed("x", "10.0.128.0/20", "root"))
				w.Subnets = append(w.Subnets, subnetOf("x", "d", "10.0.128.0/24", allocated))
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a"}, "10.0.16.0/20", "10.0.32.0/20", "10.0.128.0/20")
				count(w.pool("x"), map[string]string{"10.0.128.0/24": "of-d"})
			},
			want: []string{"warning SubnetPool net/x NotBacked spec.parent=root: no Allocated Subnet of pool root holds 10.0.128.0/20, although Subnets are taken from it: pool root hands out no new blocks until one does" + migrate},
		},
		"OverlapNephew": {
			reason: "A root and the child of another one share addresses. Only the one that is not open is reported.",
			change: func(w *world) {
				w.Pools = append(w.Pools, counted("x", "10.1.0.0/16", "", nil), closed("y", "fd00::/56", "x"))
			},
			want: []string{
				"error SubnetPool net/y OutsideParent spec.cidr=fd00::/56: fd00::/56 is not inside of 10.1.0.0/16, which its parent x has (choose a part of 10.1.0.0/16, or another parent)",
				"error SubnetPool net/y Overlap spec.cidr=fd00::/56: fd00::/56 overlaps fd00::/48 of pool six, which is open, and neither is taken from the other (choose other addresses for this pool, or delete it)",
			},
		},
		"OverlapNephews": {
			reason: "Of two that are not open, both are reported.",
			change: func(w *world) {
				w.Pools = append(w.Pools, counted("x", "10.1.0.0/16", "", nil, "10.1.0.0/20"), closed("y", "10.1.0.0/20", "x"), closed("z", "10.1.0.0/24", "root"))
			},
			want: []string{
				"error SubnetPool net/y Overlap spec.cidr=10.1.0.0/20: 10.1.0.0/20 overlaps 10.1.0.0/24 of pool z, and neither is taken from the other" + other,
				"error SubnetPool net/z OutsideParent spec.cidr=10.1.0.0/24: 10.1.0.0/24 is not inside of 10.0.0.0/16, which its parent root has (choose a part of 10.0.0.0/16, or another parent)",
				"error SubnetPool net/z Overlap spec.cidr=10.1.0.0/24: 10.1.0.0/24 overlaps 10.1.0.0/20 of pool y, and neither is taken from the other" + other,
			},
		},
		"BoundToAnother": {
			reason: "A backing Subnet that is bound to a former pool of the name.",
			change: func(w *world) { w.subnet("pool-hand").Status.PoolUID = "former" },
			want: []string{
				"error SubnetPool net/hand NotBacked spec.parent=root: no Allocated Subnet of pool root holds 10.0.32.0/20, it may be handed out by root again" + migrate,
				`warning Subnet net/pool-hand ChildNotFound spec.backs=hand: it holds 10.0.32.0/20 for a child pool hand of UID "former", but the pool of that name has UID "uid-hand"` + manager,
			},
		},
		"BlockOfAnother": {
			reason: "A claim of that name which is somebody else's is not that block.",
			change: func(w *world) { w.claim("lab").Labels = nil },
			want:   []string{"error SubnetPoolClaim net/lab BlockNotFound status.boundPoolName=lab: it is Bound, but the SubnetClaim lab that took the block of its pool from root is gone" + inUse},
		},

		"OutsidePool": {
			reason: "An Allocated Subnet outside of its pool.",
			change: add(subnetOf("root", "x", "10.1.0.0/24", allocated)),
			want:   []string{"error Subnet net/x OutsidePool spec.cidr=10.1.0.0/24: 10.1.0.0/24 is not inside of pool root, 10.0.0.0/16" + whoUses},
		},
		"OutsidePoolFailed": {reason: "One that failed for that is as it should be.", change: add(subnetOf("root", "x", "10.1.0.0/24", v1alpha1.SubnetFailed))},
		"Unmasked": {
			reason: "An Allocated Subnet that is written as no other is.",
			change: func(w *world) { w.subnet("c").Spec.CIDR = "fd00::1/64" },
			want:   []string{"error Subnet net/c NotMasked spec.cidr=fd00::1/64: fd00::1/64 has bits set behind its length" + whoUses},
		},
		"SubnetLost": {
			reason: "A bound claim whose Subnet is gone.",
			change: func(w *world) { w.lose("subnet a"); count(w.pool("root"), nil, "10.0.16.0/20", "10.0.32.0/20") },
			want:   []string{"error SubnetClaim net/team SubnetLost status.subnetRef=a: it is Bound, but Subnet a is gone: 10.0.0.0/24 may be handed out to somebody else" + another},
		},
		"SubnetLostDeleted": {
			reason: "A claim that is being deleted may lose it.",
			change: func(w *world) {
				w.lose("subnet a")
				count(w.pool("root"), nil, "10.0.16.0/20", "10.0.32.0/20")
				w.claim("team").DeletionTimestamp = &deleted
			},
		},
		"SubnetLostPending": {
			reason: "A claim that waits has none.",
			change: func(w *world) {
				w.lose("subnet a")
				count(w.pool("root"), nil, "10.0.16.0/20", "10.0.32.0/20")
				w.claim("team").Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimPending}
			},
		},
		"SubnetByBlock": {
			reason: "One that was bound before a status could name a Subnet says the block.",
			change: func(w *world) { w.claim("team").Status.SubnetRef = "" },
		},
		"SubnetUnnamed": {
			reason: "A bound claim that does not say to what.",
			change: func(w *world) {
				w.claim("team").Status.SubnetRef, w.claim("team").Status.AllocatedCIDR = "", "10.99.0.0/24"
			},
			want: []string{"error SubnetClaim net/team SubnetLost status.subnetRef=: it is Bound, but names no Subnet" + another},
		},
		"NotAllocated": {
			reason: "A bound claim whose Subnet was not found good.",
			change: func(w *world) { w.subnet("a").Status.Phase = "" },
			want: []string{
				"warning Subnet net/a NotJudged status.phase=: it was not judged yet, so nobody may use it" + manager,
				"error SubnetClaim net/team SubnetNotAllocated status.subnetRef=a: it is Bound, but Subnet a is Pending" + another,
			},
		},
		"OtherCIDR": {
			reason: "A bound claim that says another block than its Subnet has.",
			change: func(w *world) { w.claim("team").Status.AllocatedCIDR = "10.0.9.0/24" },
			want:   []string{"error SubnetClaim net/team CIDRDiffers status.allocatedCIDR=10.0.9.0/24: its Subnet a has 10.0.0.0/24" + inUse},
		},
		"OfAnother": {
			reason: "A bound claim whose Subnet is another claim's.",
			change: func(w *world) { w.claim("team").Status.SubnetRef = "held" },
			want:   []string{`error SubnetClaim net/team SubnetOfAnother status.subnetRef=held: it is Bound, but Subnet held was not taken for it, but for SubnetClaim lab of UID "uid-lab"` + another},
		},
		"OfNobody": {
			reason: "Or nobody's.",
			change: func(w *world) {
				w.claim("team").Status.SubnetRef = "c"
				w.lose("subnet a")
				count(w.pool("root"), nil, "10.0.16.0/20", "10.0.32.0/20")
			},
			want: []string{"error SubnetClaim net/team SubnetOfAnother status.subnetRef=c: it is Bound, but Subnet c was not taken for it" + another},
		},
		"Several": {
			reason: "A claim that has two blocks.",
			change: func(w *world) {
				w.Subnets = append(w.Subnets, takenFor("team", subnetOf("root", "x", "10.0.1.0/24", allocated)))
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a", "10.0.1.0/24": "of-x"}, "10.0.16.0/20", "10.0.32.0/20")
			},
			want: []string{"error SubnetClaim net/team SeveralSubnets status.subnetRef=a: 2 Subnets are Allocated for it, such as a and x (delete those that status.subnetRef does not name)"},
		},
		"SeveralFailed": {reason: "One that failed before the other is none.", change: add(takenFor("team", subnetOf("root", "x", "10.0.1.0/24", v1alpha1.SubnetFailed)))},
		"PoolDiffers": {
			reason: "A pool that is not the block that was taken for it.",
			change: func(w *world) {
				w.claim("lab").Status.AllocatedCIDR, w.subnet("held").Spec.CIDR = "10.0.64.0/20", "10.0.64.0/20"
				count(w.pool("root"), map[string]string{"10.0.0.0/24": "of-a"}, "10.0.64.0/20", "10.0.32.0/20")
			},
			want: []string{"error SubnetPool net/lab NotBacked spec.parent=root: no Allocated Subnet of pool root holds 10.0.16.0/20, it may be handed out by root again" + migrate, `error SubnetPoolClaim net/lab CIDRDiffers status.boundPoolName=lab: its pool lab has 10.0.16.0/20, but "10.0.64.0/20" was taken for it from root` + inUse},
		},

		"Count": {
			reason: "A status that counts wrong.",
			change: func(w *world) { w.pool("hand").Status.AllocatedCount = 3; w.pool("hand").Status.UtilizationPercent = 7 },
			want:   []string{"error SubnetPool net/hand StatusDiffers status.allocatedCount=3: a recount finds that allocatedCount is 0, not 3, utilizationPercent is 0, not 7" + recount("hand")},
		},
		"CountMissed": {
			reason: "A Subnet that was not counted.",
			change: add(subnetOf("hand", "x", "10.0.32.0/22", allocated)),
			want:   []string{"error SubnetPool net/hand StatusDiffers status.allocatedCount=0: a recount finds that allocatedCount is 1, not 0, freeCountBySize[20] is 0, not 1, allocatableCountBySize[20] is 0, not 1, utilizationPercent is 25, not 0, fragmentationPercent is 33, not 0, allocatedCIDRs[10.0.32.0/22] is of-x, not absent" + recount("hand")},
		},
		"CountDelegated": {
			reason: "A child pool that is not counted.",
			change: func(w *world) { w.pool("root").Status.DelegatedCount = 1 },
			want:   []string{"error SubnetPool net/root StatusDiffers status.delegatedCount=1: a recount finds that delegatedCount is 2, not 1" + recount("root")},
		},
		"CountSizes": {
			reason: "One size of many.",
			change: func(w *world) {
				w.pool("six").Status.FreeCountBySize["/64"], w.pool("six").Status.AllocatableCountBySize["56"] = 1, 2
			},
			want: []string{"error SubnetPool net/six StatusDiffers status.freeCountBySize[/64]=1: a recount finds that freeCountBySize[/64] is 65535, not 1, allocatableCountBySize[56] is 255, not 2" + recount("six")},
		},
		"CountPending": {
			reason: "What waits is counted: it may be found good at any moment.",
			change: func(w *world) {
				w.Subnets = append(w.Subnets, subnetOf("hand", "x", "10.0.32.0/22", v1alpha1.SubnetPending))
				count(w.pool("hand"), map[string]string{"10.0.32.0/22": "of-x"})
			},
			want: []string{"warning Subnet net/x NotJudged status.phase=Pending: it was not judged yet, so nobody may use it" + manager},
		},
		"Behind": {
			reason: "A status of another generation is not held to anything.",
			change: func(w *world) { w.pool("hand").Generation = 2; w.pool("hand").Status.AllocatedCount = 3 },
			want:   []string{"warning SubnetPool net/hand StatusBehind status.observedGeneration=1: its status is behind: it speaks of generation 1, and this is 2" + manager},
		},
		"NoStatus": {
			reason: "Nor is one that was never written.",
			change: func(w *world) { w.pool("hand").Status = v1alpha1.SubnetPoolStatus{} },
			want:   []string{"warning SubnetPool net/hand StatusBehind status.observedGeneration=0: its status was never written" + manager},
		},
		"NotStored": {
			reason: "What was never stored has no status, and nobody to judge it.",
			change: func(w *world) {
				w.Pools = append(w.Pools, v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}})
				w.Subnets = append(w.Subnets, v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.SubnetSpec{PoolRef: "x", CIDR: "10.0.0.0/24"}})
			},
		},
		"Exhausted": {
			reason: "A pool that says it is full, and is not.",
			change: func(w *world) { w.pool("hand").Status.Conditions[1].Status = metav1.ConditionTrue },
			want:   []string{"error SubnetPool net/hand ConditionDiffers status.conditions[Exhausted]=True: Exhausted is True, but should be False: there are blocks of /24 left" + recount("hand")},
		},
		"Ready": {
			reason: "A pool that does not say whether it can be used.",
			change: func(w *world) { w.pool("hand").Status.Conditions = w.pool("hand").Status.Conditions[1:] },
			want:   []string{"error SubnetPool net/hand ConditionDiffers status.conditions[Ready]=: there is no condition Ready, which should be True: blocks can be taken from this pool" + recount("hand")},
		},
		"OtherCondition": {reason: "Conditions of others are theirs.", change: func(w *world) {
			w.pool("hand").Status.Conditions = append(w.pool("hand").Status.Conditions, metav1.Condition{Type: "Billed"})
		}},
		"Waiting": {
			reason: "A Subnet that waits for a pool which is not there.",
			change: add(subnetOf("gone", "x", "10.0.0.0/24", v1alpha1.SubnetPending)),
			want:   []string{"warning Subnet net/x NotJudged status.phase=Pending: it waits for its pool gone, which does not exist (make that pool, or delete the Subnet)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := healthy()
			tc.change(w)
			got := said(audit.Inspect(w.Inventory))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			shuffle(w)
			if diff := cmp.Diff(got, said(audit.Inspect(w.Inventory))); diff != "" {
				t.Errorf("in another order (-first +second):\n%s", diff)
			}
		})
	}
}

func shuffle(w *world) {
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(w.Pools), func(i, j int) { w.Pools[i], w.Pools[j] = w.Pools[j], w.Pools[i] })
	r.Shuffle(len(w.Subnets), func(i, j int) { w.Subnets[i], w.Subnets[j] = w.Subnets[j], w.Subnets[i] })
	r.Shuffle(len(w.Claims), func(i, j int) { w.Claims[i], w.Claims[j] = w.Claims[j], w.Claims[i] })
	r.Shuffle(len(w.PoolClaims), func(i, j int) { w.PoolClaims[i], w.PoolClaims[j] = w.PoolClaims[j], w.PoolClaims[i] })
}
