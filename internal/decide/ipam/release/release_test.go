package release_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
)

// created is when the Subnets of these tests were created. They have existed for a minute,
// and the grace period is ten minutes.
var created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	grace  = 10 * time.Minute
	waited = time.Minute
)

// A decisionCase is facts, and what is decided.
type decisionCase struct {
	reason string
	change func(*release.Facts)
	want   release.Decision
}

func keep(reason string) release.Decision {
	return release.Decision{Action: release.Keep, Reason: reason}
}

func wait(after time.Duration) release.Decision {
	return release.Decision{Action: release.Wait, After: after}
}

var released = release.Decision{Action: release.Release}

func deleting(o metav1.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: created}) }

// newFacts returns facts about the Subnet of a claim, or about one that a pool which was
// created by hand is made of. Both are Allocated, and what they were created for is gone.
func newFacts(backing bool) release.Facts {
	f := release.Facts{
		Subnet: &v1alpha1.Subnet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s", CreationTimestamp: metav1.NewTime(created)},
			Spec:       v1alpha1.SubnetSpec{PoolRef: "parent", CIDR: "10.0.0.0/24", ClusterID: "x"},
			Status:     v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated, UID: "s"},
		},
		Pool: &v1alpha1.SubnetPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "parent", UID: "p", Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "p"}},
			Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"},
		},
		Grace: grace, Waited: waited, Now: created.Add(waited),
	}
	if backing {
		f.Subnet.Spec.Backs, f.Subnet.Status.PoolUID = &v1alpha1.PoolReference{Name: "child", UID: "u"}, "u"
	} else {
		f.Subnet.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "c", UID: "c", PoolUID: "p", Time: new(metav1.NewTime(created))}
		f.Subnet.Status.ClaimUID = "c"
	}

	return f
}

// withClaim adds a claim with a UID that asks for a block of a length.
func withClaim(f *release.Facts, uid string, length int32) {
	f.Claim = newClaim("c", "parent", length)
	f.Claim.Namespace, f.Claim.UID, f.Claim.Spec.ClusterID = "ns", types.UID(uid), "x"
}

// withChild adds the child pool with a UID.
func withChild(f *release.Facts, uid string) {
	f.Child = &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", UID: types.UID(uid)},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/25", Parent: "parent"},
	}
}

// restoredSubnet makes the Subnet one of a backup: nothing has had it.
func restoredSubnet(f *release.Facts) { f.Subnet.Status.ClaimUID, f.Subnet.Status.PoolUID = "", "" }

func reuseAfter(f *release.Facts) {
	f.Pool.Spec.ReuseAfter = &metav1.Duration{Duration: time.Hour}
	deleting(f.Subnet)
}

var claimedCases = map[string]decisionCase{
	"Gone":      {"The claim that had it is gone.", nil, released},
	"NoClaim":   {"It was created by hand.", func(f *release.Facts) { f.Subnet.Spec.ClaimRef, f.Subnet.Status.ClaimUID = nil, "" }, keep("it is not for a claim")},
	"Held":      {"The claim has it.", func(f *release.Facts) { withClaim(f, "c", 24) }, keep("its claim has it")},
	"HeldOther": {"The claim has it, although it asks for another.", func(f *release.Facts) { withClaim(f, "c", 25) }, keep("its claim has it")},
	"Again":     {"A claim of the same name takes it.", func(f *release.Facts) { withClaim(f, "new", 24) }, keep("a claim of the same name wants it")},
	"Other":     {"A claim of the same name needs another.", func(f *release.Facts) { withClaim(f, "new", 25) }, released},
	"Restored":  {"Its claim may be restored later.", restoredSubnet, keep("no claim has had it yet")},
	"Late":      {"It was judged after its claim was deleted.", func(f *release.Facts) { restoredSubnet(f); f.Waited = grace }, released},
	"Seen":      {"Its claim was seen to be deleted.", func(f *release.Facts) { restoredSubnet(f); f.ClaimDeleted = true }, released},
	"SeenOld": {
		"A Subnet of a backup names the claim that was seen to be deleted.",
		func(f *release.Facts) {
			restoredSubnet(f)
			f.ClaimDeleted, f.Subnet.Spec.ClaimRef.Time = true, new(metav1.NewTime(created.Add(-time.Hour)))
		}, keep("no claim has had it yet"),
	},
	"OtherPool": {"It comes from a backup, as its pool.", func(f *release.Facts) { restoredSubnet(f); f.Waited, f.Pool.UID = grace, "new" }, keep("no claim has had it yet")},
	"PoolGone":  {"The pool may be restored later.", func(f *release.Facts) { restoredSubnet(f); f.Waited, f.Pool = grace, nil }, keep("no claim has had it yet")},
	"PoolRestoring": {
		"The pool is being restored.",
		func(f *release.Facts) {
			restoredSubnet(f)
			f.Waited, f.Pool.Annotations[v1alpha1.PoolUIDAnnotation] = grace, "old"
		}, keep("no claim has had it yet"),
	},
	"Foreign": {
		"A Failed status of a backup counts as none.",
		func(f *release.Facts) {
			withClaim(f, "new", 24)
			f.Claim.Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, UID: "new", AllocatedCIDR: "10.0.1.0/24", SubnetRef: "t"}
			f.Subnet.Status = v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetFailed, UID: "old", ClaimUID: "c"}
		}, keep("its status is that of another Subnet"),
	},
	"Surplus": {
		"The claim is bound to another Subnet.",
		func(f *release.Facts) {
			withClaim(f, "c", 24)
			f.Claim.Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, UID: "c", AllocatedCIDR: "10.0.1.0/24", SubnetRef: "t"}
		}, released,
	},
	"Child": {
		"A pool is made of it.",
		func(f *release.Facts) {
			withChild(f, "u")
			f.Subnet.Spec.Backs, f.Subnet.Status.PoolUID = &v1alpha1.PoolReference{Name: "child"}, "u"
		}, keep("a pool is made of it"),
	},
	"ChildUnbound": {
		"The guard may bind it at any moment.",
		func(f *release.Facts) {
			withChild(f, "u")
			f.Subnet.Spec.Backs = &v1alpha1.PoolReference{Name: "child"}
		},
		keep("a pool is made of it"),
	},
	"ChildElsewhere": {
		"The pool is made of another block.",
		func(f *release.Facts) {
			withChild(f, "u")
			f.Child.Spec.CIDR, f.Subnet.Spec.Backs = "10.0.1.0/25", &v1alpha1.PoolReference{Name: "child"}
		}, released,
	},
	"ChildGone":   {"The pool is gone.", func(f *release.Facts) { f.Subnet.Spec.Backs = &v1alpha1.PoolReference{Name: "child"} }, released},
	"ChildStored": {"Its pool may have any name.", func(f *release.Facts) { f.Subnet.Status.PoolUID = "u" }, keep("a pool is made of it")},
	"ChildFailed": {"It holds nothing.", func(f *release.Facts) { f.Subnet.Status.PoolUID, f.Subnet.Status.Phase = "u", v1alpha1.SubnetFailed }, released},
}

var backingCases = map[string]decisionCase{
	"Gone":     {"The pool that it was made for is gone.", nil, released},
	"Child":    {"The pool is made of it.", func(f *release.Facts) { withChild(f, "u") }, keep("pool child is made of it")},
	"Deleting": {"The pool is being deleted, and is made of it until it is gone.", func(f *release.Facts) { withChild(f, "u"); deleting(f.Child) }, keep("pool child is made of it")},
	"Deleted":  {"Also if the Subnet was deleted by hand.", func(f *release.Facts) { withChild(f, "u"); deleting(f.Subnet) }, keep("pool child is made of it")},
	"Again":    {"A pool of the same name asks for it.", func(f *release.Facts) { withChild(f, "new") }, keep("pool child is made of it")},
	"AgainDeleting": {
		"A pool that is being deleted is bound to no Subnet.",
		func(f *release.Facts) { withChild(f, "new"); deleting(f.Child) }, released,
	},
	"AgainDeleted": {"A Subnet that is being deleted is bound to no pool.", func(f *release.Facts) { withChild(f, "new"); deleting(f.Subnet) }, released},
	"Elsewhere":    {"A pool of the same name has other addresses.", func(f *release.Facts) { withChild(f, "new"); f.Child.Spec.CIDR = "10.0.1.0/25" }, released},
	"OtherParent":  {"Or another parent.", func(f *release.Facts) { withChild(f, "new"); f.Child.Spec.Parent = "other" }, released},
	"Unbound": {
		"It was created for the pool, which asks for other addresses since, and is not bound yet.",
		func(f *release.Facts) { restoredSubnet(f); withChild(f, "u"); f.Child.Spec.CIDR = "10.0.1.0/25" }, keep("pool child is made of it"),
	},
	"UnboundDeleted": {"A Subnet that is being deleted is bound to no pool.", func(f *release.Facts) { restoredSubnet(f); withChild(f, "u"); deleting(f.Subnet) }, released},
	"Failed":         {"The guard decides whether to try again.", func(f *release.Facts) { withChild(f, "u"); f.Subnet.Status.Phase = v1alpha1.SubnetFailed }, keep("pool child is made of it")},
	"FailedDeleted": {"No pool is made of it.", func(f *release.Facts) {
		withChild(f, "u")
		f.Subnet.Status.Phase = v1alpha1.SubnetFailed
		deleting(f.Subnet)
	}, released},
	"Foreign": {"The status of a backup names a pool of the past.", func(f *release.Facts) { f.Subnet.Status.UID = "old" }, keep("its status is that of another Subnet")},
	"Parent":  {"The parent is being restored.", func(f *release.Facts) { f.Pool.Annotations[v1alpha1.PoolUIDAnnotation] = "old" }, keep("pool parent is being restored")},
	"ParentDeleting": {
		"No pool is restored in a parent that is being deleted.",
		func(f *release.Facts) { f.Pool.Annotations[v1alpha1.PoolUIDAnnotation] = "old"; deleting(f.Pool) }, released,
	},
	"Inside":           {"The finalizer of the pool was removed by force.", func(f *release.Facts) { f.Inside = "Subnet t is in it" }, keep("Subnet t is in it")},
	"Expected":         {"No pool has had it: its pool may be restored.", restoredSubnet, wait(grace - waited)},
	"ExpectedAlone":    {"So may its parent.", func(f *release.Facts) { restoredSubnet(f); f.Pool = nil }, wait(grace - waited)},
	"ExpectedDeleting": {"No pool is opened in a parent that is being deleted.", func(f *release.Facts) { restoredSubnet(f); deleting(f.Pool) }, released},
	"ExpectedDeleted":  {"It was deleted by hand.", func(f *release.Facts) { restoredSubnet(f); deleting(f.Subnet) }, released},
	"ExpectedOver":     {"The pool does not come.", func(f *release.Facts) { restoredSubnet(f); f.Waited = grace }, released},
	"Cooling":          {"The block stays unused for an hour.", reuseAfter, wait(59 * time.Minute)},
	"CoolingAgain":     {"The pool was created again.", func(f *release.Facts) { reuseAfter(f); withChild(f, "new") }, released},
	"Unclaimed": {
		"The claim may not be restored yet.",
		func(f *release.Facts) {
			restoredSubnet(f)
			f.Subnet.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "c", UID: "old"}
		}, keep("no claim has had it yet"),
	},
	"Claim": {
		"A claim of the same name can take it.",
		func(f *release.Facts) {
			withClaim(f, "new", 24)
			f.Subnet.Spec.ClaimRef, f.Subnet.Status.ClaimUID = &v1alpha1.ClaimReference{Name: "c", UID: "old"}, "old"
		}, keep("SubnetClaim c has it"),
	},
	"ClaimCluster": {
		"A claim of another clusterID cannot.",
		func(f *release.Facts) {
			withClaim(f, "new", 24)
			f.Claim.Spec.ClusterID = "y"
			f.Subnet.Spec.ClaimRef, f.Subnet.Status.ClaimUID = &v1alpha1.ClaimReference{Name: "c", UID: "old"}, "old"
		}, released,
	},
	"ClaimDeleted": {
		"A new claim cannot take a Subnet that is being deleted.",
		func(f *release.Facts) {
			withClaim(f, "new", 24)
			f.Subnet.Spec.ClaimRef, f.Subnet.Status.ClaimUID = &v1alpha1.ClaimReference{Name: "c", UID: "old"}, "old"
			deleting(f.Subnet)
		}, released,
	},
}

// differs returns what is decided in a case, compared with what it wants.
func differs(backing bool, tc decisionCase) string {
	f, rule := newFacts(backing), release.Claimed
	if backing {
		rule = release.Backing
	}
	if tc.change != nil {
		tc.change(&f)
	}

	return cmp.Diff(tc.want, rule(f))
}

func TestClaimed(t *testing.T) {
	for name, tc := range claimedCases {
		t.Run(name, func(t *testing.T) {
			if diff := differs(false, tc); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBacking(t *testing.T) {
	for name, tc := range backingCases {
		t.Run(name, func(t *testing.T) {
			if diff := differs(true, tc); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Each clause changes what is decided in some case.
func TestEveryClauseIsNeeded(t *testing.T) {
	ofClaimed, ofBacking := release.Clauses()
	check := func(name string, backing bool, remove func(*testing.T, string), cases map[string]decisionCase) {
		t.Run(name, func(t *testing.T) {
			remove(t, name)
			for _, tc := range cases {
				if differs(backing, tc) != "" {
					return
				}
			}
			t.Errorf("without clause %s, everything is decided as before", name)
		})
	}
	for _, name := range ofClaimed {
		check(name, false, release.WithoutClaimed, claimedCases)
	}
	for _, name := range ofBacking {
		check(name, true, release.WithoutBacking, backingCases)
	}
}
