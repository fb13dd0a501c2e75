package podgroup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

func TestGuard(t *testing.T) {
	cases := map[string]struct {
		reason string
		guard  podgroup.Guard
		class  string
		want   bool
	}{
		"System":     {reason: "classes of Kubernetes are protected", guard: podgroup.GuardSystem, class: "system-node-critical", want: true},
		"SystemNew":  {reason: "the prefix is reserved, so future classes are too", guard: podgroup.GuardSystem, class: "system-x", want: true},
		"SystemElse": {reason: "other classes are for everybody", guard: podgroup.GuardSystem, class: "train"},
		"Similar":    {reason: "a prefix of the prefix is another class", guard: podgroup.GuardSystem, class: "systems"},
		"All":        {reason: "all classes can be protected", guard: podgroup.GuardAll, class: "train", want: true},
		"Off":        {reason: "or none", guard: podgroup.GuardOff, class: "system-node-critical"},
		"Unknown":    {reason: "an unknown value must not switch the guard off", guard: "none", class: "system-node-critical", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.guard.Protects(tc.class); got != tc.want {
				t.Errorf("%s\n%q.Protects(%q) = %t", tc.reason, tc.guard, tc.class, got)
			}
		})
	}
}

func named(class string) *v2alpha2.PodGroup {
	return with(group(), func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = class })
}

func TestNewClass(t *testing.T) {
	cases := map[string]struct {
		reason        string
		before, after *v2alpha2.PodGroup
		want          string
	}{
		"Created":   {reason: "a new group names its class", after: named("a"), want: "a"},
		"None":      {reason: "or none", after: named("")},
		"Changed":   {reason: "a change names the new one", before: named("a"), after: named("b"), want: "b"},
		"Added":     {reason: "also if there was none", before: named(""), after: named("b"), want: "b"},
		"Removed":   {reason: "everybody may give up a class", before: named("a"), after: named("")},
		"Unchanged": {reason: "other fields may change without the permission", before: named("a"), after: with(named("a"), func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(7) })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := podgroup.NewClass(tc.before, tc.after); got != tc.want {
				t.Errorf("%s\nNewClass(...) = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestClassForbidden(t *testing.T) {
	want := verdict.Problem{
		Reason: "PriorityClassForbidden", Field: "spec.priorityClassName", Value: "system-node-critical", Forbidden: true,
		Message: `PodGroup default/training-job: spec.priorityClassName: user "alice" is not allowed to use PriorityClass "system-node-critical"; ` +
			`to allow it, bind a ClusterRole with the rule {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], resourceNames: [system-node-critical], verbs: [use]} ` +
			`to that user with a ClusterRoleBinding, or name another class`,
	}
	if diff := cmp.Diff(want, podgroup.ClassForbidden(named("system-node-critical"), "alice")); diff != "" {
		t.Errorf("ClassForbidden(...): -want, +got:\n%s", diff)
	}
}

func TestClassNotFound(t *testing.T) {
	want := `spec.priorityClassName: PriorityClass "train" does not exist, so the group has the lowest priority of its pods; create the class or correct the name`
	if got := podgroup.ClassNotFound("train").String(); got != want {
		t.Errorf("ClassNotFound(...) = %q, want %q", got, want)
	}
	if got := podgroup.ClassNotFound(strings.Repeat("x", 300)).String(); len(got) > 256 {
		t.Errorf("a long name makes a warning of %d bytes, and the API server cuts those of more than 256", len(got))
	}
}
