package ipam_test

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

func withRecord(record string, spec v1alpha1.SubnetClaimSpec) *v1alpha1.SubnetClaim {
	spec.PoolRef = "p"

	return &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.BlockAnnotation: record}},
		Spec:       spec,
	}
}

func TestReadClaimRecord(t *testing.T) {
	block := netip.MustParsePrefix("10.0.1.0/24")
	bySize := v1alpha1.SubnetClaimSpec{BlockSize: new(int32(24))}
	byCIDR := v1alpha1.SubnetClaimSpec{RequestedCIDR: "10.0.1.0/24"}
	same := ipam.Request{Length: 24, Exact: block, Recorded: true}

	cases := map[string]struct {
		reason string
		record string
		spec   v1alpha1.SubnetClaimSpec
		want   ipam.Request
		refuse string
	}{
		"Size":       {"The recorded block is asked for instead of any.", "p/10.0.1.0/24", bySize, same, ""},
		"CIDR":       {"It agrees with requestedCIDR.", "p/10.0.1.0/24", byCIDR, same, ""},
		"Unmasked":   {"Host bits are cut, as in requestedCIDR.", "p/10.0.1.9/24", bySize, same, ""},
		"OtherPool":  {"A record of another pool does not count.", "q/10.0.1.0/24", bySize, ipam.Request{Length: 24}, ""},
		"OtherJunk":  {"Independent of the rest of it.", "q/junk", bySize, ipam.Request{Length: 24}, ""},
		"Empty":      {"An empty record is an invalid one, not an absent one.", "", bySize, ipam.Request{}, ipam.ReasonInvalidRecord},
		"NoPool":     {"A CIDR alone names no pool that is the claim's.", "10.0.1.0", bySize, ipam.Request{}, ipam.ReasonInvalidRecord},
		"NoLength":   {"A block has a length.", "p/10.0.1.0", bySize, ipam.Request{}, ipam.ReasonInvalidRecord},
		"OtherSize":  {"A claim never gets a size that it does not ask for.", "p/10.0.1.0/25", bySize, ipam.Request{}, ipam.ReasonInvalidRecord},
		"OtherBlock": {"Nor another block than requestedCIDR.", "p/10.0.2.0/24", byCIDR, ipam.Request{}, ipam.ReasonInvalidRecord},
		"Outside":    {"The block must be in the pool.", "p/10.9.1.0/24", bySize, ipam.Request{}, ipam.ReasonOutsidePool},
		"Limits":     {"The limits of the pool count.", "p/10.0.1.0/29", v1alpha1.SubnetClaimSpec{BlockSize: new(int32(29))}, ipam.Request{}, ipam.ReasonSizeRefused},
	}
	p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.SubnetPoolSpec{MaxBlockSize: new(int32(28))}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refusal := ipam.ReadClaim(withRecord(tc.record, tc.spec), p, netip.MustParsePrefix("10.0.0.0/16"))
			switch {
			case tc.refuse == "" && (refusal != nil || got != tc.want):
				t.Errorf("%s\ngot %+v, %+v; want %+v", tc.reason, got, refusal, tc.want)
			case tc.refuse != "" && (refusal == nil || refusal.Reason != tc.refuse):
				t.Errorf("%s\ngot %+v, %+v; want %s", tc.reason, got, refusal, tc.refuse)
			}
		})
	}
	if _, ok := ipam.RecordedBlock(&v1alpha1.SubnetClaim{}); ok {
		t.Error("a claim without the annotation has a record")
	}
}

// A record is never taken for another block than it names, and never ignored
// unless it names another pool.
func FuzzRecordedBlock(f *testing.F) {
	for _, record := range []string{"p/10.0.0.0/24", "p/fd00::/64", "q/10.0.0.0/24", "p/", "p", "", "/", "p/10.0.0.0/24/", "p/::ffff:10.0.0.0/120", "p/10.0.0.0/024", "p/fe80::%eth0/64"} {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record string) {
		block, ok := ipam.RecordedBlock(withRecord(record, v1alpha1.SubnetClaimSpec{}))
		other := strings.Contains(record, "/") && !strings.HasPrefix(record, "p/")
		if ok == other {
			t.Fatalf("record %q counts: %t", record, ok)
		}
		if !block.IsValid() {
			return
		}
		parsed, err := netip.ParsePrefix(strings.TrimPrefix(record, "p/"))
		if err != nil || parsed.Masked() != block || !ok {
			t.Fatalf("record %q is read as %s: %v", record, block, err)
		}
		again, ok := ipam.RecordedBlock(withRecord("p/"+block.String(), v1alpha1.SubnetClaimSpec{}))
		if !ok || again != block {
			t.Fatalf("%s is written and read as %s", block, again)
		}
	})
}
