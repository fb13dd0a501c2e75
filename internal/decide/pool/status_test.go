package pool_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/decide/pool"
)

var (
	then = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now  = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
)

func taken(t *testing.T, prefix string, blocks ...string) *cidr.Pool {
	t.Helper()
	p, err := cidr.New(netip.MustParsePrefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if err := p.AllocateExact(netip.MustParsePrefix(b)); err != nil {
			t.Fatal(err)
		}
	}

	return p
}

func TestStatus(t *testing.T) {
	p := &v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/24", DefaultBlockSize: new(int32(26))}}
	p.Generation = 7
	f := pool.Figures{
		All:       taken(t, "10.0.0.0/24", "10.0.0.0/26", "10.0.0.128/25"),
		Own:       taken(t, "10.0.0.0/24", "10.0.0.0/26"),
		Delegated: 1,
		Listed:    map[string]string{"10.0.0.0/26": "c"},
	}
	got := pool.Status(p, f, now)
	want := v1alpha1.SubnetPoolStatus{
		ObservedGeneration: 7, AllocatedCount: 1, DelegatedCount: 1, UtilizationPercent: 75,
		AllocatedCIDRs: map[string]string{"10.0.0.0/26": "c"},
		FreeCountBySize: map[string]int64{
			"24": 0, "25": 1, "26": 3, "27": 6, "28": 12, "29": 24, "30": 48, "31": 96, "32": 192,
			"/24": 0, "/25": 1, "/26": 3, "/27": 6, "/28": 12, "/29": 24, "/30": 48, "/31": 96, "/32": 192,
		},
		AllocatableCountBySize: map[string]int64{"24": 0, "25": 0, "26": 1, "27": 2, "28": 4, "29": 8, "30": 16, "31": 32, "32": 64},
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: "True", Reason: "Ready", Message: "blocks can be taken from this pool", ObservedGeneration: 7, LastTransitionTime: now},
			{Type: "Exhausted", Status: "False", Reason: "BlocksLeft", Message: "there are blocks of /26 left", ObservedGeneration: 7, LastTransitionTime: now},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConditions(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: then}

	cases := map[string]struct {
		reason string
		cidr   string
		all    *cidr.Pool
		had    []metav1.Condition
		want   string
	}{
		"Full":     {"Nothing of the usual size is left.", "10.0.0.0/24", taken(t, "10.0.0.0/24", "10.0.0.0/25"), nil, "Ready=True Exhausted=True no /24 is left"},
		"Six":      {"The usual size of IPv6 is another.", "fd00::/62", taken(t, "fd00::/62"), nil, "Ready=True Exhausted=False there are blocks of /64 left"},
		"Small":    {"A pool below the usual size hands out itself.", "10.0.0.0/28", taken(t, "10.0.0.0/28"), nil, "Ready=True Exhausted=False there are blocks of /28 left"},
		"Unmasked": {"What would be right is said.", "10.0.0.5/24", nil, nil, "Ready=False 10.0.0.5/24 has bits set behind its length: write 10.0.0.0/24"},
		"Rubbish":  {"Or what it would be like.", "pool", nil, nil, `Ready=False "pool" is not a CIDR: write an address and a length, such as 10.0.0.0/16 or fd00::/48`},
		"Mapped":   {"What the engine does not take is said as such.", "::ffff:10.0.0.0/104", nil, nil, "Ready=False ::ffff:10.0.0.0/104 is IPv4 written as IPv6: write 10.0.0.0/8"},
		"Unknown":  {"A good CIDR is not called a bad one.", "10.0.0.0/24", nil, nil, `Ready=False "10.0.0.0/24" cannot be used`},
		"NoLonger": {"What cannot be used has no blocks left to speak of.", "pool", nil, []metav1.Condition{{Type: "Exhausted", Status: metav1.ConditionFalse}}, `Ready=False "pool" is not a CIDR: write an address and a length, such as 10.0.0.0/16 or fd00::/48`},
		"Kept":     {"A condition that holds keeps its time.", "10.0.0.0/24", taken(t, "10.0.0.0/24"), []metav1.Condition{ready}, "Ready=True since then Exhausted=False there are blocks of /24 left"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{CIDR: tc.cidr}, Status: v1alpha1.SubnetPoolStatus{Conditions: tc.had}}
			s := pool.Status(p, pool.Figures{All: tc.all, Own: tc.all}, now)
			got := ""
			for _, c := range s.Conditions {
				got += fmt.Sprintf("%s=%s ", c.Type, c.Status)
				if c.LastTransitionTime == then {
					got += "since then "
				}
			}
			if got += s.Conditions[len(s.Conditions)-1].Message; got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}
