package synthesis_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// restricted are the rules of --delivery-scope=namespace with one shared namespace.
var restricted = tenancy.Rules{Scope: tenancy.Namespace, InputNamespaces: []string{"shared"}}

// bound binds an input of a composition, which is in namespace n, to an object.
func bound(key, namespace, name string) func(*enov1.Composition) {
	return func(c *enov1.Composition) {
		c.Spec.Bindings = append(c.Spec.Bindings, enov1.Binding{Key: key, Resource: enov1.ResourceBinding{Namespace: namespace, Name: name}})
	}
}

func environment(name string) func(*enov1.Composition) {
	return func(c *enov1.Composition) {
		c.Spec.SynthesisEnv = append(c.Spec.SynthesisEnv, enov1.EnvVar{Name: name, Value: "x"})
	}
}

// policed returns a Synthesizer that binds the input slow itself, and pins it.
func policed() *enov1.Synthesizer {
	s := synthesizer()
	s.Spec.Refs[1].Resource.Namespace, s.Spec.Refs[1].Resource.Name, s.Spec.Refs[1].Pinned = "policies", "policy", true

	return s
}

func TestBind(t *testing.T) {
	type object struct{ Namespace, Name, Forbidden, Ignored string }
	reason := func(v *tenancy.Violation) string {
		if v == nil {
			return ""
		}

		return v.Reason
	}
	unpinned := policed()
	unpinned.Spec.Refs[1].Pinned = false
	cases := map[string]struct {
		reason      string
		synthesizer *enov1.Synthesizer
		rules       tenancy.Rules
		changes     []func(*enov1.Composition)
		want        object // of the input slow
	}{
		"Synthesizer":  {reason: "A Synthesizer binds what it likes.", synthesizer: unpinned, rules: restricted, want: object{Namespace: "policies", Name: "policy"}},
		"Composition":  {reason: "A Composition replaces that.", synthesizer: unpinned, changes: []func(*enov1.Composition){bound("slow", "m", "mine")}, want: object{Namespace: "m", Name: "mine"}},
		"Own":          {reason: "With restrictions, by an object of its own.", synthesizer: unpinned, rules: restricted, changes: []func(*enov1.Composition){bound("slow", "n", "mine")}, want: object{Namespace: "n", Name: "mine"}},
		"Shared":       {reason: "Or one that is shared.", synthesizer: unpinned, rules: restricted, changes: []func(*enov1.Composition){bound("slow", "shared", "x")}, want: object{Namespace: "shared", Name: "x"}},
		"Other":        {reason: "And not by one of another tenant.", synthesizer: unpinned, rules: restricted, changes: []func(*enov1.Composition){bound("slow", "m", "x")}, want: object{Namespace: "m", Name: "x", Forbidden: enov1.ReasonNamespaceNotAllowed}},
		"Namesake":     {reason: "The namespace of the Synthesizer's choice does not open the rest of it.", synthesizer: unpinned, rules: restricted, changes: []func(*enov1.Composition){bound("slow", "policies", "x")}, want: object{Namespace: "policies", Name: "x", Forbidden: enov1.ReasonNamespaceNotAllowed}},
		"Same":         {reason: "It may name what the Synthesizer chose.", synthesizer: unpinned, rules: restricted, changes: []func(*enov1.Composition){bound("slow", "policies", "policy")}, want: object{Namespace: "policies", Name: "policy"}},
		"NoNamespace":  {reason: "What is cluster-scoped is for Synthesizers.", synthesizer: unpinned, rules: restricted, changes: []func(*enov1.Composition){bound("slow", "", "x")}, want: object{Name: "x", Forbidden: enov1.ReasonClusterScoped}},
		"Pinned":       {reason: "A pinned input stays.", synthesizer: policed(), changes: []func(*enov1.Composition){bound("slow", "n", "mine")}, want: object{Namespace: "policies", Name: "policy", Ignored: enov1.ReasonPinned}},
		"PinnedOther":  {reason: "In both scopes.", synthesizer: policed(), rules: restricted, changes: []func(*enov1.Composition){bound("slow", "m", "mine")}, want: object{Namespace: "policies", Name: "policy", Ignored: enov1.ReasonPinned}},
		"PinnedSame":   {reason: "Naming it changes nothing.", synthesizer: policed(), changes: []func(*enov1.Composition){bound("slow", "policies", "policy")}, want: object{Namespace: "policies", Name: "policy"}},
		"PinnedUnused": {reason: "No attempt, no report.", synthesizer: policed(), want: object{Namespace: "policies", Name: "policy"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := synthesis.Bind(composition(tc.changes...), tc.synthesizer, tc.rules)[1]
			if diff := cmp.Diff(tc.want, object{b.Namespace, b.Name, reason(b.Forbidden), reason(b.Ignored)}); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// clusterScoped records what was found when the inputs of a generation were read.
func clusterScoped(c *enov1.Composition, generation int64) {
	c.Status.Conditions = []metav1.Condition{{Type: enov1.ConditionInputForbidden, Status: metav1.ConditionTrue, Reason: enov1.ReasonClusterScoped, ObservedGeneration: generation}}
}

// TestForbiddenIsNotBegun has compositions that break a rule, and nothing else to stop them.
func TestForbiddenIsNotBegun(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*enov1.Composition)
		want   bool // with restrictions
	}{
		"Fine":     {"It keeps to the rules.", bound("in", "n", "x"), true},
		"Input":    {"Its input is in another namespace.", bound("in", "m", "x"), false},
		"Optional": {"Without an optional input the output would be another one.", bound("maybe", "m", "x"), false},
		"Unknown":  {"A key that the Synthesizer does not know is not read.", bound("unknown", "m", "x"), true},
		"Env":      {"Its environment changes what is run.", environment("LD_PRELOAD"), false},
		"Variable": {"Others do not.", environment("COLOR"), true},
		"Scope":    {"The kind of an optional input is cluster-scoped, which was found when it was read.", func(c *enov1.Composition) { clusterScoped(c, c.Generation) }, false},
		"Edited":   {"The composition was edited since.", func(c *enov1.Composition) { clusterScoped(c, c.Generation-1) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, rules := range []tenancy.Rules{{}, restricted} {
				plan := synthesis.Schedule([]*enov1.Composition{named("c", fresh, tc.change)}, map[string]*enov1.Synthesizer{"s": synthesizer()}, synthesis.Limits{Concurrency: 10, Rules: rules}, epoch)
				if begun := len(plan.Begin) == 1; begun != (tc.want || !rules.Scope.Restricts() && name != "Scope") {
					t.Errorf("%s\nrules %+v, begun %t", tc.reason, rules, begun)
				}
			}
		})
	}
}

// TestViolations is about what a composition reports when it breaks a rule.
func TestViolations(t *testing.T) {
	forbidden := &tenancy.Violation{Condition: enov1.ConditionInputForbidden, Reason: enov1.ReasonClusterScoped, Message: "it is cluster-scoped"}
	inputs := func(change func([]synthesis.Input)) []synthesis.Input {
		all := []synthesis.Input{
			{Key: "in", Revision: &enov1.InputRevisions{Key: "in", ResourceVersion: "10"}}, {Key: "slow", Revision: &enov1.InputRevisions{Key: "slow", ResourceVersion: "20"}}, {Key: "maybe"},
		}
		change(all)

		return all
	}
	forbid := func(i int) []synthesis.Input {
		return inputs(func(all []synthesis.Input) {
			all[i] = synthesis.Input{Key: all[i].Key, Problem: "it is cluster-scoped", Forbidden: forbidden}
		})
	}
	const env = `synthesisEnv: variable "PATH" can make the program of the Synthesizer run other code; remove it, or have the Synthesizer set it in its command`
	cases := map[string]struct {
		reason  string
		changes []func(*enov1.Composition)
		inputs  []synthesis.Input
		want    []string // simplified status and error, Synthesized, InputForbidden, EnvForbidden
	}{
		"None": {
			reason: "It keeps to the rules.", inputs: inputs(func([]synthesis.Input) {}),
			want: []string{"Reconciling", "", "Synthesized: 3 resources in 1 slice", "", ""},
		},
		"Input": {
			reason: "An input that must be there.", inputs: forbid(0),
			want: []string{"MissingInputs", "it is cluster-scoped", "InputForbidden: it is cluster-scoped", "ClusterScoped: it is cluster-scoped", ""},
		},
		"Optional": {
			reason: "It is not absent, it is forbidden.", inputs: forbid(2),
			want: []string{"MissingInputs", "it is cluster-scoped", "InputForbidden: it is cluster-scoped", "ClusterScoped: it is cluster-scoped", ""},
		},
		"Pinned": {
			reason: "What is pinned is used, and synthesis goes on.",
			inputs: inputs(func(all []synthesis.Input) {
				all[1].Ignored = &tenancy.Violation{Condition: enov1.ConditionInputForbidden, Reason: enov1.ReasonPinned, Message: "it is pinned"}
			}),
			want: []string{"Reconciling", "", "Synthesized: 3 resources in 1 slice", "Pinned: it is pinned", ""},
		},
		"Both": {
			reason: "What stops it comes first.",
			inputs: inputs(func(all []synthesis.Input) {
				all[0].Ignored = &tenancy.Violation{Condition: enov1.ConditionInputForbidden, Reason: enov1.ReasonPinned, Message: "it is pinned"}
				all[2].Forbidden = forbidden
			}),
			want: []string{"MissingInputs", "it is cluster-scoped", "InputForbidden: it is cluster-scoped", "ClusterScoped: it is cluster-scoped (and 1 more)", ""},
		},
		"Env": {
			reason: "The variable is named.", changes: []func(*enov1.Composition){environment("PATH")}, inputs: inputs(func([]synthesis.Input) {}),
			want: []string{"PendingSynthesis", env, "EnvForbidden: " + env, "", "LoaderVariable: " + env},
		},
		"Deleted": {
			reason: "Then it does not matter.", changes: []func(*enov1.Composition){environment("PATH"), func(c *enov1.Composition) { c.DeletionTimestamp = after(0) }}, inputs: forbid(0),
			want: []string{"Deleting", "", "Deleting: the composition is being deleted", "", ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := synthesis.View{
				Composition: composition(tc.changes...), Synthesizer: synthesizer(), Inputs: tc.inputs, Current: []*enov1.ResourceSlice{slice()},
				Find: lookup(nil), Timeout: 30 * time.Second, Rules: restricted,
			}
			d := synthesis.Look(v, epoch)
			got := []string{d.Status.Simplified.Status, d.Status.Simplified.Error}
			for _, kind := range []string{enov1.ConditionSynthesized, enov1.ConditionInputForbidden, enov1.ConditionEnvForbidden} {
				text := ""
				if c := meta.FindStatusCondition(d.Status.Conditions, kind); c != nil {
					text = c.Reason + ": " + c.Message
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			// Once it keeps to the rules, the conditions disappear.
			v.Composition = composition()
			v.Composition.Status, v.Inputs = d.Status, inputs(func([]synthesis.Input) {})
			for _, c := range synthesis.Look(v, epoch).Status.Conditions {
				if c.Type == enov1.ConditionInputForbidden || c.Type == enov1.ConditionEnvForbidden {
					t.Errorf("%s\n%+v stays", tc.reason, c)
				}
			}
		})
	}
}
