package scheduling_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// factsOf reads a gang and has it tried in a room with so many places; in none
// if that is negative.
func factsOf(t *testing.T, pg *v2alpha2.PodGroup, pods []*corev1.Pod, places int) *scheduling.Facts {
	t.Helper()
	f := &scheduling.Facts{Group: pg, Pods: pods}
	f.Gang, f.Refusal = scheduling.Read(pg, pods, gang.Rules{})
	if f.Gang == nil || places < 0 {
		return f
	}
	decision, err := gang.Place(t.Context(), f.Gang.Tree, f.Gang.Members, &room{free: places}, f.Gang.Rules)
	if err != nil {
		t.Fatal(err)
	}
	f.Outcome = scheduling.NewOutcome(f.Gang, &decision, func(i int) bool { return f.Gang.Members[i].State == gang.Waiting })

	return f
}

// named gives every pod a UID.
func named(p *corev1.Pod) { p.UID = types.UID(p.Name) }

// unbound marks pods that have a node which the API server does not know yet.
func unbound(names ...types.UID) func(*scheduling.Facts) {
	return func(f *scheduling.Facts) {
		f.Gang.Unbound = map[types.UID]bool{}
		for _, name := range names {
			f.Gang.Unbound[name] = true
		}
	}
}

func preempting(f *scheduling.Facts) {
	f.Progress = &scheduling.Progress{About: scheduling.Spec(f.Group), Reason: v2alpha2.ReasonPreempting, Message: "2 of 3 victims are terminating"}
}

// withoutSums drops what TestSums and TestUnschedulableOnNodePool are about.
func withoutSums(status v2alpha2.PodGroupStatus) v2alpha2.PodGroupStatus {
	status.SchedulingConditions, status.ResourcesStatus = nil, v2alpha2.PodGroupResourcesStatus{}

	return status
}

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
	full := "0/1 nodes are available: 1 Too many pods."
	noRoom := is("False", "Unschedulable", "room for 1 of min 2 pods: "+full, began)
	older := noRoom
	older.ObservedGeneration--
	before := func(conditions ...v2alpha2.PodGroupCondition) v2alpha2.PodGroupStatus {
		return v2alpha2.PodGroupStatus{Conditions: conditions, Running: 9}
	}
	two := []*corev1.Pod{pod("a", "", named), pod("b", "", named)}
	placed := []*corev1.Pod{pod("a", "", named, bound), pod("b", "", named, bound)}
	sets := group(v2alpha2.SubGroup{Name: "s", MinSubGroup: num(1)}, under("s", "x"), under("s", "y"))
	cases := map[string]struct {
		reason string
		group  *v2alpha2.PodGroup
		before v2alpha2.PodGroupStatus
		pods   []*corev1.Pod
		// room is how many places there are; the gang is not tried if negative.
		room   int
		change func(*scheduling.Facts)
		want   v2alpha2.PodGroupStatus
	}{
		"Scheduled": {
			reason: "a group whose pods are bound or have succeeded is scheduled, and other conditions stay",
			group:  group(), before: before(valid), pods: []*corev1.Pod{pod("a", "", bound), pod("b", "", succeeded)}, room: -1,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(2),
				Conditions: []v2alpha2.PodGroupCondition{valid, is("True", "Scheduled", "every minimum is met", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Placed: 2, Min: 2, Satisfied: true}},
			},
		},
		"ScheduledWhateverWasDecided": {
			reason: "a group that is satisfied is scheduled, although the last attempt failed: it had one pod less",
			group:  group(), before: before(noRoom), pods: placed, room: -1,
			change: func(f *scheduling.Facts) { f.Outcome = factsOf(t, f.Group, two, 0).Outcome },
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(2),
				Conditions: []v2alpha2.PodGroupCondition{is("True", "Scheduled", "every minimum is met", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Placed: 2, Min: 2, Satisfied: true}},
			},
		},
		"Binding": {
			reason: "pods that have a node and are not bound to it are not placed",
			group:  group(), before: before(noRoom), pods: placed, room: -1, change: unbound("b"),
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(1),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Binding", "1 of 2 pods that have a node are bound to it", began)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Placed: 1, Min: 2}},
			},
		},
		"BindingNamed": {
			reason: "the binder may name the pod that it waits for",
			group:  group(), pods: placed, room: -1,
			change: func(f *scheduling.Facts) {
				unbound("b")(f)
				f.Progress = &scheduling.Progress{About: scheduling.Spec(f.Group), Reason: v2alpha2.ReasonBinding, Message: `pod "b" waits for its volumes`}
			},
			want: v2alpha2.PodGroupStatus{
				Placed:     num(1),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Binding", `pod "b" waits for its volumes`, now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Placed: 1, Min: 2}},
			},
		},
		"BindingAfterPreemption": {
			reason: "what the preemptor last said does not hide it",
			group:  group(), pods: placed, room: -1,
			change: func(f *scheduling.Facts) { unbound("a", "b")(f); preempting(f) },
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Binding", "0 of 2 pods that have a node are bound to it", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"Unschedulable": {
			reason: "a group that does not fit says why, and since when",
			group:  group(), before: before(noRoom, valid), pods: two, room: 0,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Unschedulable", "room for 0 of min 2 pods: "+full, began), valid},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"OtherGeneration": {
			reason: "a decision about another generation is not shown",
			group:  group(), pods: two, room: 0, change: func(f *scheduling.Facts) { f.Outcome.Generation-- },
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Pending", "the group waits for its turn", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"OtherGroup": {
			reason: "nor one about another group of that name",
			group:  group(), pods: two, room: 0, change: func(f *scheduling.Facts) { f.Outcome.UID = "other" },
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Pending", "the group waits for its turn", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"OtherTree": {
			reason: "nor one about another tree, whatever its generation",
			group:  group(leaf("x"), leaf("y")), pods: []*corev1.Pod{pod("a", "x"), pod("b", "y")}, room: -1,
			change: func(f *scheduling.Facts) {
				f.Outcome = factsOf(t, group(leaf("x")), []*corev1.Pod{pod("a", "x"), pod("b", "x")}, 0).Outcome
			},
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Pending", "the group waits for its turn", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "x", Pods: 1, Min: 1}, {Name: "y", Pods: 1, Min: 1}},
			},
		},
		"SubGroupAdded": {
			reason: "a subgroup that was added after the decision lacks its pods",
			group:  group(leaf("x"), leaf("y")), pods: []*corev1.Pod{pod("a", "x"), pod("b", "x")}, room: -1,
			change: func(f *scheduling.Facts) {
				f.Outcome = factsOf(t, group(leaf("x")), f.Pods, 0).Outcome
				f.Outcome.Generation--
			},
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "TooFewPods", `subgroup "y" has 0 of min 1 pods`, now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "x", Pods: 2, Min: 1}, {Name: "y", Min: 1}},
			},
		},
		"CannotPreempt": {
			reason: "a group that does not fit says why preemption does not help",
			group:  group(), pods: two, room: 0, change: func(f *scheduling.Facts) {
				f.Progress = &scheduling.Progress{About: scheduling.Spec(f.Group), Reason: v2alpha2.ReasonUnschedulable, Message: "preemption cannot help: too little"}
			},
			want: v2alpha2.PodGroupStatus{
				Placed: num(0),
				Conditions: []v2alpha2.PodGroupCondition{
					is("False", "Unschedulable", "room for 0 of min 2 pods: "+strings.TrimSuffix(full, ".")+"; preemption cannot help: too little", now),
				},
				SubGroups: []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"Preempting": {
			reason: "progress is shown with the decision behind it",
			group:  group(), pods: two, room: 1, change: preempting,
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Preempting", "2 of 3 victims are terminating; last attempt: room for 1 of min 2 pods: "+full, now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"PreemptingOtherGeneration": {
			reason: "but not that of another generation",
			group:  group(), pods: two, room: 1, change: func(f *scheduling.Facts) { preempting(f); f.Progress.Generation-- },
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Unschedulable", "room for 1 of min 2 pods: "+full, now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"PreemptingScheduled": {
			reason: "nor that of a group which is satisfied",
			group:  group(), pods: placed, room: -1, change: preempting,
			want: v2alpha2.PodGroupStatus{
				Placed:     num(2),
				Conditions: []v2alpha2.PodGroupCondition{is("True", "Scheduled", "every minimum is met", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Placed: 2, Min: 2, Satisfied: true}},
			},
		},
		"Error": {
			reason: "a scheduler that could not try the group says so",
			group:  group(), pods: two, room: -1,
			change: func(f *scheduling.Facts) {
				f.Outcome = &scheduling.Outcome{About: scheduling.Spec(f.Group), Error: &scheduling.Refusal{Reason: "SchedulerError", Message: "no answer"}}
			},
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "SchedulerError", "no answer", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"TooFewPods": {
			reason: "a group without enough pods is not a question of room",
			group:  group(), pods: two[:1], room: 5,
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "TooFewPods", "it has 1 of min 2 pods", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 1, Min: 2}},
			},
		},
		"Pending": {
			reason: "a group that was not tried waits",
			group:  group(), pods: two, room: -1,
			want: v2alpha2.PodGroupStatus{
				Placed:     num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Pending", "the group waits for its turn", now)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"StillUnschedulable": {
			reason: "what another process said of this generation holds until the group is tried again",
			group:  group(), before: before(noRoom), pods: two, room: -1,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(0), Conditions: []v2alpha2.PodGroupCondition{noRoom},
				SubGroups: []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"UnschedulableBefore": {
			reason: "what it said of an older generation does not hold",
			group:  group(), before: before(older), pods: two, room: -1,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Pending", "the group waits for its turn", began)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
			},
		},
		"TriedAgain": {
			reason: "and no longer once it was, and its pods could not be bound",
			group:  group(), before: before(noRoom), pods: two, room: 2,
			want: v2alpha2.PodGroupStatus{
				Running: 9, Placed: num(0),
				Conditions: []v2alpha2.PodGroupCondition{is("False", "Pending", "the group waits for its turn", began)},
				SubGroups:  []v2alpha2.SubGroupStatus{{Name: "default", Pods: 2, Min: 2}},
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
			reason: "sets count their children by what is bound",
			group:  sets, pods: []*corev1.Pod{pod("a", "x", bound), pod("b", "x", bound), pod("c", "y")}, room: 0,
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
			f := factsOf(t, pg, tc.pods, tc.room)
			if tc.change != nil {
				tc.change(f)
			}
			got := scheduling.Show(f, now)
			if diff := cmp.Diff(tc.want, withoutSums(got)); diff != "" {
				t.Errorf("%s\nShow(...): -want, +got:\n%s", tc.reason, diff)
			}
			pg.Status = got
			if diff := cmp.Diff(got, scheduling.Show(f, metav1.NewTime(now.Add(time.Hour)))); diff != "" {
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
	got := scheduling.Show(factsOf(t, pg, nil, -1), began)
	if n := len(got.SubGroups); n != 1000 || got.SubGroups[999].Name != "s999" {
		t.Errorf("the status lists %d of 1500 subgroups, want the first 1000", n)
	}
}

func TestPriorityClassFound(t *testing.T) {
	find := func(status v2alpha2.PodGroupStatus) *v2alpha2.PodGroupCondition {
		at := slices.IndexFunc(status.Conditions, func(c v2alpha2.PodGroupCondition) bool { return c.Type == v2alpha2.PodGroupPriorityClassFound })
		if at < 0 {
			return nil
		}

		return &status.Conditions[at]
	}
	pg := group()
	f := factsOf(t, pg, nil, -1)
	if c := find(scheduling.Show(f, began)); c != nil {
		t.Errorf("a group that names no PriorityClass has the condition %v", c)
	}
	pg.Spec.PriorityClassName, f.Priority = "urgnet", 7
	pg.Status = scheduling.Show(f, began)
	want := &v2alpha2.PodGroupCondition{
		Type: v2alpha2.PodGroupPriorityClassFound, Status: metav1.ConditionFalse, ObservedGeneration: 3, LastTransitionTime: began,
		Reason:  "PriorityClassNotFound",
		Message: `PriorityClass "urgnet" does not exist: create it, or change spec.priorityClassName; until then the group has priority 7`,
	}
	if diff := cmp.Diff(want, find(pg.Status)); diff != "" {
		t.Errorf("a class that does not exist: -want, +got:\n%s", diff)
	}
	f.Class = &schedulingv1.PriorityClass{}
	if c := find(scheduling.Show(f, began)); c != nil {
		t.Errorf("the class exists by now, and the group still has the condition %v", c)
	}
}
