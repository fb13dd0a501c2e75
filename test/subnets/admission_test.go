package subnets_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// startAdmission starts a manager and waits until the API server asks it.
func startAdmission(t *testing.T, c client.Client) *cluster.Manager {
	t.Helper()
	m := server.StartManager(t, only)
	for _, o := range []client.Object{newPool("default", "probe", "10.0.0.1/8"), newSubnet("default", "probe", "10.0.0.1/8")} {
		cluster.Eventually(t, fmt.Sprintf("%T is asked about", o), func() error {
			if err := c.Create(t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("it is not: %w", err)
			}

			return nil
		})
	}

	return m
}

// child is a pool that was taken from another.
func child(ns, name, cidr, parent string) *v1alpha1.SubnetPool {
	p := newPool(ns, name, cidr)
	p.Spec.Parent = parent

	return p
}

// update changes the newest state of a pool, since the manager writes its status
// and its finalizer when it likes.
func update(t *testing.T, c client.Client, p *v1alpha1.SubnetPool, change func()) error {
	t.Helper()
	for {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		change()
		if err := c.Update(t.Context(), p); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func allocated(t *testing.T, c client.Client, s *v1alpha1.Subnet) {
	t.Helper()
	must(t, c.Create(t.Context(), s))
	awaitSubnet(t, c, s, v1alpha1.SubnetAllocated)
}

// A bad tree of pools is rejected at the door, with a message that explains how to fix it.
func TestAdmission(t *testing.T) {
	c := newClient(t)
	startAdmission(t, c)
	ns := cluster.Namespace(t, c)
	must(t, c.Create(t.Context(), newPool(ns, "p", "10.0.0.0/16")))
	must(t, c.Create(t.Context(), child(ns, "taken", "10.0.64.0/18", "p")))
	must(t, c.Create(t.Context(), child(ns, "grandchild", "10.0.64.0/20", "taken")))
	allocated(t, c, newSubnet(ns, "block", "10.0.0.0/24"))
	six := newPool(ns, "six", "fd00::/32")
	must(t, c.Create(t.Context(), six))
	// Admission uses the manager's cache, which has all pools when it has the last.
	awaitStatus(t, c, six, 0, nil)

	cases := map[string]struct {
		reason string
		object client.Object
		want   string // "" means accepted
	}{
		"Beside":          {"Roots may stand side by side.", newPool(ns, "x", "10.1.0.0/16"), ""},
		"NotMasked":       {"A CIDR with bits behind its length is a mistake.", newPool(ns, "x", "10.1.2.3/16"), "10.1.2.3/16 has bits set behind its length"},
		"Roots":           {"Two roots do not share addresses.", newPool(ns, "x", "10.0.0.0/8"), "10.0.0.0/8 overlaps 10.0.0.0/16 of pool p, which is a root pool of this namespace too"},
		"RootsSix":        {"Nor do those of IPv6.", newPool(ns, "x", "fd00::/48"), "fd00::/48 overlaps fd00::/32 of pool six"},
		"Child":           {"A part of the parent that no other pool has.", child(ns, "x", "10.0.128.0/18", "p"), ""},
		"ChildOutside":    {"A child lies in its parent.", child(ns, "x", "10.9.0.0/18", "p"), "10.9.0.0/18 is not inside of 10.0.0.0/16, which its parent p has"},
		"ChildOtherKind":  {"IPv6 does not lie in IPv4.", child(ns, "x", "fd00::/48", "p"), "fd00::/48 is not inside of 10.0.0.0/16"},
		"Siblings":        {"Children do not share addresses.", child(ns, "x", "10.0.64.0/19", "p"), "10.0.64.0/19 overlaps 10.0.64.0/18 of pool taken, which is also taken from p"},
		"ChildOnSubnet":   {"Nor does a child take what a Subnet has.", child(ns, "x", "10.0.0.0/20", "p"), "10.0.0.0/20 overlaps 10.0.0.0/24, which Subnet block has of the parent p"},
		"Itself":          {"A pool is not its own parent.", child(ns, "x", "10.3.0.0/16", "x"), "pool x would be taken from itself: x -> x"},
		"ParentLater":     {"A parent may come later.", child(ns, "x", "10.3.0.0/16", "later"), ""},
		"Length":          {"IPv4 has no /40.", &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.3.0.0/16", MaxBlockSize: new(int32(40))}}, "IPv4 has no prefix of length 40"},
		"Subnet":          {"A block that is free.", newSubnet(ns, "x", "10.0.1.0/24"), ""},
		"SubnetNotMasked": {"Blocks are written by their first address.", newSubnet(ns, "x", "10.0.1.1/24"), "10.0.1.1/24 has bits set behind its length"},
		"SubnetTaken":     {"A block that is not.", newSubnet(ns, "x", "10.0.0.128/25"), "10.0.0.128/25 overlaps 10.0.0.0/24 of Subnet block"},
		"SubnetDelegated": {"Nor one that belongs to a child pool.", newSubnet(ns, "x", "10.0.65.0/24"), "10.0.65.0/24 overlaps 10.0.64.0/18 of the child pool taken"},
		"SubnetOutside":   {"Nor one outside of the pool.", newSubnet(ns, "x", "10.1.0.0/24"), "10.1.0.0/24 is not inside of pool p, 10.0.0.0/16"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), tc.object, client.DryRunAll)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\nit was rejected: %v", tc.reason, err)
			case tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\ngot  %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

// Reviews read caches: a caller cannot make the manager send lists to the API server, and
// safety does not need them, since every Subnet and every pool is checked again before its
// addresses are used.
func TestReviewsFromCache(t *testing.T) {
	c := newClient(t)
	m := startAdmission(t, c)
	ns := cluster.Namespace(t, c)
	pool := newPool(ns, "p", "10.0.0.0/16")
	must(t, c.Create(t.Context(), pool))
	allocated(t, c, newSubnet(ns, "block", "10.0.0.0/24"))
	awaitStatus(t, c, pool, 1, nil)
	before := m.Sum(t, `rest_client_requests_total{method="GET"}`)
	const reviews = 50
	for i := range reviews {
		for _, o := range []client.Object{newPool(ns, "x", fmt.Sprintf("10.%d.0.0/16", i+1)), newSubnet(ns, "x", fmt.Sprintf("10.0.%d.0/24", i+1))} {
			must(t, c.Create(t.Context(), o, client.DryRunAll))
		}
	}
	if sent := m.Sum(t, `rest_client_requests_total{method="GET"}`) - before; sent >= reviews/2 {
		t.Errorf("%v requests to the API server for %d reviews", sent, 2*reviews)
	}
}

// A pool may grow. It may not leave out what is in use.
func TestResize(t *testing.T) {
	c := newClient(t)
	startAdmission(t, c)
	ns := cluster.Namespace(t, c)
	pool := newPool(ns, "p", "10.0.0.0/24")
	must(t, c.Create(t.Context(), pool))
	allocated(t, c, newSubnet(ns, "block", "10.0.0.128/25"))
	waits := newClaim(ns, "waits", 24)
	must(t, c.Create(t.Context(), waits))
	awaitClaim(t, c, waits, v1alpha1.ClaimPending, "PoolExhausted")

	shrink := func(cidr string) error {
		shrunk := newPool(ns, "p", "")

		return update(t, c, shrunk, func() { shrunk.Spec.CIDR = cidr })
	}
	if err := shrink("10.0.0.0/25"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "10.0.0.0/25 leaves out 10.0.0.128/25 of Subnet block, which is in use") {
		t.Errorf("a pool was made smaller than what is in it: %v", err)
	}
	resize(t, c, pool, "10.0.0.0/23")
	awaitClaim(t, c, waits, v1alpha1.ClaimBound, "Allocated")
	if waits.Status.AllocatedCIDR != "10.0.1.0/24" {
		t.Errorf("it got %s", waits.Status.AllocatedCIDR)
	}
	awaitStatus(t, c, pool, 2, map[string]int64{"25": 1})

	over := child(ns, "child", "10.0.0.0/25", "p")
	must(t, c.Create(t.Context(), over))
	awaitStatus(t, c, over, 0, nil) // then admission knows of it
	if err := shrink("10.0.0.0/26"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "leaves out 3 blocks that are in use") {
		t.Errorf("a pool was made smaller than its child: %v", err)
	}
}

// What was stored before there was a rule stays usable: it can be labelled,
// counted, emptied and deleted, and fixed. It cannot be made worse.
func TestStoredBad(t *testing.T) {
	c := newClient(t)
	ns := cluster.Namespace(t, c)
	large, small := newPool(ns, "large", "10.0.0.0/8"), newPool(ns, "small", "10.0.0.0/16")
	must(t, c.Create(t.Context(), large))
	must(t, c.Create(t.Context(), small))
	startAdmission(t, c)

	// Either may be checked first.
	var bad *v1alpha1.SubnetPool
	var worse, good string
	cluster.Eventually(t, "one is rejected", func() error {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(large), large))
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(small), small))
		switch {
		case small.Status.Lost != 0 && large.Open() != "":
			bad, worse, good = small, "10.0.0.0/15", "11.0.0.0/16"
		case large.Status.Lost != 0 && small.Open() != "":
			bad, worse, good = large, "10.0.0.0/7", "12.0.0.0/8"
		default:
			return fmt.Errorf("they are %+v and %+v", large.Status, small.Status)
		}

		return nil
	})

	must(t, update(t, c, bad, func() { bad.Labels = map[string]string{"a": "b"} }))
	must(t, update(t, c, bad, func() { bad.Spec.Strategy = v1alpha1.StrategyBuddy }))
	if err := update(t, c, bad, func() { bad.Spec.CIDR = worse }); !apierrors.IsInvalid(err) {
		t.Errorf("it was made worse: %v", err)
	}
	must(t, update(t, c, bad, func() { bad.Spec.CIDR = good }))
	must(t, c.Delete(t.Context(), bad))
	cluster.Eventually(t, "it is gone", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(bad), bad); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}

		return nil
	})
}
