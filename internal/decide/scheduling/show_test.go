package scheduling_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

// A room has so many places.
type room struct{ free, held int }

func (r *room) Try(context.Context, int) (string, *gang.Misfit, error) {
	if r.held == r.free {
		return "", &gang.Misfit{Nodes: 1, Reasons: map[string]int{"Too many pods": 1}}, nil
	}
	r.held++

	return "node-1", nil, nil
}

func (r *room) Mark() int         { return r.held }
func (r *room) Rollback(mark int) { r.held = mark }

func TestShow(t *testing.T) {
	now := metav1.NewTime(began.Add(time.Hour))
	// A condition as it is, with the time at which it became so.
	is := func(status metav1.ConditionStatus, reason, message string, since metav1.Time) v2alpha2.PodGroupCondition {
		return v2alpha2.PodGroupCondition{
			Type: v2alpha2.PodGroupScheduled, Status: status, ObservedGeneration: 3,
			LastTransitionTime: since, Reason: reason, Message: message,
		}
	}
	valid := v2alpha2.PodGroupCondition{Type: v2alpha2.PodGroupValid, Status: metav1.ConditionTrue}
	noRoom := is("False", "Unschedulable", "room for 1 of min 2 pods: 0/1 nodes are available: 1 Too many pods.", began)
	before := func(conditions ...v2alpha2.PodGroupCondition) v2alpha2.PodGroupStatus {
		return v2alpha2.PodGroupStatus{Conditions: conditions, Running: 9}
	}
	two := []*corev1.Pod{pod("a", ""), pod("b", "")}
	sets := group(v2alpha2.SubGroup{Name: "s", MinSubGroup: num(1)}, under("s", "x"), under("s", "y"))
	cases := map[string]struct {
		reason string
		group  *v2alpha2.PodGroup
		before v2alpha2.PodGroupStatus
		pods   []*corev1.Pod
		// room is how many places the world has, none is tried if negative.
		room int
		want v2alpha2.PodGroupStatus
	}{
		"Scheduled": {
			reason: "a group that fits has its condition, and others keep theirs",
			group:  group(), before: before(valid), pods: two, room: 2,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(2),
				Conditions: []v2alpha2.PodGroupCondition{valid, is("True", "Scheduled", "every minimum is met", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Placed: 2, Min: 2, Satisfied: true}},
			},
		},
		"Unschedulable": {
			reason: "one that does not says why, and since when",
			group:  group(), before: before(noRoom, valid), pods: two, room: 0,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(0),
				Conditions: []v2alpha2.PodGroupCondition{
					is("False", "Unschedulable", "room for 0 of min 2 pods: 0/1 nodes are available: 1 Too many pods.", began), valid,
				},
				SubGroups: []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"TooFewPods": {
			reason: "one without enough pods is not a question of room",
			group:  group(), pods: two[:1], room: 5,
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "TooFewPods", "it has 1 of min 2 pods", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 1, Min: 2}},
			},
		},
		"Pending": {
			reason: "one that was not tried waits",
			group:  group(), pods: two, room: -1,
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Pending", "the group waits for its turn", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"StillUnschedulable": {
			reason: "what was said last holds until it is tried again",
			group:  group(), before: before(noRoom), pods: two, room: -1,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(0), Conditions: []v2alpha2.PodGroupCondition{noRoom},
				SubGroups: []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"BoundMeanwhile": {
			reason: "unless it is no longer true",
			group:  group(), before: before(noRoom), pods: []*corev1.Pod{pod("a", "", bound), pod("b", "", succeeded)}, room: -1,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(2),
				Conditions: []v2alpha2.PodGroupCondition{is("True", "Scheduled", "every minimum is met", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Placed: 2, Min: 2, Satisfied: true}},
			},
		},
		"Refused": {
			reason: "a group that cannot be read has no counts",
			group:  group(leaf("x")), pods: []*corev1.Pod{pod("a", "")}, room: 5,
			before: v2alpha2.PodGroupStatus{Placed: num(4), SubGroups: []v2alpha2.SubGroupStatus{{Name: "x"}}},
			want: v2alpha2.PodGroupStatus{
				Conditions: []v2alpha2.PodGroupCondition{
					is("False", "NoSubGroup", `pod "a" names no subgroup of PodGroup "bert": set its label kai.scheduler/subgroup-name to "x"`, now),
				},
			},
		},
		"Sets": {
			reason: "sets count their children, and a decision that does not fit has none that are satisfied",
			group:  sets, pods: []*corev1.Pod{pod("a", "x"), pod("b", "x"), pod("c", "y")}, room: 1,
			want: v2alpha2.PodGroupStatus{
				Placed: num(0),
				Conditions: []v2alpha2.PodGroupCondition{
					is("False", "Unschedulable", "only 1 of min 2 pods below it fit: 0/1 nodes are available: 1 Too many pods.", now),
				},
				SubGroups: []v2alpha2.SubGroupStatus{
					{Name: "s", Pods: 3, SatisfiedSubGroups: num(0), MinSubGroup: num(1)},
					{Name: "x", Pods: 2, Min: 1},
					{Name: "y", Pods: 1, Min: 1},
				},
			},
		},
		"SetsFit": {
			reason: "and one that fits counts what it has placed",
			group:  sets, pods: []*corev1.Pod{pod("a", "x"), pod("b", "x"), pod("c", "y")}, room: 2,
			want: v2alpha2.PodGroupStatus{
				Placed:     num(2),
				Conditions: []v2alpha2.PodGroupCondition{is("True", "Scheduled", "every minimum is met", now)},
				SubGroups: []v2alpha2.SubGroupStatus{
					{Name: "s", Pods: 3, Placed: 2, SatisfiedSubGroups: num(1), MinSubGroup: num(1), Satisfied: true},
					{Name: "x", Pods: 2, Placed: 2, Min: 1, Satisfied: true},
					{Name: "y", Pods: 1, Min: 1},
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pg := tc.group.DeepCopy()
			pg.Status = tc.before
			kept := pg.DeepCopy()
			g, refusal := scheduling.Read(pg, tc.pods, gang.Rules{})
			var decision *gang.Decision
			if g != nil && tc.room >= 0 {
				d, err := gang.Place(t.Context(), g.Tree, g.Members, &room{free: tc.room}, g.Rules)
				if err != nil {
					t.Fatal(err)
				}
				decision = &d
			}
			got := scheduling.Show(pg, g, decision, refusal, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nShow(...): -want, +got:\n%s", tc.reason, diff)
			}
			pg.Status = got
			if diff := cmp.Diff(got, scheduling.Show(pg, g, decision, refusal, metav1.NewTime(now.Add(time.Hour)))); diff != "" {
				t.Errorf("%s\nShow(...) once more: -first, +second:\n%s", tc.reason, diff)
			}
			pg.Status = tc.before
			if diff := cmp.Diff(kept, pg); diff != "" {
				t.Errorf("%s\nShow(...) changed its argument: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestShowIsShort(t *testing.T) {
	pg := group()
	for i := range 1500 {
		pg.Spec.SubGroups = append(pg.Spec.SubGroups, leaf("s"+strconv.Itoa(i)))
	}
	g, refusal := scheduling.Read(pg, nil, gang.Rules{})
	got := scheduling.Show(pg, g, nil, refusal, began)
	if n := len(got.SubGroups); n != 1000 || got.SubGroups[999].Name != "s999" {
		t.Errorf("the status lists %d of 1500 subgroups, want the first 1000", n)
	}
}
