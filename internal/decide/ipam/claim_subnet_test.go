package ipam_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

var (
	claimedBlock = netip.MustParsePrefix("10.0.1.0/24")
	takenFor     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func TestAllocationStrategy(t *testing.T) {
	for s, want := range map[v1alpha1.Strategy]cidr.Strategy{
		v1alpha1.StrategyLinear: cidr.FirstFit, v1alpha1.StrategyBuddy: cidr.BestFit, "": cidr.FirstFit,
	} {
		if got := ipam.AllocationStrategy(s); got != want {
			t.Errorf("strategy %q is %s, want %s", s, got, want)
		}
	}
}

func TestNewSubnet(t *testing.T) {
	plain := func(change func(*v1alpha1.Subnet)) *v1alpha1.Subnet {
		s := &v1alpha1.Subnet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", Labels: map[string]string{v1alpha1.ClusterIDLabel: "edge"}},
			Spec: v1alpha1.SubnetSpec{
				PoolRef: "p", CIDR: "10.0.1.0/24", ClusterID: "edge", ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "u", Time: new(metav1.NewTime(takenFor))},
			},
		}
		change(s)

		return s
	}
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.SubnetClaim, *v1alpha1.SubnetPool)
		want   *v1alpha1.Subnet
	}{
		"Plain": {"No owner reference, no finalizer.", func(*v1alpha1.SubnetClaim, *v1alpha1.SubnetPool) {}, plain(func(*v1alpha1.Subnet) {})},
		"Dash": {
			"A clusterID that is not a label value does not become a label: the API server would reject the Subnet.",
			func(c *v1alpha1.SubnetClaim, _ *v1alpha1.SubnetPool) { c.Spec.ClusterID = "edge-" },
			plain(func(s *v1alpha1.Subnet) { s.Labels, s.Spec.ClusterID = nil, "edge-" }),
		},
		"PoolClaim": {
			"The block of a pool claim backs a pool of its name and is protected from the start.",
			func(c *v1alpha1.SubnetClaim, _ *v1alpha1.SubnetPool) {
				c.Name, c.Labels = "child", map[string]string{v1alpha1.PoolClaimLabel: "child"}
			},
			plain(func(s *v1alpha1.Subnet) {
				s.Spec.ClaimRef.Name = "child"
				s.Spec.Backs, s.Finalizers = &v1alpha1.PoolReference{Name: "child"}, []string{v1alpha1.Finalizer}
			}),
		},
		"LabelOfAnother": {
			"A label that a person sets does not make a claim that of a pool claim.",
			func(c *v1alpha1.SubnetClaim, _ *v1alpha1.SubnetPool) {
				c.Labels = map[string]string{v1alpha1.PoolClaimLabel: "child"}
			},
			plain(func(*v1alpha1.Subnet) {}),
		},
		"PoolOfItself": {
			"A pool that is made of its own block would wait for itself when it is deleted.",
			func(c *v1alpha1.SubnetClaim, _ *v1alpha1.SubnetPool) {
				c.Name, c.Labels = "p", map[string]string{v1alpha1.PoolClaimLabel: "p"}
			},
			plain(func(s *v1alpha1.Subnet) { s.Spec.ClaimRef.Name = "p" }),
		},
		"ReuseAfter": {
			"A block that stays unused for a while needs the finalizer for that.",
			func(_ *v1alpha1.SubnetClaim, p *v1alpha1.SubnetPool) {
				p.Spec.ReuseAfter = &metav1.Duration{Duration: time.Minute}
			},
			plain(func(s *v1alpha1.Subnet) { s.Finalizers = []string{v1alpha1.Finalizer} }),
		},
		"ReuseAtOnce": {
			"Zero is not a time.",
			func(_ *v1alpha1.SubnetClaim, p *v1alpha1.SubnetPool) { p.Spec.ReuseAfter = &metav1.Duration{} },
			plain(func(*v1alpha1.Subnet) {}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.SubnetClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u"}, Spec: v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "edge"}}
			p := &v1alpha1.SubnetPool{}
			tc.change(c, p)
			if diff := cmp.Diff(tc.want, ipam.NewSubnet(c, p, claimedBlock, "n", takenFor)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsOriginal(t *testing.T) {
	at := func(after time.Duration) *v1alpha1.Subnet {
		s := ipam.NewSubnet(&v1alpha1.SubnetClaim{}, &v1alpha1.SubnetPool{}, claimedBlock, "n", takenFor)
		s.CreationTimestamp = metav1.NewTime(takenFor.Add(after))

		return s
	}
	timeless, unclaimed := at(0), at(0)
	timeless.Spec.ClaimRef.Time, unclaimed.Spec.ClaimRef = nil, nil
	for name, tc := range map[string]struct {
		reason string
		subnet *v1alpha1.Subnet
		want   bool
	}{
		"AtOnce":    {"It is created when the block is taken.", at(0), true},
		"Slow":      {"The request may take a while.", at(2 * time.Minute), true},
		"Ahead":     {"The clock of the API server may be behind.", at(-2 * time.Minute), true},
		"Restored":  {"A backup is restored later.", at(3 * time.Minute), false},
		"Timeless":  {"Subnets of former versions do not record when.", timeless, false},
		"Unclaimed": {"It was made for no claim.", unclaimed, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ipam.IsOriginal(tc.subnet); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}

func TestOwnsBlock(t *testing.T) {
	cases := map[string]struct {
		reason      string
		change      func(*v1alpha1.Subnet)
		owns, takes bool
	}{
		"Same":       {"This block for this claim.", func(*v1alpha1.Subnet) {}, true, true},
		"Unmasked":   {"Host bits make no difference.", func(s *v1alpha1.Subnet) { s.Spec.CIDR = "10.0.1.7/24" }, true, true},
		"OtherClaim": {"For another claim.", func(s *v1alpha1.Subnet) { s.Spec.ClaimRef.UID = "v" }, false, true},
		"ByHand":     {"For no claim.", func(s *v1alpha1.Subnet) { s.Spec.ClaimRef = nil }, false, true},
		"Larger":     {"A larger block takes this one.", func(s *v1alpha1.Subnet) { s.Spec.CIDR = "10.0.0.0/16" }, false, true},
		"Elsewhere":  {"Another block does not.", func(s *v1alpha1.Subnet) { s.Spec.CIDR = "10.0.2.0/24" }, false, false},
		"OtherPool":  {"The same addresses in another pool are a different block.", func(s *v1alpha1.Subnet) { s.Spec.PoolRef = "q" }, false, false},
		"Failed":     {"Failed counts as absent.", func(s *v1alpha1.Subnet) { s.Status.Phase = v1alpha1.SubnetFailed }, false, false},
		"Invalid":    {"No CIDR, no addresses.", func(s *v1alpha1.Subnet) { s.Spec.CIDR = "010.0.1.0/24" }, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Subnet{Spec: v1alpha1.SubnetSpec{PoolRef: "p", CIDR: "10.0.1.0/24", ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "u"}}}
			tc.change(s)
			if owns, takes := ipam.OwnsBlock("u", "p", claimedBlock, s), ipam.TakesBlock("p", claimedBlock, s); owns != tc.owns || takes != tc.takes {
				t.Errorf("%s\nowns %t, takes %t; want %t, %t", tc.reason, owns, takes, tc.owns, tc.takes)
			}
		})
	}
}

func TestSubnetName(t *testing.T) {
	long := strings.Repeat("p", 60)
	a, b := ipam.SubnetName(long, netip.MustParsePrefix("10.0.0.0/24")), ipam.SubnetName(long, claimedBlock)
	if len(a) != 57 || a == b || !strings.HasPrefix(a, long[:40]+"-") {
		t.Errorf("long names are %s and %s", a, b)
	}
	for block, want := range map[string]string{"10.0.0.0/24": "p-10-0-0-0-24", "fd00::/64": "p-fd00---64"} {
		if got := ipam.SubnetName("p", netip.MustParsePrefix(block)); got != want {
			t.Errorf("%s is called %s, want %s", block, got, want)
		}
	}
}

// A name is always one that an object can have, wherever the name of the pool has
// its dots.
func TestSubnetNamesAreValid(t *testing.T) {
	for _, pool := range []string{"p", strings.Repeat("p", 39) + "." + strings.Repeat("q", 20), strings.Repeat("p.", 60) + "p", strings.Repeat("p", 253)} {
		for _, block := range []string{"10.0.1.0/24", "::/0", "fd00:1111:2222:3333:4444:5555:6666:7777/128"} {
			names := ipam.SubnetNames(pool, netip.MustParsePrefix(block), "0e9f8a7b-1c2d-4e5f-8a9b-0c1d2e3f4a5b")
			if len(names) != 2 || names[1] != names[0]+"-0e9f8" || len(names[0]) > 63 {
				t.Errorf("pool %s: names are %q", pool, names)
			}
			for _, name := range names {
				if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
					t.Errorf("pool %s: name %s is not valid: %s", pool, name, why)
				}
			}
		}
	}
}
