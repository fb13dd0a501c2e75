package scheduling_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

func TestUnschedulableOnNodePool(t *testing.T) {
	two := []*corev1.Pod{pod("a", "", named), pod("b", "", named)}
	message := "room for 0 of min 2 pods: 0/1 nodes are available: 1 Too many pods."
	entry := func(id string, since metav1.Time, reason, message string) v2alpha2.SchedulingCondition {
		return v2alpha2.SchedulingCondition{
			Type: "UnschedulableOnNodePool", NodePool: "default", Status: "True", Reason: "Unschedulable", Message: message,
			Reasons: []v2alpha2.UnschedulableExplanation{{Reason: reason, Message: message}}, TransitionID: id, LastTransitionTime: since,
		}
	}
	other := v2alpha2.SchedulingCondition{Type: "UnschedulableOnNodePool", NodePool: "a100", TransitionID: "4"}
	now := metav1.NewTime(began.Add(time.Hour))
	cases := map[string]struct {
		reason string
		before []v2alpha2.SchedulingCondition
		pods   []*corev1.Pod
		change func(*scheduling.Facts)
		want   []v2alpha2.SchedulingCondition
	}{
		"First": {reason: "a gang that does not fit has one entry", pods: two, want: []v2alpha2.SchedulingCondition{entry("1", now, "Unschedulable", message)}},
		"Next": {
			reason: "it is numbered after those of other node pools, which stay", pods: two,
			before: []v2alpha2.SchedulingCondition{other}, want: []v2alpha2.SchedulingCondition{other, entry("5", now, "Unschedulable", message)},
		},
		"Still": {
			reason: "its number and time stay as long as the gang does not fit", pods: two,
			before: []v2alpha2.SchedulingCondition{entry("7", began, "Unschedulable", "room for 1")},
			want:   []v2alpha2.SchedulingCondition{entry("7", began, "Unschedulable", message)},
		},
		"Preempting": {
			reason: "a gang that makes room does not fit yet", pods: two, change: preempting,
			want: []v2alpha2.SchedulingCondition{entry("1", now, "Preempting", "2 of 3 victims are terminating; last attempt: "+message)},
		},
		"Binding": {
			reason: "a gang that has its nodes has none either, as its condition says", change: unbound("b"),
			pods:   []*corev1.Pod{pod("a", "", named, bound), pod("b", "", named, bound)},
			before: []v2alpha2.SchedulingCondition{other, entry("7", began, "Unschedulable", message)},
			want:   []v2alpha2.SchedulingCondition{other},
		},
		"BindingFailed": {
			reason: "a gang that has lost its nodes again has a new one", pods: two,
			before: []v2alpha2.SchedulingCondition{other},
			want:   []v2alpha2.SchedulingCondition{other, entry("5", now, "Unschedulable", message)},
		},
		"Placed": {
			reason: "a gang that is placed has none",
			pods:   []*corev1.Pod{pod("a", "", named, bound), pod("b", "", named, bound)},
			before: []v2alpha2.SchedulingCondition{entry("7", began, "Unschedulable", message)},
		},
		"TooFewPods": {
			reason: "nor has one that lacks pods", pods: two[:1],
			before: []v2alpha2.SchedulingCondition{entry("7", began, "Unschedulable", message), other}, want: []v2alpha2.SchedulingCondition{other},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pg := group()
			pg.Status.SchedulingConditions = tc.before
			f := factsOf(t, pg, tc.pods, 0)
			if tc.change != nil {
				tc.change(f)
			}
			if diff := cmp.Diff(tc.want, scheduling.Show(f, now).SchedulingConditions); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Both copies of a kept message are kept.
func TestKeepUnschedulableOnNodePool(t *testing.T) {
	pg := group()
	two := []*corev1.Pod{pod("a", "", named), pod("b", "", named)}
	pg.Status = scheduling.Show(factsOf(t, pg, two, 0), began)
	want := scheduling.Show(factsOf(t, pg, two, 1), began)
	if !scheduling.Keep(pg, &want, true) || !scheduling.Shown(pg, want, true) {
		t.Errorf("only a figure differs, but the status would be written: -has, +want\n%s", cmp.Diff(pg.Status, want))
	}
}

func TestUnschedulableIsShort(t *testing.T) {
	f := factsOf(t, group(), []*corev1.Pod{pod("a", "", named), pod("b", "", named)}, 0)
	preempting(f)
	f.Progress.Message = strings.Repeat("long ", 10_000)
	if got := scheduling.Show(f, began).SchedulingConditions[0]; len(got.Message) > 1024 || len(got.Reasons[0].Message) > 1024 {
		t.Errorf("the entry has messages of %d and %d bytes", len(got.Message), len(got.Reasons[0].Message))
	}
}

func asks(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	}
}

func TestSums(t *testing.T) {
	pods := []*corev1.Pod{
		pod("a", "", named, asks("1"), bound), pod("b", "", named, asks("2"), bound), pod("c", "", named, asks("4")),
		pod("d", "", asks("8"), bound, succeeded), pod("e", "", asks("16"), failed),
	}
	cpu := func(n string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(n)} }
	cases := map[string]struct {
		reason string
		change func(*scheduling.Facts)
		want   v2alpha2.PodGroupResourcesStatus
	}{
		"Preemptible": {
			reason: "pods that have ended request nothing, and those without a node have nothing",
			want:   v2alpha2.PodGroupResourcesStatus{Requested: cpu("7"), Allocated: cpu("3")},
		},
		"NonPreemptible": {
			reason: "all of what an important gang has is non-preemptible", change: func(f *scheduling.Facts) { f.Priority = 100 },
			want: v2alpha2.PodGroupResourcesStatus{Requested: cpu("7"), Allocated: cpu("3"), AllocatedNonPreemptible: cpu("3")},
		},
		"Unbound": {
			reason: "a pod that is not bound yet has nothing", change: unbound("b"),
			want: v2alpha2.PodGroupResourcesStatus{Requested: cpu("7"), Allocated: cpu("1")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := factsOf(t, group(), pods, -1)
			if tc.change != nil {
				tc.change(f)
			}
			if diff := cmp.Diff(tc.want, scheduling.Show(f, began).ResourcesStatus); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSumsAreShort(t *testing.T) {
	many := pod("a", "", asks("1"))
	for i := range 100 {
		many.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("example.com/r%03d", i))] = resource.MustParse("1")
	}
	got := scheduling.Show(factsOf(t, group(), []*corev1.Pod{many}, -1), began).ResourcesStatus.Requested
	if _, ok := got["cpu"]; len(got) != 64 || !ok {
		t.Errorf("the sum lists %d of 101 resources, want the first 64", len(got))
	}
}
