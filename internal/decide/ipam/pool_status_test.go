package ipam_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/decide/ipam"
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

func TestPoolStatus(t *testing.T) {
	p := new(a("x", "10.0.0.0/24", sizes(new(int32(26)), nil, nil), opened("10.0.0.0/24", "p")))
	p.Generation = 7
	f := ipam.PoolFigures{
		All:       taken(t, "10.0.0.0/24", "10.0.0.0/26", "10.0.0.128/25"),
		Own:       taken(t, "10.0.0.0/24", "10.0.0.0/26"),
		Delegated: 1,
		Listed:    map[string]string{"10.0.0.0/26": "c"},
	}
	got := ipam.PoolStatus(p, f, now)
	want := v1alpha1.SubnetPoolStatus{
		ObservedGeneration: 7, CIDR: "10.0.0.0/24", UID: "uid-x", Parent: "p", AllocatedCount: 1, DelegatedCount: 1, UtilizationPercent: 75,
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

func TestPoolConditions(t *testing.T) {
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
		"Small":    {"A pool below the usual size allocates itself as a whole.", "10.0.0.0/28", taken(t, "10.0.0.0/28"), nil, "Ready=True Exhausted=False there are blocks of /28 left"},
		"Unmasked": {"The message contains the correction.", "10.0.0.5/24", nil, nil, "Ready=False 10.0.0.5/24 has bits set behind its length: write 10.0.0.0/24"},
		"Rubbish":  {"Or what it would be like.", "pool", nil, nil, `Ready=False "pool" is not a CIDR: write an address and a length, such as 10.0.0.0/16 or fd00::/48`},
		"Mapped":   {"A range that the engine does not accept is reported as such.", "::ffff:10.0.0.0/104", nil, nil, "Ready=False ::ffff:10.0.0.0/104 is IPv4 written as IPv6: write 10.0.0.0/8"},
		"Unknown":  {"A good CIDR is not called a bad one.", "10.0.0.0/24", nil, nil, "Ready=True blocks can be taken from this pool"},
		"NoLonger": {"A pool that cannot be used has no counts of free blocks.", "pool", nil, []metav1.Condition{{Type: "Exhausted", Status: metav1.ConditionFalse}}, `Ready=False "pool" is not a CIDR: write an address and a length, such as 10.0.0.0/16 or fd00::/48`},
		"Kept":     {"A condition that holds keeps its time.", "10.0.0.0/24", taken(t, "10.0.0.0/24"), []metav1.Condition{ready}, "Ready=True since then Exhausted=False there are blocks of /24 left"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := new(a("x", tc.cidr, opened(tc.cidr, "")))
			p.Status.Conditions = tc.had
			s := ipam.PoolStatus(p, ipam.PoolFigures{All: tc.all, Own: tc.all}, now)
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

// ready is the condition Ready of a status as a line.
func ready(s v1alpha1.SubnetPoolStatus) string {
	for _, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}

	return ""
}

// TestDecidedStatus checks that a decision is written to the status, and from there to the
// condition.
func TestDecidedStatus(t *testing.T) {
	refused := ipam.PoolDecision{Action: ipam.Reject, Reason: "Overlap", Message: "taken: choose another"}
	refusedBefore := func(p *v1alpha1.SubnetPool) {
		p.Status.Lost = 3
		p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Overlap", Message: "taken"}}
	}
	cases := map[string]struct {
		reason  string
		pool    v1alpha1.SubnetPool
		verdict ipam.PoolDecision
		want    string
	}{
		"Candidate": {"A pool without a decision is not open.", a("x", "10.0.0.0/24"), ipam.PoolDecision{}, " \"\" lost 0, False Judging: whether 10.0.0.0/24 is free is being decided"},
		"Grant":     {"The decision is the range with the UID and the parent.", a("x", "10.0.0.0/24", from("p")), ipam.PoolDecision{Action: ipam.Grant}, "10.0.0.0/24 \"p\" lost 0, True Ready: blocks can be taken from this pool"},
		"Regrant":   {"A new range takes the place of the old.", a("x", "10.0.0.0/24", opened("10.0.0.0/25", "p"), labelled("q")), ipam.PoolDecision{Action: ipam.Grant}, "10.0.0.0/24 \"p\" lost 0, True Ready: blocks can be taken from this pool"},
		"Reject":    {"A rejection is about one generation.", a("x", "10.0.0.0/24"), refused, " \"\" lost 3, False Overlap: taken: choose another"},
		"Grow":      {"Its former range stays in use.", a("x", "10.0.0.0/24", opened("10.0.0.0/25", "")), refused, "10.0.0.0/25 \"\" lost 3, False Overlap: taken: choose another; claims are still served from 10.0.0.0/25"},
		"Shrink":    {"As far as it still asks for it.", a("x", "10.0.0.0/26", opened("10.0.0.0/25", "")), refused, "10.0.0.0/25 \"\" lost 3, False Overlap: taken: choose another; claims are still served from 10.0.0.0/26"},
		"Move":      {"Which may be nothing.", a("x", "10.0.1.0/24", opened("10.0.0.0/25", "")), refused, "10.0.0.0/25 \"\" lost 3, False Overlap: taken: choose another; no claims are served, because the pool has 10.0.0.0/25 and asks for other addresses"},
		"Lost":      {"A rejection stays until it is cleared.", a("x", "10.0.0.0/24", refusedBefore), ipam.PoolDecision{}, " \"\" lost 3, False Overlap: taken"},
		"Clear":     {"Then it is a candidate again.", a("x", "10.0.0.0/24", refusedBefore), ipam.PoolDecision{Action: ipam.Clear}, " \"\" lost 0, False Judging: whether 10.0.0.0/24 is free is being decided"},
		"Back":      {"A pool that asks for what it has is not rejected.", a("x", "10.0.0.0/24", refusedBefore, opened("10.0.0.0/24", "")), ipam.PoolDecision{}, "10.0.0.0/24 \"\" lost 0, True Ready: blocks can be taken from this pool"},
		"Restored": {
			"The status of another pool does not count.",
			a("x", "10.0.0.0/24", opened("10.0.0.0/24", "p"), func(p *v1alpha1.SubnetPool) { p.UID = "new" }),
			ipam.PoolDecision{},
			" \"\" lost 0, False Judging: whether 10.0.0.0/24 is free is being decided",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.pool
			p.Generation = 3
			p.Status = ipam.DecidedStatus(&p, tc.verdict, now)
			s := ipam.PoolStatus(&p, ipam.PoolFigures{}, now)
			if got := fmt.Sprintf("%s %q lost %d, %s", s.CIDR, s.Parent, s.Lost, ready(s)); got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

// Clear changes nothing but lost.
func TestClearAlone(t *testing.T) {
	p := a("x", "10.0.0.0/24", opened("10.0.0.0/25", "p"))
	p.Generation, p.Status.Lost, p.Status.AllocatedCount = 3, 3, 9
	p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Overlap", LastTransitionTime: then}}
	want := *p.Status.DeepCopy()
	want.Lost = 0
	if diff := cmp.Diff(want, ipam.DecidedStatus(&p, ipam.PoolDecision{Action: ipam.Clear}, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIsRestoring(t *testing.T) {
	p := a("x", "10.0.0.0/24")
	p.UID = "mine"
	for recorded, want := range map[string]bool{"": false, "mine": false, "other": true} {
		p.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: recorded}
		if got := ipam.IsRestoring(&p); got != want {
			t.Errorf("annotation %q: got %t", recorded, got)
		}
	}
}
