package symphony_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/symphony"
)

// reached has a composition synthesized, reconciled and ready at these seconds;
// negative: not yet.
func reached(synthesized, reconciled, ready int) func(*enov1.Composition) {
	at := func(seconds int) *metav1.Time {
		if seconds < 0 {
			return nil
		}

		return after(seconds)
	}

	return func(c *enov1.Composition) {
		c.Status.CurrentSynthesis = &enov1.Synthesis{
			ObservedCompositionGeneration: c.Generation, Synthesized: at(synthesized), Reconciled: at(reconciled), Ready: at(ready),
		}
		says("Synthesized", synthesized >= 0)(c)
		says("Reconciled", reconciled >= 0)(c)
		says("Ready", ready >= 0)(c)
	}
}

func says(kind string, yes bool) func(*enov1.Composition) {
	return func(c *enov1.Composition) {
		cond := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: c.Generation}
		if !yes {
			cond.Status, cond.Reason, cond.Message = metav1.ConditionFalse, "Not"+kind, "Deployment default/web: no quota (and 2 more)"
		}
		c.Status.Conditions = append(c.Status.Conditions, cond)
	}
}

func changed(c *enov1.Composition) { c.Generation++ }

func TestStatus(t *testing.T) {
	all := reached(1, 2, 3)
	cases := map[string]struct {
		reason       string
		symphony     *enov1.Symphony
		compositions []*enov1.Composition
		want         []string // synthesized, reconciled, ready; the condition
	}{
		"Latest": {
			reason:       "All have reached it when the last one has.",
			symphony:     aSymphony(variation("a"), variation("b")),
			compositions: []*enov1.Composition{composition("a-1", reached(1, 9, 10)), composition("b-1", reached(4, 5, 6))},
			want:         []string{"4", "9", "10", "True Ready: all 2 compositions that count are ready"},
		},
		"NotReady": {
			reason:       "What is stuck is named in the words of its composition.",
			symphony:     aSymphony(variation("a"), variation("b")),
			compositions: []*enov1.Composition{composition("a-1", all), composition("b-1", reached(4, 5, -1))},
			want:         []string{"4", "5", "", "False CompositionsNotReady: Composition ns/b-1: NotReady: Deployment default/web: no quota (and 2 more)"},
		},
		"NotReconciled": {
			reason:       "What came first is what counts.",
			symphony:     aSymphony(variation("b")),
			compositions: []*enov1.Composition{composition("b-1", reached(4, -1, -1))},
			want:         []string{"4", "", "", "False CompositionsNotReady: Composition ns/b-1: NotReconciled: Deployment default/web: no quota (and 2 more)"},
		},
		"Missing": {
			reason:       "A variation that has no composition yet counts too.",
			symphony:     aSymphony(variation("a"), variation("b")),
			compositions: []*enov1.Composition{composition("a-1", all)},
			want:         []string{"", "", "", `False CompositionsNotReady: variation "b" has no composition yet`},
		},
		"Going": {
			reason:       "One that is being deleted is none.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1", all, going)},
			want:         []string{"", "", "", `False CompositionsNotReady: variation "a" has no composition yet`},
		},
		"Optional": {
			reason:       "It does not count.",
			symphony:     aSymphony(variation("a"), variation("b", optional)),
			compositions: []*enov1.Composition{composition("a-1", all)},
			want:         []string{"1", "2", "3", "True Ready: all 1 compositions that count are ready"},
		},
		"Changed": {
			reason:       "What was ready is not what it is now.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1", all, changed)},
			want:         []string{"", "", "", "False CompositionsNotReady: Composition ns/a-1: it has no status yet"},
		},
		"ToBeChanged": {
			reason:       "What is ready is not what it should be.",
			symphony:     aSymphony(variation("a", func(v *enov1.Variation) { v.SynthesisEnv = []enov1.EnvVar{{Name: "E"}} })),
			compositions: []*enov1.Composition{composition("a-1", all)},
			want:         []string{"", "", "", "False CompositionsNotReady: Composition ns/a-1: it does not match its variation yet"},
		},
		"Surplus": {
			reason:       "What no variation has does not count.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1", all), composition("b-1")},
			want:         []string{"1", "2", "3", "True Ready: all 1 compositions that count are ready"},
		},
		"Nothing": {
			reason: "There is no time at which nothing happened.", symphony: aSymphony(),
			want: []string{"", "", "", "True Ready: all 0 compositions that count are ready"},
		},
		"Many": {
			reason:   "A few are named.",
			symphony: aSymphony(variation("a"), variation("b"), variation("c"), variation("d"), variation("e")),
			want:     []string{"", "", "", `False CompositionsNotReady: variation "a" has no composition yet; variation "b" has no composition yet; variation "c" has no composition yet (and 2 more)`},
		},
		"Duplicates": {
			reason:       "It says which, once.",
			symphony:     aSymphony(variation("a"), variation("b"), variation("a"), variation("a")),
			compositions: []*enov1.Composition{composition("a-1", all), composition("b-1", all)},
			want:         []string{"", "", "", `False DuplicateSynthesizer: several variations have synthesizer "a"; there can be one; nothing is changed until that is mended`},
		},
		"Nameless": {
			reason: "It could not be found again.", symphony: aSymphony(variation("a"), variation("")),
			want: []string{"", "", "", "False MissingSynthesizer: variations[1] names no synthesizer; nothing is changed until that is mended"},
		},
		"Unknown": {
			reason: "It says who and what.", symphony: aSymphony(variation("a", on("b", "c")), variation("c")),
			want: []string{"", "", "", `False UnknownDependency: variation "a" depends on "b", which no variation has as its synthesizer; nothing is changed until that is mended`},
		},
		"Circle": {
			reason:   "It says which, without those that merely lead there.",
			symphony: aSymphony(variation("x", on("a")), variation("a", on("b")), variation("b", on("c")), variation("c", on("a"))),
			want:     []string{"", "", "", "False CircularDependency: variations depend on each other in a circle: a → b → c → a; nothing is changed until that is mended"},
		},
		"Itself": {
			reason: "The smallest circle.", symphony: aSymphony(variation("a", on("a"))),
			want: []string{"", "", "", "False CircularDependency: variations depend on each other in a circle: a → a; nothing is changed until that is mended"},
		},
		"Deleting": {
			reason: "It says what is left.",
			symphony: func() *enov1.Symphony {
				s := aSymphony(variation("a"))
				s.DeletionTimestamp = after(0)

				return s
			}(),
			compositions: []*enov1.Composition{composition("a-1", all)},
			want:         []string{"", "", "", "False Deleting: these are not gone yet: Composition ns/a-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st := symphony.Decide(symphony.View{Symphony: tc.symphony, Compositions: tc.compositions}, epoch).Status
			var got []string
			for _, at := range []*metav1.Time{st.Synthesized, st.Reconciled, st.Ready} {
				text := ""
				if at != nil {
					text = strconv.Itoa(int(at.Sub(epoch).Seconds()))
				}
				got = append(got, text)
			}
			c := st.Conditions[0]
			got = append(got, fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if len(st.Conditions) != 1 || c.Type != "SymphonyReady" || c.ObservedGeneration != 3 || st.ObservedGeneration != 3 {
				t.Errorf("the status is %+v", st)
			}
			// Computed again later, it is the same.
			tc.symphony.Status = st
			again := symphony.Decide(symphony.View{Symphony: tc.symphony, Compositions: tc.compositions}, epoch.AddDate(1, 0, 0)).Status
			if diff := cmp.Diff(st, again); diff != "" {
				t.Errorf("it changes by itself:\n%s", diff)
			}
		})
	}
}

// However much is wrong, it fits into a condition.
func TestLongMessage(t *testing.T) {
	circle, unknown := aSymphony(), aSymphony()
	for i := range 2000 {
		circle.Spec.Variations = append(circle.Spec.Variations, variation(fmt.Sprint("a-long-name-", i), on(fmt.Sprint("a-long-name-", (i+1)%2000))))
		unknown.Spec.Variations = append(unknown.Spec.Variations, variation(fmt.Sprint("v", i), on(strings.Repeat("é", 9000))))
	}
	for want, s := range map[string]*enov1.Symphony{"CircularDependency": circle, "UnknownDependency": unknown} {
		if c := symphony.Decide(symphony.View{Symphony: s}, epoch).Status.Conditions[0]; len(c.Message) > 32768 || c.Reason != want {
			t.Errorf("%s has %d bytes", c.Reason, len(c.Message))
		}
	}
}
