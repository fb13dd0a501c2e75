package synthesis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

func simply(conditionText string) func(*enov1.Composition) {
	return func(c *enov1.Composition) { c.Status.Simplified = &enov1.SimplifiedStatus{Status: conditionText} }
}

func TestCountStates(t *testing.T) {
	all := []enov1.Composition{
		*composition(simply(enov1.StatusReady)), *composition(simply(enov1.StatusReady)), *composition(simply(enov1.StatusSynthesisBackoff)),
		*composition(), *composition(simply("Invented")),
	}
	got := synthesis.Count(all, nil, time.Minute, epoch).States
	if len(got) != 13 {
		t.Errorf("there are %d states: what nobody is in is 0, and what nobody knows makes no series: %v", len(got), got)
	}
	want := map[string]int{enov1.StatusReady: 2, enov1.StatusSynthesisBackoff: 1, enov1.StatusUnknown: 2}
	for conditionText, n := range got {
		if n != want[conditionText] {
			t.Errorf("%d are %s, want %d", n, conditionText, want[conditionText])
		}
	}
}

// suspended is a composition that delivery writes nothing for.
func suspended(c *enov1.Composition) {
	c.Status.Conditions = []metav1.Condition{{Type: enov1.ConditionSuspended, Status: metav1.ConditionTrue, Message: "Suspended since noon: maintenance"}}
}

func TestCountStuck(t *testing.T) {
	agreed := func(c *enov1.Composition) { c.Status.CurrentSynthesis.Reconciled = after(2) }
	said := func(status metav1.ConditionStatus, seconds int) func(*enov1.Composition) {
		return func(c *enov1.Composition) {
			c.Status.Conditions = []metav1.Condition{{Type: enov1.ConditionReconciled, Status: status, LastTransitionTime: *after(seconds)}}
		}
	}
	deleted := func(seconds int) func(*enov1.Composition) {
		return func(c *enov1.Composition) { c.DeletionTimestamp = after(seconds) }
	}
	cases := map[string]struct {
		reason  string
		changes []func(*enov1.Composition)
		seconds int
		want    int
	}{
		"Agreed":      {reason: "The cluster agrees.", changes: []func(*enov1.Composition){agreed}, seconds: 1000},
		"New":         {reason: "Nothing was synthesized, so nothing can be stuck.", changes: []func(*enov1.Composition){fresh}, seconds: 1000},
		"Soon":        {reason: "It has time.", seconds: 61},
		"Late":        {reason: "It had time.", seconds: 62, want: 1},
		"TakenBack":   {reason: "It had agreed until a moment ago.", changes: []func(*enov1.Composition){said(metav1.ConditionFalse, 500)}, seconds: 560},
		"Disagrees":   {reason: "It has not agreed again.", changes: []func(*enov1.Composition){said(metav1.ConditionFalse, 500)}, seconds: 561, want: 1},
		"OldWord":     {reason: "What is said of an earlier synthesis is nothing of this one.", changes: []func(*enov1.Composition){said(metav1.ConditionTrue, 500)}, seconds: 62, want: 1},
		"Deleted":     {reason: "It is being deleted, and has time.", changes: []func(*enov1.Composition){agreed, deleted(500)}, seconds: 560},
		"Undeletable": {reason: "It cannot be deleted.", changes: []func(*enov1.Composition){agreed, deleted(500)}, seconds: 561, want: 1},
		"Suspended": {
			reason:  "A user has stopped its delivery.",
			changes: []func(*enov1.Composition){suspended},
			seconds: 1000,
		},
		"SuspendedDeleted": {
			reason:  "Its deletion does not wait for that.",
			changes: []func(*enov1.Composition){suspended, deleted(500)},
			seconds: 561, want: 1,
		},
		"Dependents": {
			reason:  "Others have to go first.",
			changes: []func(*enov1.Composition){deleted(1), func(c *enov1.Composition) { c.Status.DependencyStatus = &enov1.DependencyStatus{Blocked: true} }},
			seconds: 1000,
		},
		"Stranger": {
			reason:  "Series are of Synthesizers that there are.",
			changes: []func(*enov1.Composition){func(c *enov1.Composition) { c.Spec.Synthesizer.Name = "gone" }},
			seconds: 1000,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := synthesizer()
			s.Annotations = map[string]string{enov1.AnnotationOwner: "team"}
			got := synthesis.Count([]enov1.Composition{*composition(tc.changes...)}, []enov1.Synthesizer{*s}, time.Minute, epoch.Add(time.Duration(tc.seconds)*time.Second)).Stuck
			if diff := cmp.Diff(map[synthesis.Program]int{{Name: "s", Owner: "team"}: tc.want}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// An annotation may have any length, but a label must be short.
func TestOwnerIsShort(t *testing.T) {
	s := synthesizer()
	s.Annotations = map[string]string{enov1.AnnotationOwner: strings.Repeat("é", 1000)}
	for p := range synthesis.Count(nil, []enov1.Synthesizer{*s}, 0, epoch).Stuck {
		if want := strings.Repeat("é", 31); p.Owner != want {
			t.Errorf("the owner is %q, want %q", p.Owner, want)
		}
	}
}

// BenchmarkCount is what a scrape costs where there are ten thousand compositions.
func BenchmarkCount(b *testing.B) {
	all := make([]enov1.Composition, 10_000)
	for i := range all {
		composition(simply(enov1.StatusReconciling)).DeepCopyInto(&all[i])
	}
	programs := []enov1.Synthesizer{*synthesizer()}
	for b.Loop() {
		synthesis.Count(all, programs, time.Minute, epoch)
	}
}
