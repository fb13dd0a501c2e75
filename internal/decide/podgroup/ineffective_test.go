package podgroup_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
)

const (
	queueWarning    = `spec.queue: "gpu" has no effect: this release has no queues, and groups are ordered by priority and age`
	requiredWarning = `spec.topologyConstraint.requiredTopologyLevel: "zone" cannot be kept, so no pod of the group is placed (TopologyNotSupported): ` +
		`this release has no topology constraints; remove the level, or use the affinity of pods`
)

// full has every field that has no effect, and a required level.
func full() *v2alpha2.PodGroup {
	return with(group(v2alpha2.SubGroup{
		Name: "a", TopologyConstraint: &v2alpha2.TopologyConstraint{Topology: "dc", RequiredTopologyLevel: "rack", PreferredTopologyLevel: "host"},
	}), func(pg *v2alpha2.PodGroup) {
		pg.Spec.Queue = "gpu"
		pg.Spec.TopologyConstraint = v2alpha2.TopologyConstraint{Topology: "dc", RequiredTopologyLevel: "zone", PreferredTopologyLevel: "rack"}
		pg.Spec.MarkUnschedulable, pg.Spec.SchedulingBackoff = new(false), num(-1)
		pg.Spec.Parallelism, pg.Spec.Completions, pg.Spec.BackoffLimit = 2, 3, 4
	})
}

func TestIneffective(t *testing.T) {
	cases := map[string]struct {
		reason        string
		before, after *v2alpha2.PodGroup
		want          []string
	}{
		"Created": {
			reason: "each field has a warning of its own, with its path", after: full(),
			want: []string{
				requiredWarning,
				strings.NewReplacer("spec.", "spec.subGroups[0].", "zone", "rack").Replace(requiredWarning),
				queueWarning,
				`spec.topologyConstraint.preferredTopologyLevel: "rack" has no effect: this release has no topology constraints`,
				`spec.subGroups[0].topologyConstraint.preferredTopologyLevel: "host" has no effect: this release has no topology constraints`,
				`spec.markUnschedulable: false has no effect: the scheduler does not read this field`,
				`spec.schedulingBackoff: -1 has no effect: the scheduler does not read this field`,
				`spec.parallelism: 2 has no effect: the scheduler does not read this field`,
				`spec.completions: 3 has no effect: the scheduler does not read this field`,
				`spec.backoffLimit: 4 has no effect: the scheduler does not read this field`,
			},
		},
		"Unchanged": {
			reason: "an update of something else repeats none of them",
			before: full(), after: with(full(), func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(7) }),
		},
		"Changed": {
			reason: "a new value is a new mistake", before: with(full(), func(pg *v2alpha2.PodGroup) { pg.Spec.Queue = "cpu" }), after: full(),
			want: []string{queueWarning},
		},
		"Removed": {reason: "there is nothing to say about what is gone", before: with(full(), func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups = nil }), after: group()},
		"Required": {
			reason: "nor is a required level that comes later dropped in silence", before: with(full(), func(pg *v2alpha2.PodGroup) { pg.Spec.TopologyConstraint.RequiredTopologyLevel = "" }), after: full(),
			want: []string{requiredWarning},
		},
		"Moved": {
			reason: "a subgroup keeps its name, not its index",
			before: group(v2alpha2.SubGroup{Name: "a", TopologyConstraint: &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "rack"}}),
			after:  group(top("b"), v2alpha2.SubGroup{Name: "a", TopologyConstraint: &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "rack"}}),
		},
		"TopologyOnly": {reason: "a topology without a level asks for nothing", after: with(group(), func(pg *v2alpha2.PodGroup) { pg.Spec.TopologyConstraint.Topology = "dc" })},
		"Long": {
			reason: "a long value is cut, and the reason is kept", after: with(group(), func(pg *v2alpha2.PodGroup) { pg.Spec.Queue = strings.Repeat("q", 500) }),
			want: []string{strings.Replace(queueWarning, "gpu", strings.Repeat("q", 45)+"...", 1)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, podgroup.Admit(tc.before, tc.after).WarningStrings()); diff != "" {
				t.Errorf("%s\nAdmit(...): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.before == nil {
				if diff := cmp.Diff(tc.want, podgroup.Lint(tc.after).WarningStrings()); diff != "" {
					t.Errorf("%s\nLint(...): -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// Check is for groups that are stored: it warns about what cannot work, and not
// about every group that has a queue.
func TestCheckLeavesIneffectiveOut(t *testing.T) {
	for _, w := range podgroup.Check(full()).Warnings {
		if !strings.HasSuffix(w.Field, "requiredTopologyLevel") {
			t.Errorf("Check(...) warns: %s", w)
		}
	}
}

// Every field of the spec is either acted on or warned about.
func TestEveryFieldIsKnown(t *testing.T) {
	acted := []string{"MinMember", "MinSubGroup", "PriorityClassName", "Preemptibility", "SubGroups", "PreemptionDelay", "StalenessGracePeriod"}
	warned := podgroup.Lint(full()).Warnings
	for field := range reflect.TypeFor[v2alpha2.PodGroupSpec]().Fields() {
		path := "spec." + strings.Split(field.Tag.Get("json"), ",")[0]
		found := false
		for _, w := range warned {
			found = found || w.Field == path || strings.HasPrefix(w.Field, path+".")
		}
		if found == slices.Contains(acted, field.Name) {
			t.Errorf("%s: it has a warning: %t", path, found)
		}
	}
}
