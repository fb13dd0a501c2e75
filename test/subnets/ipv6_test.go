package subnets_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Linear takes the lowest block, Buddy the smallest free one that fits, in both families.
func TestStrategies(t *testing.T) { //nolint:tparallel // the cases share a manager, the tests do not
	c := newClient(t)
	server.StartManager(t, only, noWebhooks)

	cases := map[string]struct {
		reason            string
		strategy          v1alpha1.Strategy
		pool, taken, want string
		size              int32
	}{
		"LinearFour": {"The lowest address.", v1alpha1.StrategyLinear, "10.0.0.0/16", "10.0.128.0/24", "10.0.0.0/24", 24},
		"BuddyFour":  {"The neighbor of the block that is taken.", v1alpha1.StrategyBuddy, "10.0.0.0/16", "10.0.128.0/24", "10.0.129.0/24", 24},
		"LinearSix":  {"The same of IPv6.", v1alpha1.StrategyLinear, "fd00::/48", "fd00:0:0:8000::/64", "fd00::/64", 64},
		"BuddySix":   {"The same of IPv6.", v1alpha1.StrategyBuddy, "fd00::/48", "fd00:0:0:8000::/64", "fd00:0:0:8001::/64", 64},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c)
			pool, taken, claim := w.pool("p", tc.pool, ""), w.exact("p", "taken", tc.taken), w.claim("p", "claim", tc.size)
			pool.Spec.Strategy = tc.strategy
			w.create(pool, taken)
			w.bound(taken)
			w.create(claim)
			if got := w.bound(claim); got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// Blocks of IPv6 from the claim to the status, in a pool and in a pool of that pool.
func TestIPv6(t *testing.T) {
	c := newClient(t)
	startAdmission(t, c)
	w := newWorld(t, c)
	pool := w.pool("p", "fd00::/48", "")
	w.create(pool)

	want := []struct{ name, cidr, subnet string }{
		{"first", "fd00::/64", "p-fd00---64"},
		{"second", "fd00:0:0:1::/64", "p-fd00-0-0-1---64"},
		{"third", "fd00:0:0:2::/64", "p-fd00-0-0-2---64"},
	}
	for _, tc := range want {
		claim := w.claim("p", tc.name, 64)
		w.create(claim)
		if got := w.bound(claim); got != tc.cidr || claim.Status.SubnetRef != tc.subnet {
			t.Errorf("%s has %s in Subnet %s, want %s in %s", tc.name, got, claim.Status.SubnetRef, tc.cidr, tc.subnet)
		}
		s := newSubnet(w.ns, tc.subnet, "")
		must(t, w.get(s))
		if s.Status.Phase != v1alpha1.SubnetAllocated || s.Labels[v1alpha1.ClusterIDLabel] != tc.name {
			t.Errorf("Subnet %s is %+v with the labels %v", s.Name, s.Status, s.Labels)
		}
	}
	awaitStatus(t, c, pool, 3, map[string]int64{"48": 0, "/64": 65533, "63": 32766, "56": 255})
	if pool.Status.AllocatedCIDRs["fd00:0:0:1::/64"] != "second" {
		t.Errorf("the pool lists %v", pool.Status.AllocatedCIDRs)
	}
	address, outside := w.claim("p", "address", 128), w.exact("p", "outside", "fd01::/64")
	w.create(address, outside)
	if got := w.bound(address); got != "fd00:0:0:3::/128" {
		t.Errorf("a single address is %s", got)
	}
	awaitClaim(t, c, outside, v1alpha1.ClaimError, "OutsidePool")

	lab, inner := w.poolClaim("lab", "p", 56), w.claim("lab", "inner", 64)
	w.create(lab, inner)
	w.awaitPoolClaim(lab, metav1.ConditionTrue, "Bound")
	if got := w.bound(inner); got != "fd00:0:0:100::/64" {
		t.Errorf("the claim in the pool of the pool has %s", got)
	}
	// A block that is released can be allocated again.
	w.remove(w.claim("", "second", 0))
	again := w.exact("p", "again", "fd00:0:0:1::/64")
	w.create(again)
	w.bound(again)
	must(t, w.exclusive())
}
