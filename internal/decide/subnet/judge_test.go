package subnet_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/subnet"
)

func block(name, prefix string, phase v1alpha1.SubnetPhase, version uint64) subnet.Block {
	return subnet.Block{Name: name, Prefix: netip.MustParsePrefix(prefix), Phase: phase, Version: version}
}

func TestJudge(t *testing.T) {
	const (
		pending   = v1alpha1.SubnetPending
		allocated = v1alpha1.SubnetAllocated
		failed    = v1alpha1.SubnetFailed
	)
	pool := netip.MustParsePrefix("10.0.0.0/16")
	six := netip.MustParsePrefix("fd00::/32")
	mine := block("mine", "10.0.0.0/24", pending, 10)
	fine := subnet.Verdict{Phase: allocated, Reason: subnet.ReasonAllocated, Message: "no other Subnet overlaps it"}
	lost := func(prefix string) subnet.Verdict {
		return subnet.Verdict{Phase: failed, Reason: subnet.ReasonOverlap, Message: "10.0.0.0/24 overlaps " + prefix + " of Subnet other, which was first"}
	}

	cases := map[string]struct {
		reason string
		block  subnet.Block
		pool   *netip.Prefix
		others []subnet.Block
		want   subnet.Verdict
	}{
		"Alone":         {"Nobody else is there.", mine, &pool, nil, fine},
		"Itself":        {"A block does not overlap itself, in whatever version a snapshot has it.", mine, &pool, []subnet.Block{mine}, fine},
		"Beside":        {"Neighbours are no overlap.", mine, &pool, []subnet.Block{block("other", "10.0.1.0/24", allocated, 1)}, fine},
		"Allocated":     {"An allocated block stays, even one that was written later.", mine, &pool, []subnet.Block{block("other", "10.0.0.0/24", allocated, 99)}, lost("10.0.0.0/24")},
		"Inside":        {"A smaller block inside is an overlap.", mine, &pool, []subnet.Block{block("other", "10.0.0.128/25", allocated, 1)}, lost("10.0.0.128/25")},
		"Around":        {"A larger block around it is one too.", mine, &pool, []subnet.Block{block("other", "10.0.0.0/20", allocated, 1)}, lost("10.0.0.0/20")},
		"PendingBefore": {"Of two that wait, the older wins.", mine, &pool, []subnet.Block{block("other", "10.0.0.0/24", pending, 9)}, lost("10.0.0.0/24")},
		"PendingAfter":  {"The younger one loses, when it is judged.", mine, &pool, []subnet.Block{block("other", "10.0.0.0/24", pending, 11)}, fine},
		"NoPhase":       {"A status that was lost is as good as Pending.", block("mine", "10.0.0.0/24", "", 10), &pool, []subnet.Block{block("other", "10.0.0.0/25", "", 9)}, lost("10.0.0.0/25")},
		"Failed":        {"What failed is as good as absent.", mine, &pool, []subnet.Block{block("other", "10.0.0.0/24", failed, 1)}, fine},
		"Outside":       {"A block must lie in its pool.", block("mine", "10.1.0.0/24", pending, 1), &pool, nil, subnet.Verdict{Phase: failed, Reason: subnet.ReasonOutsidePool, Message: "10.1.0.0/24 is not inside of its pool, 10.0.0.0/16"}},
		"Larger":        {"A block around its pool does not.", block("mine", "10.0.0.0/8", pending, 1), &pool, nil, subnet.Verdict{Phase: failed, Reason: subnet.ReasonOutsidePool, Message: "10.0.0.0/8 is not inside of its pool, 10.0.0.0/16"}},
		"OtherFamily":   {"Nor does one of the other family.", mine, &six, nil, subnet.Verdict{Phase: failed, Reason: subnet.ReasonOutsidePool, Message: "10.0.0.0/24 is not inside of its pool, fd00::/32"}},
		"NoPool":        {"It waits for a pool that is not there yet.", mine, nil, nil, subnet.Verdict{Phase: pending, Reason: subnet.ReasonPoolNotFound, Message: "its pool does not exist"}},
		"Judged":        {"A verdict is never changed: addresses are in use.", block("mine", "10.9.0.0/24", allocated, 10), &pool, []subnet.Block{block("other", "10.9.0.0/24", allocated, 1)}, subnet.Verdict{Phase: allocated}},
		"IPv6":          {"IPv6 is no different.", block("mine", "fd00:0:1::/48", pending, 10), &six, []subnet.Block{block("other", "fd00:0:2::/48", pending, 1)}, fine},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := subnet.Judge(tc.block, tc.pool, slices.Values(tc.others))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
