package preempt

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/victims"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
)

// The search on Kubernetes objects: who may be evicted, and who is.
func TestSearch(t *testing.T) {
	gone := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/x"}
	}
	overdueBy := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.NewTime(time.Now().Add(-2*overdue))), []string{"example.com/x"}
	}
	fixed := func(pg *v2alpha2.PodGroup) { pg.Spec.Preemptibility = v2alpha2.NonPreemptible }
	replicas := func(pg *v2alpha2.PodGroup) {
		pg.Spec = v2alpha2.PodGroupSpec{MinSubGroup: new(int32(1)), SubGroups: []v2alpha2.SubGroup{
			{Name: "r0", MinMember: new(int32(2))}, {Name: "r1", MinMember: new(int32(2))},
		}}
	}
	in := func(subgroup string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Labels = map[string]string{v2alpha2.SubGroupLabel: subgroup}
			pod.Name += subgroup
			pod.UID += types.UID(subgroup)
			if subgroup == "r1" {
				pod.CreationTimestamp = metav1.NewTime(pod.CreationTimestamp.Add(time.Hour))
			}
		}
	}
	budget := &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "true"}}},
	}
	guardedPods := func(pod *corev1.Pod) { pod.Labels = map[string]string{"guarded": "true"} }
	cases := map[string]struct {
		reason  string
		objects [][]runtime.Object
		asks    int // GPUs of the one pod that waits
		hard    bool
		outcome victims.Outcome
		want    []string // the victims, or what is in the way of them
	}{
		"Surplus": {
			"A gang loses what it does not need.",
			[][]runtime.Object{{schedulertest.Group("low", 2)}, schedulertest.Members("low", 4, 10)},
			2, false, victims.Found,
			[]string{"low-2", "low-3"},
		},
		"Whole": {
			"A gang at its minimum is evicted as a whole.",
			[][]runtime.Object{{schedulertest.Group("low", 4)}, schedulertest.Members("low", 4, 10)},
			1, false, victims.Found,
			[]string{"low-0", "low-1", "low-2", "low-3"},
		},
		"Replica": {
			"A surplus subgroup is evicted alone.",
			[][]runtime.Object{{schedulertest.Group("low", 0, replicas)}, schedulertest.Members("low", 2, 10, in("r0")), schedulertest.Members("low", 2, 10, in("r1"))},
			2, false, victims.Found,
			[]string{"low-0r1", "low-1r1"},
		},
		"NonPreemptible": {
			"A group that is not preemptible is no candidate.",
			[][]runtime.Object{{schedulertest.Group("low", 2, fixed)}, schedulertest.Members("low", 4, 10)},
			1, false, victims.Insufficient, nil,
		},
		"AsImportant": {
			"Only a lower priority is evicted.",
			[][]runtime.Object{{schedulertest.Group("low", 2)}, schedulertest.Members("low", 4, 50)},
			1, false, victims.Insufficient, nil,
		},
		"NoGroup": {
			"Pods whose PodGroup does not exist are plain pods.",
			[][]runtime.Object{schedulertest.Members("low", 4, 10)},
			1, false, victims.Found,
			[]string{"low-3"},
		},
		"Terminating": {
			"Room that becomes free anyway needs no eviction; the plan waits for it.",
			[][]runtime.Object{schedulertest.Members("low", 3, 10), schedulertest.Members("old", 1, 10, gone)},
			1, false, victims.Fits,
			[]string{"old-0"},
		},
		"Overdue": {
			"A pod that does not terminate stays, and is named.",
			[][]runtime.Object{schedulertest.Members("low", 3, 10), schedulertest.Members("old", 1, 10, overdueBy)},
			4, false, victims.Insufficient,
			[]string{"default/old-0"},
		},
		"OverdueElsewhere": {
			"A pod that does not terminate is not named if the gang would not fit without it.",
			[][]runtime.Object{schedulertest.Members("low", 3, 10), schedulertest.Members("old", 1, 10, overdueBy)},
			5, false, victims.Insufficient, nil,
		},
		"Guarded": {
			"A pod that violates a budget is evicted last.",
			[][]runtime.Object{{budget}, schedulertest.Members("low", 2, 10, guardedPods), schedulertest.Members("mid", 2, 20)},
			2, false, victims.Found,
			[]string{"mid-0", "mid-1"},
		},
		"HardBudget": {
			"With --respect-pdb it is not evicted at all.",
			[][]runtime.Object{{budget}, schedulertest.Members("low", 4, 10, guardedPods)},
			1, true, victims.Unproven, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			high := schedulertest.Member("high", 0, tc.asks)
			schedulertest.Prio(50)(high)
			pg := schedulertest.Group("high", 1)
			o := testcluster.Open(t, append(slices.Concat(tc.objects...), schedulertest.Node(0, 4), pg, high)...)
			p := New(Deps{
				Kube: &kubescheduler.Scheduler{}, Groups: o.Groups, Trial: o.Trial, Options: &settings.Options{RespectPDB: tc.hard},
				Budgets: o.Factory.Policy().V1().PodDisruptionBudgets().Lister(),
			})
			g, why := o.Groups.Read(schedulertest.Key("high"))
			if why != nil {
				t.Fatal(why.Message)
			}
			s := p.search(t.Context(), schedulertest.Key("high"), g, time.Minute)
			found, result := s.found, s.result
			if s.err != nil {
				t.Fatal(s.err)
			}
			got := s.blockers
			if found != nil {
				for _, pod := range found.victims {
					got = append(got, pod.Name)
				}
				slices.Sort(got)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || result.Outcome != tc.outcome {
				t.Errorf("%s\nThe outcome is %v (%s), want %v; the victims differ (-want +got):\n%s", tc.reason, result.Outcome, result.Reason, tc.outcome, diff)
			}
		})
	}
}

// The names of the pods in the way are for a message. If the search for them fails, the
// answer that was found before holds all the same.
func TestSearchWithoutNames(t *testing.T) {
	late := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.NewTime(time.Now().Add(-2*overdue))), []string{"example.com/x"}
	}
	objects := append(schedulertest.Members("low", 3, 10), schedulertest.Members("old", 1, 10, late)...)
	s := newTestScheduler(t, append(append(objects, schedulertest.WaitingPods(1)...), schedulertest.Group("high", 1), schedulertest.Node(0, 4))...)
	key, g := schedulertest.Key("high"), highGang(t, s)
	if named := s.preemptor.search(t.Context(), key, g, time.Minute); len(named.blockers) != 1 {
		t.Fatalf("Without an error, the pods in the way are %q (%v): the test tests nothing.", named.blockers, named.err)
	}
	// Sums are enough for the answer. Filters are asked only in the search for the names.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.trial.Profiles[settings.Name] = schedulertest.Interrupted{Framework: s.trial.Profiles[settings.Name], During: cancel}
	got := s.preemptor.search(ctx, key, g, time.Minute)
	if ctx.Err() == nil {
		t.Error("The search for the names did not fail: the test tests nothing.")
	}
	if got.err != nil || got.exceeded || got.result.Outcome != victims.Insufficient || got.result.Reason == "" || len(got.blockers) > 0 {
		t.Errorf("The outcome is %v (%q), the error is %v, exceeded is %t, the pods in the way are %q.",
			got.result.Outcome, got.result.Reason, got.err, got.exceeded, got.blockers)
	}
}
