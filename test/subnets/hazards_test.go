package subnets_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// Ways in which an address could get two owners, or a pool or a claim could wait forever,
// without a webhook in the way.
func TestHazards(t *testing.T) { //nolint:tparallel // the cases share a manager, the tests do not
	c := newClient(t)
	server.StartManager(t, only, noWebhooks)

	cases := map[string]struct {
		reason string
		run    func(*world)
	}{
		"ParentNowhere":       {"A pool without its parent is not compared with other pools, so it must not open.", parentNowhere},
		"ForgedInChild":       {"Child pools are protected from Subnets of the parent that skip admission.", forgedInChild},
		"ChildOnForged":       {"A child pool does not open over a Subnet of the parent.", childOnForged},
		"RootsAtOnce":         {"Of overlapping roots that are created at once, one opens; when it is deleted, another does.", rootsAtOnce},
		"GrowAtOnce":          {"Of two pools that grow into the same addresses, one does.", growAtOnce},
		"ShrinkUnderSubnet":   {"A pool that shrinks while a Subnet is checked outside of the new range keeps it, or the Subnet fails.", shrinkUnderSubnet},
		"ChildGrows":          {"A child pool does not grow over Subnets of its parent.", childGrows},
		"NameOfOtherPool":     {"H12a: the generated name belongs to a Subnet of another pool.", nameOfOtherPool},
		"NameOfFailed":        {"H12b: the generated name belongs to a Failed Subnet of this pool.", nameOfFailed},
		"NameOfOtherBlock":    {"H12c: the generated name belongs to another block of this pool.", nameOfOtherBlock},
		"NameOfBacking":       {"The name for the backing Subnet of a child pool belongs to a Subnet of another pool.", nameOfBacking},
		"ForeignClaim":        {"H13: NameTaken ends when the foreign SubnetClaim is deleted.", foreignClaim},
		"ForeignPool":         {"H13: NameTaken ends when the foreign SubnetPool is deleted.", foreignPool},
		"RingOfOne":           {"H14: a pool that names itself as parent can be deleted.", ringOfOne},
		"RingOfTwo":           {"H14: pools that name each other as parent can be deleted.", ringOfTwo},
		"SloppyChildDeleted":  {"H15: a parent that waits for a child with a CIDR that netip rejects is deleted after it.", sloppyChildDeleted},
		"LabelMoved":          {"H17: an open child keeps its parent when the label changes.", labelMoved},
		"SubnetOfBoundFailed": {"H20: a claim whose Subnet is Failed is not ready.", subnetOfBoundFailed},
		"OneCreateRejected":   {"H9: a claim whose Subnet cannot be created reports it, and other claims are served.", oneCreateRejected},
		"ChildOverQuota":      {"A child pool whose backing Subnet cannot be created reports it, and opens when it can.", childOverQuota},
		"PoolClaimOverQuota":  {"H13: a SubnetPoolClaim whose SubnetClaim cannot be created reports it, and is served when it can.", poolClaimOverQuota},
		"ChildOfClosed":       {"A child pool of a pool that is not open reports it, and is opened after it.", childOfClosed},
		"ForgedClaimUID":      {"A Subnet that names the UID of a claim, but not what it asks for, does not keep the claim waiting.", forgedClaimUID},
		"ChildRestored":       {"A child pool that is deleted and restored while the manager runs gets its Subnet of the backup, which may arrive first.", childRestored},
		"ChildMoved":          {"A child pool that changes its addresses before it is opened keeps one block, not two.", childMoved},
		"EditedLabel":         {"The claim for the block of a SubnetPoolClaim is found again when its label is edited.", editedLabel},
		"LongName":            {"The name of a SubnetPoolClaim can be longer than the value of a label.", longName},
		"ReusedChildBlock":    {"spec.reuseAfter holds for the block of a SubnetPoolClaim, which gets another when it is created again.", reusedChildBlock},
		"SameClusterReused":   {"A claim of the same clusterID does not wait until the block of the former one can be used again.", sameClusterReused},
		"Quota":               {"H9: a claim over quota reports it, and is served when the quota is raised.", quota},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			w := newWorld(t, c)
			tc.run(w)
			must(t, w.exclusive())
		})
	}
}

func parentNowhere(w *world) {
	pool, second := w.pool("a", "10.0.0.0/16", ""), w.pool("b", "10.0.0.0/16", "nowhere")
	w.create(pool, second)
	first, other := w.claim("a", "first", 24), w.claim("b", "other", 24)
	w.create(first, other)
	w.bound(first)
	w.refused(second, "NoParent")
	w.waits(other, "PoolNotReady")

	// It is not final: the parent appears, and has room.
	w.create(w.pool("nowhere", "10.0.0.0/15", ""))
	w.refused(w.pool("nowhere", "", ""), "Overlap")
	w.remove(first)
	w.remove(pool)
	w.bound(other)
}

// The same with webhooks, which admit a pool whose parent may come later.
func TestParentNowhereAdmitted(t *testing.T) {
	c := newClient(t)
	startAdmission(t, c)
	w := newWorld(t, c)
	w.create(w.pool("a", "10.0.0.0/16", ""))
	first, other := w.claim("a", "first", 24), w.claim("b", "other", 24)
	w.create(first, other)
	w.bound(first)
	second := w.pool("b", "10.0.0.0/16", "nowhere")
	if err := c.Create(t.Context(), second); apierrors.IsInvalid(err) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	w.refused(second, "NoParent")
	w.waits(other, "PoolNotReady")
	must(t, w.exclusive())
}

func forgedInChild(w *world) {
	w.create(w.pool("root", "10.0.0.0/16", ""), w.pool("c", "10.0.0.0/17", "root"))
	inner := w.claim("c", "inner", 24)
	w.create(inner)
	forged := w.forged("root", "forged", w.bound(inner))
	w.create(forged)
	w.judged(forged, v1alpha1.SubnetFailed)
}

func childOnForged(w *world) {
	forged := w.forged("root", "forged", "10.0.0.0/24")
	w.create(w.pool("root", "10.0.0.0/16", ""), forged)
	w.judged(forged, v1alpha1.SubnetAllocated)
	c, inner := w.pool("c", "10.0.0.0/17", "root"), w.exact("c", "inner", "10.0.0.0/24")
	w.create(c, inner)
	w.refused(c)
	w.waits(inner, "PoolNotReady")

	// It opens when the addresses are free.
	w.remove(forged)
	w.bound(inner)
}

func rootsAtOnce(w *world) {
	const roots = 8
	var pools []*v1alpha1.SubnetPool
	for i := range roots {
		pools = append(pools, w.pool(fmt.Sprintf("root-%d", i), fmt.Sprintf("10.0.0.0/%d", 16+i%4), ""))
		w.create(w.exact(pools[i].Name, fmt.Sprintf("claim-%d", i), "10.0.0.0/24"))
	}
	must(w.t, inParallel(roots, roots, func(i int) error { return w.c.Create(w.t.Context(), pools[i]) })())
	for left := roots; left > roots-2; left-- {
		won := w.winner(pools)
		w.remove(w.claim("", fmt.Sprintf("claim-%d", won), 0), pools[won])
		w.gone(pools[won])
	}
}

// winner waits until one of some pools has its range and serves its claim, and all other pools that
// exist report that they overlap.
func (w *world) winner(pools []*v1alpha1.SubnetPool) int {
	w.t.Helper()
	won := -1
	w.eventually("one of the pools is open", func() error {
		won = -1
		for i, p := range pools {
			switch err := w.get(p); {
			case apierrors.IsNotFound(err):
			case err != nil:
				return err
			case p.Open() != "" && won >= 0:
				w.t.Fatalf("%s and %s are open", pools[won].Name, p.Name)
			case p.Open() != "":
				won = i
			case !ready(p.Status.Conditions, metav1.ConditionFalse, "Overlap"):
				return fmt.Errorf("%s is %+v", p.Name, p.Status)
			}
		}
		if won < 0 {
			return errors.New("none is open")
		}

		return nil
	})
	w.bound(w.claim("", fmt.Sprintf("claim-%d", won), 0))

	return won
}

// What both want overlaps. The range that b asks for also contains what a has, so only a can grow,
// whichever is checked first.
func growAtOnce(w *world) {
	pools := []*v1alpha1.SubnetPool{w.pool("a", "10.0.0.0/24", ""), w.pool("b", "10.0.2.0/24", "")}
	wants := []string{"10.0.0.0/23", "10.0.0.0/22"}
	for _, p := range pools {
		had, next := w.claim(p.Name, p.Name+"-had", 24), w.claim(p.Name, p.Name+"-next", 24)
		w.create(p, had)
		w.bound(had)
		w.create(next)
		w.waits(next, "PoolExhausted")
	}
	must(w.t, inParallel(len(pools), len(pools), func(i int) error { return w.resize(pools[i].Name, wants[i]) })())
	w.eventually("a has grown, and b reports why not", func() error {
		for _, p := range pools {
			if err := w.get(p); err != nil {
				return err
			}
		}
		if a := pools[0].Open(); a != wants[0] {
			return fmt.Errorf("a has %s", a)
		}
		if b := pools[1]; b.Open() == wants[1] {
			w.t.Fatal("both have grown into the same addresses")
		} else if !ready(b.Status.Conditions, metav1.ConditionFalse, "Overlap") {
			return fmt.Errorf("b has %+v", b.Status.Conditions)
		}

		return nil
	})
}

func shrinkUnderSubnet(w *world) {
	const rounds = 8
	pools, subnets := make([]*v1alpha1.SubnetPool, rounds), make([]*v1alpha1.Subnet, rounds)
	for i := range rounds {
		pools[i] = w.pool(fmt.Sprintf("p-%d", i), fmt.Sprintf("10.%d.0.0/23", i), "")
		w.create(pools[i])
		subnets[i] = w.forged(pools[i].Name, fmt.Sprintf("s-%d", i), fmt.Sprintf("10.%d.1.0/24", i))
		// A Subnet inside of both ranges, which is checked when the pool is open.
		inside := w.forged(pools[i].Name, fmt.Sprintf("in-%d", i), fmt.Sprintf("10.%d.0.0/25", i))
		w.create(inside)
		w.judged(inside, v1alpha1.SubnetAllocated)
	}
	must(w.t, inParallel(2*rounds, 2*rounds, func(i int) error {
		if i%2 == 0 {
			return w.c.Create(w.t.Context(), subnets[i/2])
		}

		return w.resize(pools[i/2].Name, fmt.Sprintf("10.%d.0.0/24", i/2))
	})())
	for i := range rounds {
		w.eventually(fmt.Sprintf("round %d is decided", i), func() error { return w.keptOrFailed(pools[i], subnets[i]) })
	}
}

// keptOrFailed returns an error until a pool has shrunk and a Subnet outside of its new
// range is Failed, or the pool reports that the Subnet is in use. An Allocated Subnet outside
// of its pool fails the test.
func (w *world) keptOrFailed(p *v1alpha1.SubnetPool, s *v1alpha1.Subnet) error {
	if err := errors.Join(w.get(s), w.get(p)); err != nil {
		return err
	}
	switch shrunk := p.Open() == p.Spec.CIDR; s.Status.Phase {
	case v1alpha1.SubnetAllocated:
		if shrunk {
			w.t.Fatalf("%s is Allocated, and its pool has %s", s.Spec.CIDR, p.Open())
		}
		if ready(p.Status.Conditions, metav1.ConditionFalse, "InUse") {
			return nil
		}
	case v1alpha1.SubnetFailed:
		if shrunk {
			return nil
		}
	case v1alpha1.SubnetPending:
	}

	return fmt.Errorf("the Subnet is %+v, the pool is %+v", s.Status, p.Status)
}

func childGrows(w *world) {
	taken, c := w.forged("root", "taken", "10.0.0.128/25"), w.pool("c", "10.0.0.0/25", "root")
	w.create(w.pool("root", "10.0.0.0/16", ""), taken, c)
	w.judged(taken, v1alpha1.SubnetAllocated)
	inner := w.exact("c", "inner", "10.0.0.0/26")
	w.create(inner)
	w.bound(inner)
	w.patch(c, func() { c.Spec.CIDR = "10.0.0.0/24" })
	over, beside := w.exact("c", "over", "10.0.0.128/26"), w.exact("c", "beside", "10.0.0.64/26")
	w.create(over, beside)
	w.refused(c, "OutsideBlock")
	w.bound(beside) // what is both in spec and status is still available
	w.eventually("the block beyond is not allocated", func() error {
		if err := w.get(over); err != nil {
			return err
		}
		if len(over.Status.Conditions) == 0 {
			return errors.New("the claim reports nothing")
		}

		return nil
	})
}

func nameOfOtherPool(w *world) {
	squatter := newSubnet(w.ns, "p-10-0-0-0-24", "10.9.0.0/24")
	squatter.Spec.PoolRef = "q"
	w.create(w.pool("p", "10.0.0.0/16", ""), w.pool("q", "10.9.0.0/16", ""), squatter)
	for _, name := range []string{"one", "two"} {
		claim := w.claim("p", name, 24)
		w.create(claim)
		w.bound(claim)
	}
}

func nameOfFailed(w *world) {
	w.create(w.pool("p", "10.0.0.0/16", ""))
	allocated(w.t, w.c, newSubnet(w.ns, "first", "10.0.9.0/24"))
	failed := newSubnet(w.ns, "p-10-0-5-0-24", "10.0.9.0/25")
	w.create(failed)
	w.judged(failed, v1alpha1.SubnetFailed)
	claim := w.exact("p", "claim", "10.0.5.0/24")
	w.create(claim)
	w.bound(claim)
	awaitStatus(w.t, w.c, w.pool("p", "", ""), 2, map[string]int64{"24": 254})
}

func nameOfOtherBlock(w *world) {
	pool := w.pool("p", "10.0.0.0/16", "")
	w.create(pool)
	squatter := newSubnet(w.ns, "p-10-0-1-0-24", "10.0.200.0/24")
	allocated(w.t, w.c, squatter)
	for _, name := range []string{"one", "two", "three"} {
		claim := w.claim("p", name, 24)
		w.create(claim)
		w.bound(claim)
	}
	awaitStatus(w.t, w.c, pool, 4, map[string]int64{"24": 252})
	w.remove(squatter)
	again := w.exact("p", "again", "10.0.200.0/24")
	w.create(again)
	w.bound(again)
	awaitStatus(w.t, w.c, pool, 4, map[string]int64{"24": 252})
}

func nameOfBacking(w *world) {
	squatter := newSubnet(w.ns, "pool.lab", "10.1.0.0/24")
	squatter.Spec.PoolRef = "q"
	w.create(w.pool("p", "10.0.0.0/16", ""), w.pool("q", "10.1.0.0/16", ""), squatter)
	w.judged(squatter, v1alpha1.SubnetAllocated)
	claim := w.claim("lab", "c", 24)
	w.create(w.pool("lab", "10.0.16.0/20", "p"), claim)
	w.bound(claim)
}

// awaitPoolClaim waits until a SubnetPoolClaim has a reason.
func (w *world) awaitPoolClaim(claim *v1alpha1.SubnetPoolClaim, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("the SubnetPoolClaim %s reports %s", claim.Name, reason), func() error {
		if err := w.get(claim); err != nil {
			return err
		}
		if !ready(claim.Status.Conditions, status, reason) {
			return fmt.Errorf("it is %+v", claim.Status)
		}

		return nil
	})
}

func foreignClaim(w *world) {
	foreign, claim := w.claim("root", "x", 24), w.poolClaim("x", "root", 20)
	w.create(w.pool("root", "10.0.0.0/16", ""), foreign)
	w.bound(foreign)
	w.create(claim)
	w.awaitPoolClaim(claim, metav1.ConditionFalse, "NameTaken")
	w.remove(foreign)
	w.awaitPoolClaim(claim, metav1.ConditionTrue, "Bound")
}

func foreignPool(w *world) {
	foreign, claim := w.pool("x", "10.9.0.0/16", ""), w.poolClaim("x", "root", 20)
	w.create(w.pool("root", "10.0.0.0/16", ""), foreign, claim)
	w.awaitPoolClaim(claim, metav1.ConditionFalse, "NameTaken")
	w.remove(foreign)
	w.awaitPoolClaim(claim, metav1.ConditionTrue, "Bound")
}

// observed waits until the manager has seen pools and protects them.
func (w *world) observed(pools ...*v1alpha1.SubnetPool) {
	w.t.Helper()
	for _, p := range pools {
		w.eventually("pool "+p.Name+" has a finalizer and a status", func() error {
			if err := w.get(p); err != nil {
				return err
			}
			if len(p.Finalizers) == 0 || p.Status.ObservedGeneration == 0 {
				return fmt.Errorf("it has the finalizers %v and the status %+v", p.Finalizers, p.Status)
			}

			return nil
		})
	}
}

func ringOfOne(w *world) {
	x := w.pool("x", "10.0.0.0/16", "x")
	w.create(x)
	w.observed(x)
	w.refused(x, "ParentCycle")
	w.remove(x)
	w.gone(x)
}

func ringOfTwo(w *world) {
	a, b := w.pool("a", "10.0.0.0/16", "b"), w.pool("b", "10.0.0.0/16", "a")
	w.create(a, b)
	w.observed(a, b)
	w.refused(a, "ParentCycle")
	w.refused(b, "ParentCycle")
	w.remove(a, b)
	w.gone(a, b)
}

func sloppyChildDeleted(w *world) {
	parent, sloppy := w.pool("parent", "10.0.0.0/8", ""), w.pool("sloppy", "010.1.0.0/16", "parent")
	// Something else keeps the child, so that the parent has to wait for it.
	sloppy.Finalizers = []string{"test.arbor.io/keep"}
	w.create(parent, sloppy)
	w.observed(parent, sloppy)
	w.remove(parent)
	w.remove(sloppy)
	w.barrier()
	w.eventually("only something else keeps the child", func() error {
		if err := w.get(sloppy); err != nil {
			return err
		}
		if len(sloppy.Finalizers) != 1 {
			return fmt.Errorf("it has the finalizers %v", sloppy.Finalizers)
		}

		return nil
	})
	w.patch(sloppy, func() { sloppy.Finalizers = nil })
	w.gone(sloppy, parent)
}

func labelMoved(w *world) {
	p, q, c := w.pool("p", "10.0.0.0/16", ""), w.pool("q", "10.1.0.0/16", ""), w.pool("c", "10.0.0.0/17", "")
	c.Labels = map[string]string{v1alpha1.ParentLabel: "p"}
	w.create(p, q, c)
	inner := w.claim("c", "inner", 24)
	w.create(inner)
	w.bound(inner)
	w.patch(c, func() { c.Labels[v1alpha1.ParentLabel] = "q" })
	w.barrier()
	free := w.exact("p", "free", "10.0.0.0/24")
	w.create(free)
	w.waits(free, "RequestedCIDRTaken")
	w.eventually("the parent has it delegated, and the other pool has not", func() error {
		if err := errors.Join(w.get(p), w.get(q)); err != nil {
			return err
		}
		if p.Status.DelegatedCount != 1 || q.Status.DelegatedCount != 0 {
			return fmt.Errorf("%d and %d are delegated", p.Status.DelegatedCount, q.Status.DelegatedCount)
		}

		return nil
	})
}

func subnetOfBoundFailed(w *world) {
	w.create(w.pool("p", "10.0.0.0/16", ""))
	claim := w.claim("p", "claim", 24)
	w.create(claim)
	w.bound(claim)
	s := newSubnet(w.ns, claim.Status.SubnetRef, "")
	must(w.t, w.get(s))
	s.Status.Phase = v1alpha1.SubnetFailed
	must(w.t, w.c.Status().Update(w.t.Context(), s))
	w.eventually("the claim is not ready", func() error {
		if err := w.get(claim); err != nil {
			return err
		}
		if !ready(claim.Status.Conditions, metav1.ConditionFalse, "SubnetLost") {
			return fmt.Errorf("it is %+v", claim.Status)
		}

		return nil
	})
}

// Pools whose CIDR passes the schema and is not one that blocks can be taken from have a status
// that reports it, whether they are created or changed that way.
func TestUnusableCIDR(t *testing.T) { //nolint:tparallel // the cases share a manager, the tests do not
	c := newClient(t)
	server.StartManager(t, only, noWebhooks)

	cases := map[string]struct {
		reason, cidr string
		want         string
	}{
		"NotMasked": {"Bits behind the length.", "10.0.0.5/24", "NotMasked"},
		"Mapped":    {"IPv4 written as IPv6.", "::ffff:10.0.0.0/104", "IPv4AsIPv6"},
		"Sloppy":    {"Leading zeros, which Kubernetes accepts and net/netip does not.", "010.1.0.0/16", "InvalidCIDR"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c)
			created, changed := w.pool("created", tc.cidr, ""), w.pool("changed", "10.128.0.0/16", "")
			s := newSubnet(w.ns, "by-hand", "10.0.0.0/28")
			s.Spec.PoolRef = "created"
			w.create(created, changed, s)
			had := w.claim("changed", "had", 24)
			w.create(had)
			w.bound(had)
			w.patch(changed, func() { changed.Spec.CIDR = tc.cidr })
			for _, p := range []*v1alpha1.SubnetPool{created, changed} {
				w.refused(p, tc.want)
				claim := w.claim(p.Name, "of-"+p.Name, 28)
				w.create(claim)
				w.waits(claim, "PoolNotReady", "PoolInvalid", "PoolExhausted")
			}
			must(t, w.get(s))
			if s.Status.Phase == v1alpha1.SubnetAllocated {
				t.Errorf("%s\na Subnet is Allocated in a pool of %s", tc.reason, tc.cidr)
			}
			// Nothing is taken away from a claim, and a correction heals the pool.
			w.bound(had)
			w.patch(changed, func() { changed.Spec.CIDR = "10.128.0.0/16" })
			w.bound(w.claim("", "of-changed", 0))
		})
	}
}

// One block for each clusterID of a pool, also if two managers serve at once.
func TestSameClusterTwoManagers(t *testing.T) {
	const clusters, each = 25, 4
	c := newClient(t)
	w := newWorld(t, c)
	w.create(w.pool("p", "10.0.0.0/16", ""))
	server.StartManager(t, only, noWebhooks)
	server.StartManager(t, only, noWebhooks)
	must(t, inParallel(8, clusters*each, func(i int) error {
		claim := w.claim("p", fmt.Sprintf("c-%d", i), int32(24+i%3))
		claim.Spec.ClusterID = fmt.Sprintf("cluster-%d", i/each)

		return c.Create(t.Context(), claim)
	})())
	w.eventually("each cluster has one block, and the other claims report why not", func() error {
		bound, told, err := w.byCluster()
		if err != nil {
			return err
		}
		if len(bound) != clusters || told != clusters*(each-1) {
			return fmt.Errorf("%d clusters have a block, %d claims report ClusterIDInUse", len(bound), told)
		}

		return nil
	})
	cluster.Eventually(t, "there is one Subnet for each cluster", func() error {
		list := &v1alpha1.SubnetList{}
		must(t, c.List(t.Context(), list, client.InNamespace(w.ns)))
		if len(list.Items) != clusters {
			return fmt.Errorf("there are %d Subnets", len(list.Items))
		}

		return nil
	})
}

// byCluster returns the claims that are Bound, by clusterID, and how many report that their cluster
// has a block. Two Bound ones of a cluster fail the test.
func (w *world) byCluster() (bound map[string]string, told int, err error) {
	list := &v1alpha1.SubnetClaimList{}
	if err := w.c.List(w.t.Context(), list, client.InNamespace(w.ns)); err != nil {
		return nil, 0, err
	}
	bound = map[string]string{}
	for _, claim := range list.Items {
		switch {
		case claim.Status.Phase == v1alpha1.ClaimBound && bound[claim.Spec.ClusterID] != "":
			w.t.Fatalf("%s and %s of %s are bound", bound[claim.Spec.ClusterID], claim.Name, claim.Spec.ClusterID)
		case claim.Status.Phase == v1alpha1.ClaimBound:
			bound[claim.Spec.ClusterID] = claim.Name
		case ready(claim.Status.Conditions, metav1.ConditionFalse, "ClusterIDInUse"):
			told++
		}
	}

	return bound, told, nil
}
