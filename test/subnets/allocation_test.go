package subnets_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

const only = "--controllers=subnets"

func newPool(ns, name, cidr string) *v1alpha1.SubnetPool {
	return &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.SubnetPoolSpec{CIDR: cidr}}
}

func newClaim(ns, name string, size int32) *v1alpha1.SubnetClaim {
	return &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: name, BlockSize: &size},
	}
}

func newSubnet(ns, name, cidr string) *v1alpha1.Subnet {
	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v1alpha1.SubnetSpec{PoolRef: "p", CIDR: cidr, ClusterID: name},
	}
}

func awaitClaim(t *testing.T, c client.Client, claim *v1alpha1.SubnetClaim, phase v1alpha1.ClaimPhase, reason string) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("claim %s is %s, %s", claim.Name, phase, reason), func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		for _, cond := range claim.Status.Conditions {
			if claim.Status.Phase == phase && cond.Type == v1alpha1.ConditionReady && cond.Reason == reason {
				return nil
			}
		}

		return fmt.Errorf("it is %+v", claim.Status)
	})
}

func awaitSubnet(t *testing.T, c client.Client, s *v1alpha1.Subnet, phase v1alpha1.SubnetPhase) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("Subnet %s is %s", s.Name, phase), func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		if s.Status.Phase != phase {
			return fmt.Errorf("it is %+v", s.Status)
		}

		return nil
	})
}

// awaitStatus waits until a pool's status reports what a count of its Subnets returns.
func awaitStatus(t *testing.T, c client.Client, pool *v1alpha1.SubnetPool, count int64, free map[string]int64) {
	t.Helper()
	cluster.Eventually(t, "the status is true", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil {
			return err
		}
		if pool.Status.AllocatedCount != count || pool.Status.ObservedGeneration != pool.Generation {
			return fmt.Errorf("%d are allocated, want %d: %+v", pool.Status.AllocatedCount, count, pool.Status)
		}
		for size, n := range free {
			if got := pool.Status.FreeCountBySize[size]; got != n {
				return fmt.Errorf("%d of %s are free, want %d", got, size, n)
			}
		}

		return nil
	})
}

func TestClaims(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only)
	ns := cluster.Namespace(t, c)
	early := newClaim(ns, "early", 25)
	must(t, c.Create(t.Context(), early))
	awaitClaim(t, c, early, v1alpha1.ClaimPending, "PoolNotFound")

	pool := newPool(ns, "p", "10.0.0.0/24")
	must(t, c.Create(t.Context(), pool))
	awaitClaim(t, c, early, v1alpha1.ClaimBound, "Allocated")
	if early.Status.AllocatedCIDR != "10.0.0.0/25" || early.Status.SubnetRef != "p-10-0-0-0-25" {
		t.Errorf("it got %+v", early.Status)
	}
	awaitStatus(t, c, pool, 1, map[string]int64{"24": 0, "/25": 1, "26": 2, "/32": 128})

	second, third := newClaim(ns, "second", 25), newClaim(ns, "third", 26)
	must(t, c.Create(t.Context(), second))
	awaitClaim(t, c, second, v1alpha1.ClaimBound, "Allocated")
	must(t, c.Create(t.Context(), third))
	awaitClaim(t, c, third, v1alpha1.ClaimPending, "PoolExhausted")

	// A release wakes claims that wait.
	must(t, c.Delete(t.Context(), early))
	awaitClaim(t, c, third, v1alpha1.ClaimBound, "Allocated")
	awaitStatus(t, c, pool, 2, map[string]int64{"26": 1})

	t.Run("Refused", func(t *testing.T) {
		large, outside := newClaim(ns, "large", 20), newClaim(ns, "outside", 0)
		outside.Spec.BlockSize, outside.Spec.RequestedCIDR = nil, "10.9.0.0/25"
		must(t, c.Create(t.Context(), large))
		must(t, c.Create(t.Context(), outside))
		awaitClaim(t, c, large, v1alpha1.ClaimError, "BlockSizeRefused")
		awaitClaim(t, c, outside, v1alpha1.ClaimError, "OutsidePool")
	})
	t.Run("Exact", func(t *testing.T) {
		taken, free := newClaim(ns, "taken", 0), newClaim(ns, "free", 0)
		taken.Spec.BlockSize, taken.Spec.RequestedCIDR = nil, "10.0.0.200/26" // not masked, and in the second one's half
		free.Spec.BlockSize, free.Spec.RequestedCIDR = nil, "10.0.0.64/27"
		must(t, c.Create(t.Context(), taken))
		must(t, c.Create(t.Context(), free))
		awaitClaim(t, c, taken, v1alpha1.ClaimPending, "RequestedCIDRTaken")
		awaitClaim(t, c, free, v1alpha1.ClaimBound, "Allocated")
	})
	t.Run("SameCluster", func(t *testing.T) {
		again := newClaim(ns, "again", 28)
		again.Spec.ClusterID = "second"
		must(t, c.Create(t.Context(), again))
		awaitClaim(t, c, again, v1alpha1.ClaimPending, "ClusterIDInUse")
	})
	t.Run("SubnetLost", func(t *testing.T) {
		must(t, c.Delete(t.Context(), newSubnet(ns, second.Status.SubnetRef, "10.0.0.128/25")))
		awaitClaim(t, c, second, v1alpha1.ClaimBound, "SubnetLost")
	})
}

// Subnets of users are checked like all other Subnets.
func TestHandMade(t *testing.T) {
	c := newClient(t)
	ns := cluster.Namespace(t, c)
	first, second := newSubnet(ns, "first", "10.0.0.0/24"), newSubnet(ns, "second", "10.0.0.128/25")
	outside := newSubnet(ns, "outside", "10.1.0.0/24")
	for _, s := range []*v1alpha1.Subnet{first, second, outside} {
		must(t, c.Create(t.Context(), s))
	}
	server.StartManager(t, only)
	cluster.Eventually(t, "the first one waits for its pool", func() error {
		list := &corev1.EventList{}
		must(t, c.List(t.Context(), list, client.InNamespace(ns)))
		for _, e := range list.Items {
			if e.InvolvedObject.Name == "first" && e.Reason == "PoolNotFound" {
				return nil
			}
		}

		return errors.New("there is no event")
	})
	pool := newPool(ns, "p", "10.0.0.0/16")
	must(t, c.Create(t.Context(), pool))
	awaitSubnet(t, c, first, v1alpha1.SubnetAllocated)
	awaitSubnet(t, c, second, v1alpha1.SubnetFailed)
	awaitSubnet(t, c, outside, v1alpha1.SubnetFailed)
	awaitStatus(t, c, pool, 1, map[string]int64{"24": 255})
}

// The status of a parent follows its children, and reports what can really be allocated.
func TestChildPools(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only)
	ns := cluster.Namespace(t, c)
	pool, child := newPool(ns, "p", "10.0.0.0/16"), newPool(ns, "child", "10.0.0.0/17")
	child.Spec.Parent = "p"
	must(t, c.Create(t.Context(), pool))
	must(t, c.Create(t.Context(), child))
	allocatable := func(delegated, free int64) {
		t.Helper()
		cluster.Eventually(t, "the parent counts its children", func() error {
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
			s := pool.Status
			if s.DelegatedCount != delegated || s.AllocatableCountBySize["24"] != free || s.FreeCountBySize["24"] != 256 {
				return fmt.Errorf("status is %+v", s)
			}

			return nil
		})
	}
	allocatable(1, 128)
	// A smaller child keeps its block, and can grow again inside of it.
	for _, cidr := range []string{"10.0.0.0/18", "10.0.0.0/17"} {
		resize(t, c, child, cidr)
		cluster.Eventually(t, "the child has "+cidr, func() error {
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(child), child))
			if child.Open() != cidr {
				return fmt.Errorf("status is %+v", child.Status)
			}

			return nil
		})
		allocatable(1, 128)
	}
	must(t, c.Delete(t.Context(), child))
	allocatable(0, 256)

	resize(t, c, pool, "10.0.0.0/15")
	awaitStatus(t, c, pool, 0, map[string]int64{"24": 512})
}

// A pool taken from a pool: its block is the parent's, and is not free again
// before the last thing that lives in it is gone.
func TestPoolClaims(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only)
	ns := cluster.Namespace(t, c)
	parent := newPool(ns, "parent", "10.0.0.0/16")
	must(t, c.Create(t.Context(), parent))
	claim := &v1alpha1.SubnetPoolClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"},
		Spec:       v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "parent", DesiredBlockSize: 20},
	}
	must(t, c.Create(t.Context(), claim))
	cluster.Eventually(t, "the claim has its pool", func() error {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		if claim.Status.Phase != v1alpha1.ClaimBound || claim.Status.BoundPoolName != "p" {
			return fmt.Errorf("it is %+v", claim.Status)
		}

		return nil
	})
	inner := newClaim(ns, "inner", 24)
	must(t, c.Create(t.Context(), inner))
	awaitClaim(t, c, inner, v1alpha1.ClaimBound, "Allocated")
	if inner.Status.AllocatedCIDR != "10.0.0.0/24" {
		t.Errorf("it got %s", inner.Status.AllocatedCIDR)
	}

	must(t, c.Delete(t.Context(), claim))
	child := newPool(ns, "p", "")
	cluster.Eventually(t, "the pool must be deleted, and waits", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
			t.Fatalf("the pool was deleted with a block in it: %v", err)
		}
		if child.DeletionTimestamp == nil {
			return errors.New("not yet")
		}

		return nil
	})
	block := &v1alpha1.Subnet{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "parent-10-0-0-0-20"}, block); err != nil || block.DeletionTimestamp != nil {
		t.Errorf("its block went before it: %v", err)
	}

	must(t, c.Delete(t.Context(), inner))
	cluster.Eventually(t, "everything is gone", func() error {
		for _, o := range []client.Object{claim.DeepCopy(), child.DeepCopy(), block.DeepCopy()} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is still there: %w", o, err)
			}
		}

		return nil
	})
	awaitStatus(t, c, parent, 0, map[string]int64{"20": 16})
}

// The claim for a pool's block cannot be taken from under it: it is deleted with the claim for the
// pool.
func TestBlockOfPoolClaim(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only)
	ns := cluster.Namespace(t, c)
	must(t, c.Create(t.Context(), newPool(ns, "p", "10.0.0.0/16")))
	claim := &v1alpha1.SubnetPoolClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "child"},
		Spec:       v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "p", DesiredBlockSize: 20},
	}
	must(t, c.Create(t.Context(), claim))
	block := newClaim(ns, "child", 0)
	awaitClaim(t, c, block, v1alpha1.ClaimBound, "Allocated")
	cluster.Eventually(t, "it counts as delegated, once", func() error {
		pool := newPool(ns, "p", "")
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		if pool.Status.DelegatedCount != 1 || pool.Status.AllocatedCount != 0 || pool.Status.AllocatableCountBySize["20"] != 15 {
			return fmt.Errorf("status is %+v", pool.Status)
		}

		return nil
	})
	must(t, c.Delete(t.Context(), block))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(block), block))
	if block.DeletionTimestamp == nil {
		t.Error("it is not even to be deleted")
	}
	must(t, c.Delete(t.Context(), claim))
	cluster.Eventually(t, "both claims are gone", func() error {
		for _, o := range []client.Object{block.DeepCopy(), claim.DeepCopy()} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is there: %w", o, err)
			}
		}

		return nil
	})
}

// What another implementation of the API left behind is taken over as it is:
// claims that do not name their Subnet, and claims and pools with names that
// were generated.
func TestTakeover(t *testing.T) {
	c := newClient(t)
	ns := cluster.Namespace(t, c)
	must(t, c.Create(t.Context(), newPool(ns, "p", "10.0.0.0/16")))
	bind := func(claim *v1alpha1.SubnetClaim, cidr string) *v1alpha1.Subnet {
		t.Helper()
		must(t, c.Create(t.Context(), claim))
		claim.Status.Phase, claim.Status.AllocatedCIDR = v1alpha1.ClaimBound, cidr
		must(t, c.Status().Update(t.Context(), claim))
		s := newSubnet(ns, "s-"+claim.Name, cidr)
		s.Spec.ClusterID, s.Spec.ClaimRef = claim.Spec.ClusterID, &v1alpha1.ClaimReference{Name: claim.Name, UID: claim.UID}
		must(t, c.Create(t.Context(), s))
		s.Status.Phase = v1alpha1.SubnetAllocated
		must(t, c.Status().Update(t.Context(), s))

		return s
	}
	plain := newClaim(ns, "plain", 24)
	held := bind(plain, "10.0.0.0/24")

	poolClaim := &v1alpha1.SubnetPoolClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "child"},
		Spec:       v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "p", DesiredBlockSize: 20},
	}
	must(t, c.Create(t.Context(), poolClaim))
	owner := *metav1.NewControllerRef(poolClaim, v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolClaimKind))
	inner := newClaim(ns, "child-abcde", 20)
	inner.OwnerReferences = []metav1.OwnerReference{owner}
	bind(inner, "10.0.16.0/20")
	pool := newPool(ns, "child-fghij", "10.0.16.0/20")
	pool.OwnerReferences, pool.Labels = inner.OwnerReferences, map[string]string{v1alpha1.ParentLabel: "p"}
	must(t, c.Create(t.Context(), pool))
	poolClaim.Status.Phase, poolClaim.Status.BoundPoolName = v1alpha1.ClaimBound, pool.Name
	must(t, c.Status().Update(t.Context(), poolClaim))

	server.StartManager(t, only)
	awaitClaim(t, c, plain, v1alpha1.ClaimBound, "Allocated")
	if plain.Status.SubnetRef != held.Name {
		t.Errorf("it has %q, want %s", plain.Status.SubnetRef, held.Name)
	}
	awaitClaim(t, c, inner, v1alpha1.ClaimBound, "Allocated")
	cluster.Eventually(t, "the pool claim is as it was, and reports it", func() error {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(poolClaim), poolClaim))
		if poolClaim.Status.Phase != v1alpha1.ClaimBound || poolClaim.Status.BoundPoolName != pool.Name || poolClaim.Status.ObservedGeneration == 0 {
			return fmt.Errorf("it is %+v", poolClaim.Status)
		}

		return nil
	})
	parent := newPool(ns, "p", "")
	awaitStatus(t, c, parent, 1, map[string]int64{"24": 255})
	cluster.Eventually(t, "nothing is wrong", func() error {
		out, errs, code := server.Arbor(t, "pools", "check", "-n", ns)
		if code != 0 {
			return errors.New(out + errs)
		}

		return nil
	})
	must(t, c.Delete(t.Context(), poolClaim))
	cluster.Eventually(t, "what was generated goes with it", func() error {
		for _, o := range []client.Object{inner.DeepCopy(), pool.DeepCopy(), poolClaim.DeepCopy()} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is there: %w", o, err)
			}
		}

		return nil
	})
}

// resize gives a pool another prefix.
func resize(t *testing.T, c client.Client, p *v1alpha1.SubnetPool, cidr string) {
	t.Helper()
	base := p.DeepCopy()
	p.Spec.CIDR = cidr
	must(t, c.Patch(t.Context(), p, client.MergeFrom(base)))
}

// twoManagersClaims is how many claims TestTwoManagers creates. It kills a manager after each part
// of twoManagersPart claims.
var twoManagersClaims = flag.Int("claims", 800, "how many claims TestTwoManagers creates")

const twoManagersPart = 160

// Two managers both act as leader, create blocks of many sizes, and are killed again and again: no
// block is allocated twice, and every claim is bound.
func TestTwoManagers(t *testing.T) {
	claims, kills := *twoManagersClaims, *twoManagersClaims/twoManagersPart
	c := newClient(t)
	ns := cluster.Namespace(t, c)
	pool := newPool(ns, "p", "10.0.0.0/12")
	must(t, c.Create(t.Context(), pool))
	managers := []*cluster.Manager{server.StartManager(t, only), server.StartManager(t, only)}

	var created atomic.Int64
	wait := inParallel(8, claims, func(i int) error {
		defer created.Add(1)

		return c.Create(t.Context(), newClaim(ns, fmt.Sprintf("c-%d", i), int32(22+i%7)))
	})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range kills {
		cluster.Eventually(t, "there is enough to be interrupted at", func() error {
			if n := created.Load(); n < int64((2*i+1)*claims/(2*kills)) {
				return fmt.Errorf("%d claims", n)
			}

			return nil
		})
		victim := random.IntN(len(managers))
		managers[victim].Kill()
		managers[victim] = server.LaunchManager(t, only)
	}
	must(t, wait())
	// In parts, because each is waited for only so long and two managers that
	// share two cores with everything else take their time.
	const parts = 10
	for part := 1; part <= parts; part++ {
		cluster.Eventually(t, fmt.Sprintf("%d of %d parts of the claims are bound", part, parts), func() error {
			list, bound := &v1alpha1.SubnetClaimList{}, 0
			must(t, c.List(t.Context(), list, client.InNamespace(ns)))
			for _, claim := range list.Items {
				if claim.Status.Phase == v1alpha1.ClaimBound {
					bound++
				}
			}
			if bound < claims*part/parts {
				return fmt.Errorf("%d of %d", bound, claims)
			}

			return nil
		})
	}
	cluster.Eventually(t, "what was taken twice for one claim is released", func() error {
		subnets := &v1alpha1.SubnetList{}
		must(t, c.List(t.Context(), subnets, client.InNamespace(ns)))
		if err := collisions(subnets.Items); err != nil {
			t.Fatal(err)
		}
		if len(subnets.Items) != claims {
			return fmt.Errorf("%d Subnets for %d claims", len(subnets.Items), claims)
		}

		return nil
	})
	awaitStatus(t, c, pool, int64(claims), nil)
	awaitSound(t, ns, fmt.Sprintf("checked 1 pool, %d subnets, %d claims: nothing wrong", claims, claims))
}

// inParallel does something for every number below n, some at once.
func inParallel(some, n int, do func(int) error) (wait func() error) {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		errs = make([]error, n)
	)
	for range some {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		})
	}

	return func() error {
		wg.Wait()

		return errors.Join(errs...)
	}
}

// A database that comes back without any status: every block is checked again, and every claim
// keeps its block.
func TestRestored(t *testing.T) {
	const claims = 40
	c := newClient(t)
	ns := cluster.Namespace(t, c)
	m := server.StartManager(t, only)
	pool := newPool(ns, "p", "10.0.0.0/16")
	must(t, c.Create(t.Context(), pool))
	had := map[string]string{}
	for i := range claims {
		must(t, c.Create(t.Context(), newClaim(ns, fmt.Sprintf("c-%d", i), int32(24+i%4))))
	}
	for i := range claims {
		claim := newClaim(ns, fmt.Sprintf("c-%d", i), 0)
		awaitClaim(t, c, claim, v1alpha1.ClaimBound, "Allocated")
		had[claim.Name] = claim.Status.AllocatedCIDR
	}
	awaitStatus(t, c, pool, claims, nil)
	m.Kill()

	subnets, bound := &v1alpha1.SubnetList{}, &v1alpha1.SubnetClaimList{}
	must(t, c.List(t.Context(), subnets, client.InNamespace(ns)))
	for i := range subnets.Items {
		subnets.Items[i].Status = v1alpha1.SubnetStatus{}
		must(t, c.Status().Update(t.Context(), &subnets.Items[i]))
	}
	must(t, c.List(t.Context(), bound, client.InNamespace(ns)))
	for i := range bound.Items {
		bound.Items[i].Status = v1alpha1.SubnetClaimStatus{}
		must(t, c.Status().Update(t.Context(), &bound.Items[i]))
	}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
	pool.Status = v1alpha1.SubnetPoolStatus{}
	must(t, c.Status().Update(t.Context(), pool))

	server.StartManager(t, only)
	for name, cidr := range had {
		claim := newClaim(ns, name, 0)
		awaitClaim(t, c, claim, v1alpha1.ClaimBound, "Allocated")
		if claim.Status.AllocatedCIDR != cidr {
			t.Errorf("%s had %s and has %s", name, cidr, claim.Status.AllocatedCIDR)
		}
	}
	awaitStatus(t, c, pool, claims, nil)
}

// A child pool made by hand waits, like any other, until nothing lives in it.
func TestChildPoolInUse(t *testing.T) {
	c := newClient(t)
	startAdmission(t, c)
	ns := cluster.Namespace(t, c)
	parent, p := newPool(ns, "parent", "10.0.0.0/16"), child(ns, "p", "10.0.0.0/20", "parent")
	must(t, c.Create(t.Context(), parent))
	must(t, c.Create(t.Context(), p))
	s := newSubnet(ns, "inside", "10.0.0.0/24")
	allocated(t, c, s) // not before its pool is guarded
	cluster.Eventually(t, "the parent is guarded too", func() error {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(parent), parent))
		if len(parent.Finalizers) == 0 {
			return errors.New("it has no finalizer")
		}

		return nil
	})

	must(t, c.Delete(t.Context(), p))
	must(t, c.Delete(t.Context(), parent))
	// The manager's cache has heard of that when it has a pool that is made later.
	marker := newPool(ns, "marker", "10.9.0.0/16")
	must(t, c.Create(t.Context(), marker))
	awaitStatus(t, c, marker, 0, nil)
	late := newClaim(ns, "late", 24)
	must(t, c.Create(t.Context(), late))
	awaitClaim(t, c, late, v1alpha1.ClaimPending, "PoolInvalid") // nothing more is taken from it
	for _, pool := range []*v1alpha1.SubnetPool{p, parent} {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
	}
	must(t, c.Delete(t.Context(), s))
	cluster.Eventually(t, "both pools are gone", func() error {
		for _, pool := range []*v1alpha1.SubnetPool{p, parent} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is there: %w", pool.Name, err)
			}
		}

		return nil
	})
}

// Two claims of one cluster that come at the same moment get one block.
func TestSameClusterAtOnce(t *testing.T) {
	c := newClient(t)
	ns := cluster.Namespace(t, c)
	must(t, c.Create(t.Context(), newPool(ns, "p", "10.0.0.0/16")))
	for i := range 10 {
		claim := newClaim(ns, fmt.Sprintf("c-%d", i), 24)
		claim.Spec.ClusterID = "same"
		must(t, c.Create(t.Context(), claim))
	}
	server.StartManager(t, only)
	cluster.Eventually(t, "one is bound and the rest report why not", func() error {
		list := &v1alpha1.SubnetClaimList{}
		must(t, c.List(t.Context(), list, client.InNamespace(ns)))
		bound, told := 0, 0
		for _, claim := range list.Items {
			for _, cond := range claim.Status.Conditions {
				if cond.Reason == "Allocated" {
					bound++
				}
				if cond.Reason == "ClusterIDInUse" {
					told++
				}
			}
		}
		if bound > 1 {
			t.Fatalf("%d are bound", bound)
		}
		if bound != 1 || told != 9 {
			return fmt.Errorf("%d are bound, %d report the reason", bound, told)
		}

		return nil
	})
}

// collisions finds Allocated Subnets that overlap, by comparing all with all.
func collisions(all []v1alpha1.Subnet) error {
	var found error
	var allocated []netip.Prefix
	for _, s := range all {
		if s.Status.Phase == v1alpha1.SubnetAllocated {
			allocated = append(allocated, netip.MustParsePrefix(s.Spec.CIDR))
		}
	}
	for i, a := range allocated {
		for _, b := range allocated[i+1:] {
			if a.Overlaps(b) {
				found = errors.Join(found, fmt.Errorf("%s overlaps %s", a, b))
			}
		}
	}

	return found
}

// A block whose SubnetPoolClaim went before its finalizer was there to hold it can go.
func TestAbandonedBlock(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only)
	ns := cluster.Namespace(t, c)
	block := newClaim(ns, "gone", 24)
	block.Finalizers = []string{v1alpha1.Finalizer}
	block.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.SubnetPoolClaimKind, Name: "gone", UID: "of-one-that-is-gone", Controller: new(true),
	}}
	must(t, c.Create(t.Context(), block))
	must(t, client.IgnoreNotFound(c.Delete(t.Context(), block)))
	cluster.Eventually(t, "it is gone", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(block), block); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it has the finalizers %v (%w)", block.Finalizers, err)
		}

		return nil
	})
}
