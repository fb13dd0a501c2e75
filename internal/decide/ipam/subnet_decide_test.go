package ipam_test

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

func subnetBlock(name, prefix string, phase v1alpha1.SubnetPhase, version int) ipam.SubnetFacts {
	return ipam.SubnetFacts{Name: name, Prefix: netip.MustParsePrefix(prefix), Phase: phase, Version: strconv.Itoa(version)}
}

// forCluster makes a block one of a claim.
func forCluster(id string, b ipam.SubnetFacts) ipam.SubnetFacts {
	b.Cluster, b.Claimed = id, true

	return b
}

// versioned gives a block a version that need not be a number.
func versioned(version string, b ipam.SubnetFacts) ipam.SubnetFacts {
	b.Version = version

	return b
}

// openedPool is a pool that has what it asks for.
func openedPool(prefix string) *ipam.PoolRanges {
	return &ipam.PoolRanges{Name: "p", Spec: netip.MustParsePrefix(prefix), Open: netip.MustParsePrefix(prefix)}
}

func TestDecideSubnet(t *testing.T) {
	const (
		pending   = v1alpha1.SubnetPending
		allocated = v1alpha1.SubnetAllocated
		failed    = v1alpha1.SubnetFailed
	)
	pool, six := openedPool("10.0.0.0/16"), openedPool("fd00::/32")
	ask := func(spec, open string) *ipam.PoolRanges {
		return &ipam.PoolRanges{Name: "p", Spec: netip.MustParsePrefix(spec), Open: netip.MustParsePrefix(open)}
	}
	waits := func(reason, message string) ipam.SubnetDecision {
		return ipam.SubnetDecision{Phase: pending, Reason: reason, Message: message}
	}
	mine := subnetBlock("mine", "10.0.0.0/24", pending, 10)
	fine := ipam.SubnetDecision{Phase: allocated, Reason: ipam.ReasonAllocated, Message: "no other Subnet overlaps it"}
	lost := func(prefix string) ipam.SubnetDecision {
		return ipam.SubnetDecision{Phase: failed, Reason: ipam.ReasonOverlap, Message: "10.0.0.0/24 overlaps " + prefix + " of Subnet other, which was first"}
	}

	cases := map[string]struct {
		reason string
		block  ipam.SubnetFacts
		pool   *ipam.PoolRanges
		others []ipam.SubnetFacts
		want   ipam.SubnetDecision
	}{
		"Alone":         {"There is no other Subnet.", mine, pool, nil, fine},
		"Itself":        {"A block does not overlap itself, in whatever version a snapshot has it.", mine, pool, []ipam.SubnetFacts{mine}, fine},
		"ParentSubnets": {"Adjacent blocks do not overlap.", mine, pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.1.0/24", allocated, 1)}, fine},
		"Allocated":     {"An allocated block stays, even one that was written later.", mine, pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.0/24", allocated, 99)}, lost("10.0.0.0/24")},
		"Inside":        {"A smaller block inside is an overlap.", mine, pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.128/25", allocated, 1)}, lost("10.0.0.128/25")},
		"Around":        {"A larger block around it is one too.", mine, pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.0/20", allocated, 1)}, lost("10.0.0.0/20")},
		"PendingBefore": {"Of two that wait, the older wins.", mine, pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.0/24", pending, 9)}, lost("10.0.0.0/24")},
		"PendingAfter":  {"The younger one loses, when it is decided.", mine, pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.0/24", pending, 11)}, fine},
		"NoPhase":       {"A status that was lost is as good as Pending.", subnetBlock("mine", "10.0.0.0/24", "", 10), pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.0/25", "", 9)}, lost("10.0.0.0/25")},
		"Failed":        {"A Failed Subnet counts as absent.", mine, pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.0/24", failed, 1)}, fine},
		"Outside":       {"A block must lie in its pool.", subnetBlock("mine", "10.1.0.0/24", pending, 1), pool, nil, ipam.SubnetDecision{Phase: failed, Reason: ipam.ReasonOutsidePool, Message: "10.1.0.0/24 is not inside of pool p, 10.0.0.0/16"}},
		"Larger":        {"A block around its pool does not.", subnetBlock("mine", "10.0.0.0/8", pending, 1), pool, nil, ipam.SubnetDecision{Phase: failed, Reason: ipam.ReasonOutsidePool, Message: "10.0.0.0/8 is not inside of pool p, 10.0.0.0/16"}},
		"OtherFamily":   {"Nor does one of the other family.", mine, six, nil, ipam.SubnetDecision{Phase: failed, Reason: ipam.ReasonOutsidePool, Message: "10.0.0.0/24 is not inside of pool p, fd00::/32"}},
		"NoPool":        {"It waits for a pool that is not there yet.", mine, nil, nil, ipam.SubnetDecision{Phase: pending, Reason: ipam.ReasonPoolNotFound, Message: "its pool does not exist"}},
		"Judged":        {"A decision is never changed: addresses are in use.", subnetBlock("mine", "10.9.0.0/24", allocated, 10), pool, []ipam.SubnetFacts{subnetBlock("other", "10.9.0.0/24", allocated, 1)}, ipam.SubnetDecision{Phase: allocated}},
		"Version":       {"Versions that cannot be compared decide nothing.", mine, pool, []ipam.SubnetFacts{versioned("x", subnetBlock("other", "10.0.0.0/24", pending, 1))}, waits(ipam.ReasonVersion, "cannot compare Subnets other and mine: resource version is not well formed: x")},
		"OwnVersion":    {"Not the other's, and not one's own.", versioned("", mine), pool, []ipam.SubnetFacts{subnetBlock("other", "10.0.0.0/24", pending, 1)}, waits(ipam.ReasonVersion, "cannot compare Subnets other and mine: resource version is not well formed: ")},
		"LongVersion":   {"Versions may be longer than 64 bits.", versioned("100000000000000000000000", mine), pool, []ipam.SubnetFacts{versioned("99999999999999999999999", subnetBlock("other", "10.0.0.0/24", pending, 1))}, lost("10.0.0.0/24")},
		"Cluster":       {"A pool has one block for each clusterID.", forCluster("c", mine), pool, []ipam.SubnetFacts{forCluster("c", subnetBlock("other", "10.0.9.0/24", pending, 9))}, ipam.SubnetDecision{Phase: failed, Reason: ipam.ReasonClusterIDInUse, Message: "Subnet other was first for the clusterID c, and a pool has one block for each"}},
		"ClusterAfter":  {"The first of them.", forCluster("c", mine), pool, []ipam.SubnetFacts{forCluster("c", subnetBlock("other", "10.0.9.0/24", pending, 11))}, fine},
		"ClusterOther":  {"Not of other pools.", forCluster("c", mine), pool, []ipam.SubnetFacts{forCluster("d", subnetBlock("other", "10.0.9.0/24", allocated, 9))}, fine},
		"ClusterByHand": {"Nor where one was created by hand.", mine, pool, []ipam.SubnetFacts{forCluster("", subnetBlock("other", "10.0.9.0/24", allocated, 9))}, fine},
		"Deleting":      {"Nothing is allocated in a pool that is being deleted.", mine, &ipam.PoolRanges{Name: "p", Spec: pool.Spec, Open: pool.Open, Deleting: true}, nil, ipam.SubnetDecision{Phase: failed, Reason: ipam.ReasonPoolDeleting, Message: "pool p is being deleted"}},
		"Closed":        {"It waits until its pool is opened.", mine, &ipam.PoolRanges{Name: "p", Spec: pool.Spec}, nil, waits(ipam.ReasonPoolNotReady, "pool p is not open")},
		"Invalid":       {"Or has a CIDR.", mine, &ipam.PoolRanges{Name: "p", Open: pool.Open}, nil, waits(ipam.ReasonPoolNotReady, "pool p has no valid CIDR")},
		"Growing":       {"Or has grown.", mine, ask("10.0.0.0/16", "10.0.128.0/17"), nil, waits(ipam.ReasonPoolNotReady, "10.0.0.0/24 is not inside of 10.0.128.0/17, the addresses that pool p has so far")},
		"Shrinking":     {"Addresses that a pool no longer requests are not allocated.", mine, ask("10.0.128.0/17", "10.0.0.0/16"), nil, ipam.SubnetDecision{Phase: failed, Reason: ipam.ReasonOutsidePool, Message: "10.0.0.0/24 is not inside of pool p, 10.0.128.0/17"}},
		"IPv6":          {"IPv6 is no different.", subnetBlock("mine", "fd00:0:1::/48", pending, 10), six, []ipam.SubnetFacts{subnetBlock("other", "fd00:0:2::/48", pending, 1)}, fine},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ipam.DecideSubnet(tc.block, tc.pool, slices.Values(tc.others))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolRangesOf(t *testing.T) {
	p := poolOf("p", "10.0.0.0/16")
	p.UID, p.Status.CIDR, p.Status.UID = "mine", "10.0.0.0/17", "mine"
	want := &ipam.PoolRanges{Name: "p", Spec: netip.MustParsePrefix("10.0.0.0/16"), Open: netip.MustParsePrefix("10.0.0.0/17")}
	equal := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if diff := cmp.Diff(want, ipam.PoolRangesOf(&p), equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Status.UID = "another"
	p.Spec.CIDR = "ten"
	p.DeletionTimestamp = new(metav1.Now())
	if diff := cmp.Diff(&ipam.PoolRanges{Name: "p", Deleting: true}, ipam.PoolRangesOf(&p), equal); diff != "" {
		t.Errorf("the status of another pool, and an invalid CIDR (-want +got):\n%s", diff)
	}
}
