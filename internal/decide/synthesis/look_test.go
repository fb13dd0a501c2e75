package synthesis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

// slice of three Deployments.
func slice(states ...enov1.ResourceState) *enov1.ResourceSlice {
	s := &enov1.ResourceSlice{Status: enov1.ResourceSliceStatus{Resources: states}}
	for _, name := range []string{"api", "web", "job"} {
		s.Spec.Resources = append(s.Spec.Resources, enov1.Manifest{Manifest: manifest(name)})
	}

	return s
}

// own sets the deletion strategy on the first manifest of a slice.
func own(s *enov1.ResourceSlice) *enov1.ResourceSlice {
	m := &s.Spec.Resources[0]
	m.Manifest = synthesis.Head(strings.Replace(m.Manifest, `"metadata":{`, `"metadata":{"annotations":{"eno.azure.io/deletion-strategy":"foreground"},`, 1))

	return s
}

// TestStartDeletion checks that delivery starts to delete objects once.
func TestStartDeletion(t *testing.T) {
	c := composition()
	c.DeletionTimestamp, c.Generation = after(0), c.Generation+1
	v := synthesis.View{Composition: c, Synthesizer: synthesizer(), Find: lookup(nil), Current: []*enov1.ResourceSlice{slice()}}
	look := func(dependents ...*enov1.Composition) {
		v.Dependents = dependents
		c.Status = synthesis.Look(v, epoch).Status
	}
	if look(named("other")); c.DeletionStarted() {
		t.Error("It starts while another composition depends on this one.")
	}
	if look(); !c.DeletionStarted() || c.Status.CurrentSynthesis.Reconciled != nil || c.Status.CurrentSynthesis.Ready != nil {
		t.Errorf("It does not start: %+v", c.Status.CurrentSynthesis)
	}
	c.Generation++ // the spec was edited
	if !c.DeletionStarted() {
		t.Error("An edit stops it.")
	}
	if look(named("late")); !c.DeletionStarted() || c.Status.DependencyStatus != nil {
		t.Error("A dependent that appears later stops it.")
	}
}

func TestLook(t *testing.T) {
	stuck := func(text string) enov1.ResourceState { return enov1.ResourceState{ReconciliationError: &text} }
	fine := enov1.ResourceState{Reconciled: true, Ready: after(5)}
	gone := enov1.ResourceState{Reconciled: true, Deleted: true}
	deleting := func(c *enov1.Composition) {
		c.DeletionTimestamp = after(0)
		c.Generation++ // as the API server does
	}
	failed := func(c *enov1.Composition) {
		canceled(c)
		c.Status.InFlightSynthesis.Results = []enov1.Result{{Message: "fine", Severity: "info"}, {Message: "no such chart", Severity: "error"}}
	}
	all := []synthesis.Input{
		{Key: "in", Revision: &enov1.InputRevisions{Key: "in", ResourceVersion: "10"}},
		{Key: "slow", Revision: &enov1.InputRevisions{Key: "slow", ResourceVersion: "20"}},
		{Key: "maybe"},
	}

	cases := map[string]struct {
		reason  string
		changes []func(*enov1.Composition)
		view    func(*synthesis.View)
		slices  []*enov1.ResourceSlice
		want    []string // simplified status and error; then reason and message of Synthesized, Reconciled, Ready
		release bool
	}{
		"Ready": {
			reason: "All is well.", slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "Synthesized: 3 resources in 1 slice", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"NotReady": {
			reason: "The first that is not is named.", slices: []*enov1.ResourceSlice{slice(fine, enov1.ResourceState{Reconciled: true}, enov1.ResourceState{Reconciled: true})},
			want: []string{"NotReady", "", "Synthesized: 3 resources in 1 slice", "Reconciled: the cluster agrees with all 3 resources", "NotReady: Deployment default/web: it is not ready yet (and 1 more)"},
		},
		"Stuck": {
			reason: "What is wrong goes before what merely waits.", slices: []*enov1.ResourceSlice{slice(enov1.ResourceState{}, stuck("no quota"), stuck("no room"))},
			want: []string{
				"Reconciling", "Deployment default/web: no quota (and 2 more)", "Synthesized: 3 resources in 1 slice",
				"Reconciling: Deployment default/web: no quota (and 2 more)", "NotReady: Deployment default/web: no quota (and 2 more)",
			},
		},
		"Suspended": {
			reason: "It is the reason why nothing else happens.", changes: []func(*enov1.Composition){suspended}, slices: []*enov1.ResourceSlice{slice(fine, stuck("no quota"), fine)},
			want: []string{
				"Reconciling", "Suspended since noon: maintenance", "Synthesized: 3 resources in 1 slice",
				"Reconciling: Deployment default/web: no quota", "NotReady: Deployment default/web: no quota",
			},
		},
		"SuspendedReady": {
			reason: "Users should know, also if all is well.", changes: []func(*enov1.Composition){suspended}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "Suspended since noon: maintenance", "Synthesized: 3 resources in 1 slice", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"Behind": {
			reason: "A slice that says nothing yet.", slices: []*enov1.ResourceSlice{slice()},
			want: []string{
				"Reconciling", "", "Synthesized: 3 resources in 1 slice",
				"Reconciling: Deployment default/api: it is not reconciled yet (and 2 more)", "NotReady: Deployment default/api: it is not ready yet (and 2 more)",
			},
		},
		"Lost": {
			reason: "Somebody took a slice away.", slices: []*enov1.ResourceSlice{nil},
			want: []string{"Reconciling", "", "Synthesized: 0 resources in 1 slice", "SliceLost: 1 of 1 slices of the current synthesis do not exist", "Reconciling: all resources are ready, and not all are reconciled"},
		},
		"Rejected": {
			reason: "The slice is another one of that name.", slices: []*enov1.ResourceSlice{nil}, view: func(v *synthesis.View) { v.Rejected = []string{"ResourceSlice a has no owner"} },
			want: []string{"Reconciling", "", "Synthesized: 0 resources in 1 slice", "SliceLost: 1 of 1 slices of the current synthesis are lost, and their objects stay as they are: ResourceSlice a has no owner", "Reconciling: all resources are ready, and not all are reconciled"},
		},
		"Empty": {
			reason: "Nothing is ready at once.", changes: []func(*enov1.Composition){func(c *enov1.Composition) { c.Status.CurrentSynthesis.ResourceSlices = nil }},
			want: []string{"Ready", "", "Synthesized: 0 resources in 0 slices", "Reconciled: the cluster agrees with all 0 resources", "Ready: all 0 resources are ready"},
		},
		"MissingSynthesizer": {
			reason: "It can still come.", view: func(v *synthesis.View) { v.Synthesizer = nil }, changes: []func(*enov1.Composition){fresh},
			want: []string{"MissingSynthesizer", `Synthesizer "s" does not exist`, `MissingSynthesizer: Synthesizer "s" does not exist`, "NotSynthesized: nothing was synthesized yet", "NotSynthesized: nothing was synthesized yet"},
		},
		"MissingInputs": {
			reason: "With the reason, if it is known.", changes: []func(*enov1.Composition){fresh},
			view: func(v *synthesis.View) {
				v.Inputs = []synthesis.Input{all[0], {Key: "slow", Problem: "ConfigMap n/slow does not exist"}}
			},
			want: []string{"MissingInputs", `input "slow": ConfigMap n/slow does not exist`, `MissingInputs: input "slow": ConfigMap n/slow does not exist`, "NotSynthesized: nothing was synthesized yet", "NotSynthesized: nothing was synthesized yet"},
		},
		"Mismatched": {
			reason: "Inputs of two revisions.", changes: []func(*enov1.Composition){fresh},
			view: func(v *synthesis.View) {
				v.Inputs = []synthesis.Input{{Key: "in", Revision: &enov1.InputRevisions{Key: "in", Revision: new(1)}}, {Key: "slow", Revision: &enov1.InputRevisions{Key: "slow", Revision: new(2)}}}
			},
			want: []string{"MismatchedInputs", `input "in" has revision 1 and input "slow" has 2`, `MismatchedInputs: input "in" has revision 1 and input "slow" has 2`, "NotSynthesized: nothing was synthesized yet", "NotSynthesized: nothing was synthesized yet"},
		},
		"Dependencies": {
			reason: "It waits for others.", changes: []func(*enov1.Composition){fresh, func(c *enov1.Composition) { c.Spec.DependsOn = []enov1.CompositionDependency{{Name: "other"}} }},
			want: []string{"WaitingOnDependencies", "Composition n/other: DependencyNotFound", "WaitingOnDependencies: Composition n/other: DependencyNotFound", "NotSynthesized: nothing was synthesized yet", "NotSynthesized: nothing was synthesized yet"},
		},
		"Pending": {
			reason: "It waits for room.", changes: []func(*enov1.Composition){fresh},
			want: []string{"PendingSynthesis", "", "PendingSynthesis: the first synthesis waits for its turn", "NotSynthesized: nothing was synthesized yet", "NotSynthesized: nothing was synthesized yet"},
		},
		"Refused": {
			reason: "This manager runs nothing, and says why.", changes: []func(*enov1.Composition){fresh}, view: func(v *synthesis.View) { v.Refusal = "use the flag" },
			want: []string{"PendingSynthesis", "use the flag", "NoExecutor: use the flag", "NotSynthesized: nothing was synthesized yet", "NotSynthesized: nothing was synthesized yet"},
		},
		"RefusedIdle": {
			reason: "As long as nothing is to be run, that does not matter.", view: func(v *synthesis.View) { v.Refusal = "use the flag" }, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "Synthesized: 3 resources in 1 slice", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"Synthesizing": {
			reason: "One is in flight.", changes: []func(*enov1.Composition){inFlight}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Synthesizing", "", "Synthesizing: a synthesis is in flight", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"Timeout": {
			reason: "One was in flight for too long.", changes: []func(*enov1.Composition){inFlight, func(c *enov1.Composition) { c.Status.InFlightSynthesis.Initialized = after(68) }}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"SynthesisBackoff", "Timeout", "SynthesisBackoff: Timeout", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"Backoff": {
			reason: "The first error is told.", changes: []func(*enov1.Composition){failed}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"SynthesisBackoff", "no such chart", "SynthesisBackoff: no such chart", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"Rollout": {
			reason: "What waits for its turn is not broken.", view: func(v *synthesis.View) { v.Synthesizer.Generation++ }, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "RolloutPending: the next synthesis waits for its turn in a rollout (SynthesizerModified)", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"Halted": {
			reason: "The rollout does not go on.", view: func(v *synthesis.View) {
				v.Synthesizer.Generation++
				v.Synthesizer, _ = synthesis.Halt{Synthesizer: v.Synthesizer, Message: "too many"}.Apply(*after(0))
			}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "RolloutHalted: the rollout of Synthesizer s, generation 4, is halted; for the reason: arbor delivery rollout s", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"HaltedHere": {
			reason: "The rollout does not go on in this namespace.", view: func(v *synthesis.View) {
				v.Synthesizer.Generation++
				v.Synthesizer, _ = synthesis.Halt{Synthesizer: v.Synthesizer, Scope: "n", Message: "too many"}.Apply(*after(0))
			}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "RolloutHalted: the rollout of Synthesizer s, generation 4, is halted; for the reason: arbor delivery rollout s", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"HaltedElsewhere": {
			reason: "The rollout is halted in another namespace.", view: func(v *synthesis.View) {
				v.Synthesizer.Generation++
				v.Synthesizer, _ = synthesis.Halt{Synthesizer: v.Synthesizer, Scope: "m", Message: "too many"}.Apply(*after(0))
			}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "RolloutPending: the next synthesis waits for its turn in a rollout (SynthesizerModified)", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"HaltedBefore": {
			reason: "That was another generation.", view: func(v *synthesis.View) {
				v.Synthesizer, _ = synthesis.Halt{Synthesizer: v.Synthesizer, Message: "too many"}.Apply(*after(0))
				v.Synthesizer.Generation++
			}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "RolloutPending: the next synthesis waits for its turn in a rollout (SynthesizerModified)", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"RolledBack": {
			reason: "It stays so.", changes: []func(*enov1.Composition){generation, annotate(enov1.AnnotationRollback, "now")}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Ready", "", "RolledBack: the manifests are those of synthesis now; nothing is synthesized until the annotation arbor-control.dev/rollback-to is removed", "Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready"},
		},
		"RollbackUnknown": {
			reason: "There is none of that name.", changes: []func(*enov1.Composition){annotate(enov1.AnnotationRollback, "x")}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{
				"Ready", "", "RollbackUnknown: annotation arbor-control.dev/rollback-to: there is no synthesis x in currentSynthesis, previousSynthesis or history; nothing is synthesized until it names one of them or is removed",
				"Reconciled: the cluster agrees with all 3 resources", "Ready: all 3 resources are ready",
			},
		},
		"Deleting": {
			reason: "The objects go first.", changes: []func(*enov1.Composition){deleting}, slices: []*enov1.ResourceSlice{slice(gone, stuck("held"), fine)},
			want: []string{"Deleting", "Deployment default/web: held (and 1 more)", "Deleting: the composition is being deleted", "Deleting: Deployment default/web: held (and 1 more)", "Deleting: the composition is being deleted"},
		},
		"Deleted": {
			reason: "Then the composition.", changes: []func(*enov1.Composition){deleting}, slices: []*enov1.ResourceSlice{slice(gone, gone, gone)}, release: true,
			want: []string{"Deleting", "", "Deleting: the composition is being deleted", "Deleting: no object is left", "Deleting: the composition is being deleted"},
		},
		"Orphaned": {
			reason: "Unless they are to stay.", changes: []func(*enov1.Composition){deleting, annotate(enov1.AnnotationDeletionStrategy, "orphan")}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)}, release: true,
			want: []string{"Deleting", "", "Deleting: the composition is being deleted", "Deleting: Deployment default/api: it is not deleted yet (and 2 more)", "Deleting: the composition is being deleted"},
		},
		"OrphanedInPart": {
			reason:  "A manifest says itself that its object is deleted.",
			changes: []func(*enov1.Composition){deleting, annotate(enov1.AnnotationDeletionStrategy, "Orphan")}, slices: []*enov1.ResourceSlice{own(slice(fine, fine, fine))},
			want: []string{"Deleting", "", "Deleting: the composition is being deleted", "Deleting: Deployment default/api: it is not deleted yet (and 2 more)", "Deleting: the composition is being deleted"},
		},
		"SymphonyGone": {
			reason:  "Nobody is left to say that they stay, and it asks for that.",
			changes: []func(*enov1.Composition){deleting, annotate(enov1.AnnotationForceDeleteWhenSymphonyGone, "true")}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)}, release: true,
			view: func(v *synthesis.View) { v.SymphonyGone = true },
			want: []string{"Deleting", "", "Deleting: the composition is being deleted", "Deleting: Deployment default/api: it is not deleted yet (and 2 more)", "Deleting: the composition is being deleted"},
		},
		"SymphonyThere": {
			reason:  "The Symphony says what becomes of them.",
			changes: []func(*enov1.Composition){deleting, annotate(enov1.AnnotationForceDeleteWhenSymphonyGone, "true")}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			want: []string{"Deleting", "", "Deleting: the composition is being deleted", "Deleting: Deployment default/api: it is not deleted yet (and 2 more)", "Deleting: the composition is being deleted"},
		},
		"SymphonyGoneUnasked": {
			reason:  "It does not ask for it, so they go first.",
			changes: []func(*enov1.Composition){deleting}, slices: []*enov1.ResourceSlice{slice(fine, fine, fine)},
			view: func(v *synthesis.View) { v.SymphonyGone = true },
			want: []string{"Deleting", "", "Deleting: the composition is being deleted", "Deleting: Deployment default/api: it is not deleted yet (and 2 more)", "Deleting: the composition is being deleted"},
		},
		"Dependents": {
			reason: "Who needs it goes before.", changes: []func(*enov1.Composition){deleting}, slices: []*enov1.ResourceSlice{slice(gone, gone, gone)},
			view: func(v *synthesis.View) { v.Dependents = []*enov1.Composition{named("other")} },
			want: []string{"WaitingOnDependents", "", "Deleting: the composition is being deleted", "WaitingOnDependents: Composition n/other depends on this one and is not deleted", "Deleting: the composition is being deleted"},
		},
		"HiddenDependents": {
			reason:  "The message names no object of another tenant, and the way out.",
			changes: []func(*enov1.Composition){deleting, annotate(enov1.AnnotationDependentsFrom, "m")}, slices: []*enov1.ResourceSlice{slice(gone, gone, gone)},
			view: func(v *synthesis.View) {
				v.Dependents, v.Rules = []*enov1.Composition{named("other", namespace("m"))}, restricted
			},
			want: []string{
				"WaitingOnDependents", "", "Deleting: the composition is being deleted",
				"WaitingOnDependents: compositions of other namespaces depend on this one and are not deleted; to delete it all the same, remove the annotation arbor-control.dev/dependents-from",
				"Deleting: the composition is being deleted",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := synthesis.View{
				Composition: composition(tc.changes...), Synthesizer: synthesizer(), Inputs: all, Current: tc.slices,
				Find: func(string, string) *enov1.Composition { return nil }, Timeout: 30 * time.Second,
			}
			if tc.view != nil {
				tc.view(&v)
			}
			d := synthesis.Look(v, epoch.Add(100*time.Second))
			got := []string{d.Status.Simplified.Status, d.Status.Simplified.Error}
			for _, kind := range []string{"Synthesized", "Reconciled", "Ready"} {
				c := meta.FindStatusCondition(d.Status.Conditions, kind)
				got = append(got, c.Reason+": "+c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || d.Release != tc.release {
				t.Errorf("%s\nrelease %v\n%s", tc.reason, d.Release, diff)
			}

			// A second call returns the same, and writes nothing.
			v.Composition.Status = d.Status
			if diff := cmp.Diff(d.Status, synthesis.Look(v, epoch.Add(101*time.Second)).Status); diff != "" {
				t.Errorf("it is not the same a second later:\n%s", diff)
			}
		})
	}
}

// TestLostSlice has a composition that is deleted while a slice is lost.
func TestLostSlice(t *testing.T) {
	gone := enov1.ResourceState{Deleted: true}
	abandoned := func(c *enov1.Composition) { c.Labels = map[string]string{enov1.LabelSymphonyDeleting: "true"} }
	cases := map[string]struct {
		reason  string
		change  func(*enov1.Composition)
		current []*enov1.ResourceSlice
		since   time.Time
		release bool
		next    time.Time
	}{
		"Restored": {reason: "All slices exist.", current: []*enov1.ResourceSlice{slice(gone, gone, gone)}, release: true},
		"Waits":    {reason: "Delivery may restore it, and delete its objects.", current: []*enov1.ResourceSlice{nil}, since: epoch.Add(-time.Second), next: epoch.Add(synthesis.LostGrace - time.Second)},
		"Over":     {reason: "It does not wait forever.", current: []*enov1.ResourceSlice{nil}, since: epoch.Add(-synthesis.LostGrace), release: true},
		"Orphaned": {
			reason: "Some manifests may not be orphaned.", current: []*enov1.ResourceSlice{nil}, since: epoch, next: epoch.Add(synthesis.LostGrace),
			change: func(c *enov1.Composition) {
				c.Annotations = map[string]string{enov1.AnnotationDeletionStrategy: "orphan"}
			},
		},
		"Abandoned": {reason: "Its objects stay.", current: []*enov1.ResourceSlice{nil}, since: epoch, change: abandoned, release: true, next: epoch.Add(synthesis.LostGrace)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := composition()
			c.DeletionTimestamp = after(0)
			if tc.change != nil {
				tc.change(c)
			}
			d := synthesis.Look(synthesis.View{Composition: c, Synthesizer: synthesizer(), Find: lookup(nil), Current: tc.current, LostSince: tc.since}, epoch)
			if d.Release != tc.release || !d.Next.Equal(tc.next) {
				t.Errorf("%s: release %t, want %t; next %s, want %s", tc.reason, d.Release, tc.release, d.Next, tc.next)
			}
		})
	}
}

// TestStatesRemoved has another client remove the states of a synthesis that was reconciled: what
// is recorded holds until delivery has written them again.
func TestStatesRemoved(t *testing.T) {
	fine := enov1.ResourceState{Reconciled: true, Ready: after(1)}
	cases := map[string]struct {
		reason string
		now    []*enov1.ResourceSlice
		want   bool
	}{
		"Removed":   {"All of them.", []*enov1.ResourceSlice{slice(), slice(fine, fine, fine)}, true},
		"Shortened": {"Some of them, so that all are at another index.", []*enov1.ResourceSlice{slice(fine, fine), slice(fine, fine, fine)}, true},
		"Other":     {"Another slice has an object that is not reconciled.", []*enov1.ResourceSlice{slice(), slice(fine, enov1.ResourceState{}, fine)}, false},
		"Lost":      {"A slice does not exist.", []*enov1.ResourceSlice{slice(), nil}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := synthesis.View{Composition: composition(), Synthesizer: synthesizer(), Current: []*enov1.ResourceSlice{slice(fine, fine, fine), slice(fine, fine, fine)}, Find: lookup(nil)}
			v.Composition.Status = synthesis.Look(v, epoch).Status
			v.Current = tc.now
			if current := synthesis.Look(v, epoch).Status.CurrentSynthesis; (current.Reconciled != nil) != tc.want || (current.Ready != nil) != tc.want {
				t.Errorf("%s: reconciled %s, ready %s", tc.reason, current.Reconciled, current.Ready)
			}
		})
	}
}

func TestReadyIsTakenBack(t *testing.T) {
	fine := enov1.ResourceState{Reconciled: true, Ready: after(5)}
	v := synthesis.View{Composition: composition(), Synthesizer: synthesizer(), Current: []*enov1.ResourceSlice{slice(fine, fine, fine)}, Find: lookup(nil)}
	d := synthesis.Look(v, epoch.Add(3*time.Second))
	if current := d.Status.CurrentSynthesis; !current.Reconciled.Equal(after(3)) || !current.Ready.Equal(after(5)) {
		t.Errorf("reconciled %s, ready %s", current.Reconciled, current.Ready)
	}
	v.Composition.Status, v.Current = d.Status, []*enov1.ResourceSlice{slice(fine, enov1.ResourceState{}, fine)}
	if current := synthesis.Look(v, epoch).Status.CurrentSynthesis; current.Reconciled != nil || current.Ready != nil {
		t.Error("what the cluster does not agree with any more is not reconciled")
	}
}

// A synthesis is ended by the process that runs it, and by another one only if that one has ended.
func TestCancel(t *testing.T) {
	cases := map[string]struct {
		reason   string
		seconds  int
		changes  []func(*enov1.Composition)
		mine     bool
		canceled bool
		next     int // in seconds; 0 if it does not matter
	}{
		"Early":     {"It has time.", 120, nil, false, false, 132},
		"Late":      {"Its time is over.", 132, nil, false, true, 0},
		"MineEarly": {"If the process that runs it cannot record its end, no event follows: its time must be checked.", 120, nil, true, false, 132},
		"Mine":      {"Who runs it ends it.", 132, nil, true, false, 134},
		"Rollback":  {"It is not wanted.", 101, []func(*enov1.Composition){annotate(enov1.AnnotationRollback, "now")}, true, true, 0},
		"Deleted":   {"Nothing is.", 101, []func(*enov1.Composition){func(c *enov1.Composition) { c.DeletionTimestamp = after(101) }}, true, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := synthesis.View{Composition: composition(append(tc.changes, inFlight)...), Synthesizer: synthesizer(), Find: lookup(nil), Timeout: 30 * time.Second, Mine: tc.mine}
			d := synthesis.Look(v, after(tc.seconds).Time)
			if d.Canceled != tc.canceled || (d.Status.InFlightSynthesis.Canceled != nil) != tc.canceled {
				t.Errorf("%s\n%+v", tc.reason, d.Status.InFlightSynthesis)
			}
			if tc.next > 0 && !d.Next.Equal(after(tc.next).Time) {
				t.Errorf("%s\nit is decided again at %s, want %s", tc.reason, d.Next, after(tc.next))
			}
		})
	}
}

// A synthesis in a pod has time until its images are pulled, and Pods reports which limit it
// exceeded. This is for the case that nothing watches pods.
func TestCancelPod(t *testing.T) {
	const startup = 5 * time.Minute
	cases := map[string]struct {
		reason   string
		seconds  int
		change   func(*synthesis.View)
		canceled bool
	}{
		"Starts":      {"Images may still be pulled.", 132, func(*synthesis.View) {}, false},
		"Late":        {"Whatever it does, it takes too long.", 132 + 300 + 4, func(*synthesis.View) {}, true},
		"Rollback":    {"It has no pod.", 132, func(v *synthesis.View) { v.Composition.Status.InFlightSynthesis.RolledBackTo = "x" }, true},
		"Synthesizer": {"Nor has it any without a program.", 132, func(v *synthesis.View) { v.Synthesizer = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := synthesis.View{Composition: composition(inFlight), Synthesizer: synthesizer(), Find: lookup(nil), Timeout: 30 * time.Second, Startup: startup}
			tc.change(&v)
			if d := synthesis.Look(v, after(tc.seconds).Time); d.Canceled != tc.canceled {
				t.Errorf("%s\n%+v", tc.reason, d.Status.InFlightSynthesis)
			}
		})
	}
}

func TestMade(t *testing.T) {
	for n, want := range map[int]string{
		0: "Synthesis a made 0 resources",
		1: "Synthesis a made 1 resource",
		2: "Synthesis a made 2 resources",
	} {
		if got := synthesis.Made("a", n); got != want {
			t.Errorf("Made(a, %d) = %q, want %q", n, got, want)
		}
	}
}
