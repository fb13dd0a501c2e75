package ipam_test

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

func TestReadClaim(t *testing.T) {
	size := func(n int32) *int32 { return &n }
	plain := v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}
	limited := v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16", MinBlockSize: size(20), MaxBlockSize: size(28)}
	six := v1alpha1.SubnetPoolSpec{CIDR: "fd00::/32"}

	cases := map[string]struct {
		reason string
		pool   v1alpha1.SubnetPoolSpec
		spec   v1alpha1.SubnetClaimSpec
		want   ipam.Request
		refuse string
	}{
		"Size":       {"A length that the pool has.", plain, v1alpha1.SubnetClaimSpec{BlockSize: size(24)}, ipam.Request{Length: 24}, ""},
		"Whole":      {"The whole pool is a block too.", plain, v1alpha1.SubnetClaimSpec{BlockSize: size(16)}, ipam.Request{Length: 16}, ""},
		"TooLarge":   {"A block larger than the pool is not in it.", plain, v1alpha1.SubnetClaimSpec{BlockSize: size(15)}, ipam.Request{}, "pool p allocates blocks from /16 to /32, not /15"},
		"TooLong":    {"IPv4 ends at 32.", plain, v1alpha1.SubnetClaimSpec{BlockSize: size(64)}, ipam.Request{}, "pool p allocates blocks from /16 to /32, not /64"},
		"Six":        {"IPv6 does not.", six, v1alpha1.SubnetClaimSpec{BlockSize: size(64)}, ipam.Request{Length: 64}, ""},
		"BelowMin":   {"The pool's limits count.", limited, v1alpha1.SubnetClaimSpec{BlockSize: size(19)}, ipam.Request{}, "from /20 to /28, not /19"},
		"AboveMax":   {"Both of them.", limited, v1alpha1.SubnetClaimSpec{BlockSize: size(29)}, ipam.Request{}, "from /20 to /28, not /29"},
		"Exact":      {"A very block.", plain, v1alpha1.SubnetClaimSpec{RequestedCIDR: "10.0.1.0/24"}, ipam.Request{Length: 24, Exact: netip.MustParsePrefix("10.0.1.0/24")}, ""},
		"Unmasked":   {"Bits behind the length are cut.", plain, v1alpha1.SubnetClaimSpec{RequestedCIDR: "10.0.1.7/24"}, ipam.Request{Length: 24, Exact: netip.MustParsePrefix("10.0.1.0/24")}, ""},
		"Outside":    {"It must be the pool's.", plain, v1alpha1.SubnetClaimSpec{RequestedCIDR: "10.1.0.0/24"}, ipam.Request{}, "10.1.0.0/24 is not inside of pool p, 10.0.0.0/16"},
		"Around":     {"Not the other way round.", plain, v1alpha1.SubnetClaimSpec{RequestedCIDR: "10.0.0.0/8"}, ipam.Request{}, "10.0.0.0/8 is not inside of pool p"},
		"Family":     {"And of its family.", six, v1alpha1.SubnetClaimSpec{RequestedCIDR: "10.0.0.0/24"}, ipam.Request{}, "is not inside of pool p"},
		"ExactLimit": {"The limits count for a very block too.", limited, v1alpha1.SubnetClaimSpec{RequestedCIDR: "10.0.0.0/29"}, ipam.Request{}, "from /20 to /28, not /29"},
		"Mapped":     {"IPv4 that is written as IPv6 is another family.", plain, v1alpha1.SubnetClaimSpec{RequestedCIDR: "::ffff:10.0.1.0/120"}, ipam.Request{}, "is not inside of pool p"},
		"Sloppy":     {"Leading zeros, which Kubernetes accepts.", plain, v1alpha1.SubnetClaimSpec{RequestedCIDR: "010.0.1.0/24"}, ipam.Request{}, `requestedCIDR "010.0.1.0/24" is not a CIDR`},
		"Rubbish":    {"A text that is not a CIDR is rejected.", plain, v1alpha1.SubnetClaimSpec{RequestedCIDR: "here"}, ipam.Request{}, `requestedCIDR "here" is not a CIDR`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: tc.pool}
			got, refusal := ipam.ReadClaim(&v1alpha1.SubnetClaim{Spec: tc.spec}, p, netip.MustParsePrefix(tc.pool.CIDR))
			switch {
			case tc.refuse == "" && (refusal != nil || got != tc.want):
				t.Errorf("%s\ngot %+v, %+v; want %+v", tc.reason, got, refusal, tc.want)
			case tc.refuse != "" && (refusal == nil || !strings.Contains(refusal.Message, tc.refuse)):
				t.Errorf("%s\ngot %+v, %+v; want %q", tc.reason, got, refusal, tc.refuse)
			}
		})
	}
}
