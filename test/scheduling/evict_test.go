package scheduling_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// classes makes two PriorityClasses, and returns what gives pods one of them.
func (l *lab) classes() (low, high func(*corev1.Pod)) {
	l.Helper()

	return l.class("low", 10, corev1.PreemptLowerPriority), l.class("high", 50, corev1.PreemptLowerPriority)
}

func (l *lab) class(name string, value int32, policy corev1.PreemptionPolicy) func(*corev1.Pod) {
	l.Helper()
	c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.ns + "-" + name}, Value: value, PreemptionPolicy: &policy}
	l.must(l.c.Create(l.Context(), c))
	l.Cleanup(func() { _ = l.c.Delete(l.background(), c) })

	use := func(p *corev1.Pod) { p.Spec.PriorityClassName = c.Name }
	// Admission hears of it some moments later.
	cluster.Eventually(l, "pods may have the class", func() error {
		return l.c.Create(l.Context(), l.pod("", "", "nobody", 0, use), client.DryRunAll)
	})

	return use
}

// nudge has gangs that wait tried again, and waits until that has come to an end:
// in vain, and in a search for victims if victims is true.
func (l *lab) nudge(victims bool) {
	l.Helper()
	counter := `arbor_gang_cycles_total{result="unschedulable"}`
	if victims {
		counter = `arbor_gang_trial_duration_seconds_count{kind="preemption"}`
	}
	before := l.scheduler.Sum(l, counter)
	l.addNodes(1, 0)
	cluster.Eventually(l, "gangs were tried again", func() error {
		if now := l.scheduler.Sum(l, counter); now <= before {
			return fmt.Errorf("%s is %v, before it was %v", counter, now, before)
		}

		return nil
	})
}

// names are the members of a group that are not being deleted.
func (l *lab) names(group string) []string {
	l.Helper()
	var names []string
	for _, pod := range l.members(group) {
		names = append(names, pod.Name)
	}

	return names
}

// A more important gang takes the place of a less important one, which goes
// whole, and is told whom it made room for.
func TestPreemption(t *testing.T) {
	l := newLab(t, 2, 4)
	low, high := l.classes()
	l.group("low", simple(8))
	// The API server keeps the victims, so that they can be checked.
	l.pods("low", "", 8, 1, low, lingering)
	l.runs("low", 8)
	l.gang("high", 6, high)
	cluster.Eventually(t, "all of the gang is evicted", func() error {
		if left := l.names("low"); len(left) > 0 {
			return fmt.Errorf("%v stay", left)
		}

		return nil
	})
	l.none("high")
	list := &corev1.PodList{}
	l.must(l.c.List(t.Context(), list, client.InNamespace(l.ns), client.MatchingLabels{groupLabel: "low"}))
	for _, pod := range list.Items {
		c := condition(&pod, corev1.DisruptionTarget)
		if c == nil || c.Reason != corev1.PodReasonPreemptionByScheduler {
			t.Fatalf("pod %s has conditions %v", pod.Name, pod.Status.Conditions)
		}
	}

	// Released capacity is reserved for the preemptor.
	l.pods("", "", 3, 1, low)
	for _, pod := range list.Items {
		change(l, &pod, func(p *corev1.Pod) { p.Finalizers = nil })
	}
	l.runs("high", 6)
	l.runs("", 2)
}

// With a PodDisruptionBudget, other pods are evicted first, more important ones too, as long as
// there are any.
func TestDisruptionBudget(t *testing.T) {
	l := newLab(t, 2, 4)
	low, high := l.classes()
	mid := l.class("mid", 20, corev1.PreemptLowerPriority)
	guarded := func(p *corev1.Pod) { p.Labels["guarded"] = "true" }
	l.create(l.pod("", "", "guarded", 4, low, guarded))
	l.create(l.pod("", "", "other", 4, mid))
	l.runs("", 2)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "guard"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "true"}},
	}}
	l.must(l.c.Create(t.Context(), budget))
	cluster.Eventually(t, "the budget counts", func() error {
		if err := l.c.Get(t.Context(), key(budget), budget); err != nil || budget.Status.CurrentHealthy != 1 {
			return fmt.Errorf("its status is %v: %w", budget.Status, err)
		}

		return nil
	})
	l.own() // it knows of the budget from its start
	l.gang("first", 4, high)
	l.runs("first", 4)
	if left := l.names(""); !slices.Equal(left, []string{"guarded"}) {
		t.Fatalf("of the rest %v are there", left)
	}
	l.gang("second", 4, high)
	l.runs("second", 4)
}

// A gang that was asked to wait before it evicts any pod does, and then needs no further event.
func TestPreemptionDelay(t *testing.T) {
	const delay = 4 * time.Second
	l := newLab(t, 2, 4)
	low, high := l.classes()
	l.gang("low", 8, low)
	l.runs("low", 8)
	spec := simple(8)
	spec.PreemptionDelay = &v2alpha2.Duration{Duration: delay}
	patient := l.group("high", spec)
	l.pods("high", "", 8, 1, high)
	l.runs("high", 8)
	// Timestamps of the API server are whole seconds.
	if waited := time.Since(patient.CreationTimestamp.Time); waited < delay {
		t.Errorf("it took their place after %s", waited)
	}
}

// Of gangs that wait for the same room the most important one gets it, however
// late it came.
func TestMostImportantFirst(t *testing.T) {
	l := newLab(t, 2, 4)
	l.name = l.ns
	low, high := l.classes()
	for _, g := range []struct {
		name string
		use  func(*corev1.Pod)
	}{{"first", low}, {"second", low}, {"third", high}, {"fourth", low}} {
		l.group(g.name, simple(8))
		l.pods(g.name, "", 8, 1, g.use)
	}
	// No pod is evicted, so the gang that is placed was placed first.
	l.own("--gang-preemption=false")
	l.runs("third", 8)
	for _, name := range []string{"first", "second", "fourth"} {
		l.waits(name)
		l.none(name)
	}
}

// lingering pods are there until a user takes the finalizer away.
func lingering(p *corev1.Pod) { p.Finalizers = []string{"example.com/linger"} }

// No pod is evicted for a gang that does not fit anyway.
func TestNoPointlessEviction(t *testing.T) {
	l := newLab(t, 2, 4)
	low, high := l.classes()
	l.gang("low", 4, low)
	l.group("fixed", v2alpha2.PodGroupSpec{MinMember: num(4), Preemptibility: v2alpha2.NonPreemptible})
	l.pods("fixed", "", 4, 1, low)
	l.runs("low", 4)
	l.runs("fixed", 4)

	// Six fit if both went, and one of them may not.
	l.gang("high", 6, high)
	l.waits("high", "of min 6 pods")
	l.nudge(true)
	l.runs("low", 4)
	l.runs("fixed", 4)
	l.none("high")

	// Four fit.
	l.end("high")
	l.gang("four", 4, high)
	l.runs("four", 4)
	l.runs("fixed", 4)
	if left := l.names("low"); len(left) > 0 {
		t.Errorf("of a gang that is broken, %v are left", left)
	}
}

// Room that was made for a gang is not kept for one that is given up.
func TestUnusedReservationIsReleased(t *testing.T) {
	cases := map[string]struct {
		reason string
		giveUp func(l *lab)
	}{
		"GroupDeleted": {
			"Its pods are there, and wait for a PodGroup that may never come.",
			func(l *lab) {
				l.must(l.c.Delete(l.Context(), &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "high"}}))
				l.waits("high", "does not exist")
			},
		},
		"GroupLarger": {
			"It wants more than there is by now.",
			func(l *lab) {
				pg := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "high"}}
				change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(6) })
				l.create(l.pod("high", "", "more-0", 1), l.pod("high", "", "more-1", 1))
				l.waits("high", "of min 6 pods")
				l.nudge(false)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 4)
			low, high := l.classes()
			l.group("low", simple(4))
			victims := l.pods("low", "", 4, 1, low, lingering)
			l.runs("low", 4)
			l.gang("high", 4, high)
			cluster.Eventually(t, "all of the gang is evicted", func() error {
				if left := l.names("low"); len(left) > 0 {
					return fmt.Errorf("%v stay", left)
				}

				return nil
			})
			tc.giveUp(l)
			for _, pod := range victims {
				change(l, pod, func(p *corev1.Pod) { p.Finalizers = nil })
			}
			l.pods("", "", 4, 1, low)
			l.runs("", 4)
			l.none("high")
		})
	}
}

// A gang is edited before the scheduler has seen its own nominations in the pods. They
// are removed all the same, so other pods can use the room.
func TestNominationsAreSeenLate(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 4)
	proxy := server.NewProxy(t, "", 0)
	l.start("--kubeconfig=" + proxy.Kubeconfig)
	low, high := l.classes()
	l.gang("low", 4, low)
	l.runs("low", 4)
	caught, release := proxy.Trap(t, fmt.Sprintf(`^PATCH /apis/scheduling\.run\.ai/[^/]+/namespaces/%s/podgroups/high$`, l.ns), 0)
	l.gang("high", 4, high)
	<-caught
	show := proxy.Hold(t, "^WATCH /api/v1/pods$")
	release()
	cluster.Eventually(t, "all of the gang is nominated, and the other one is evicted", func() error {
		for _, pod := range l.members("high") {
			if pod.Status.NominatedNodeName == "" {
				return fmt.Errorf("pod %s is not nominated", pod.Name)
			}
		}
		if left := l.names("low"); len(left) > 0 {
			return fmt.Errorf("%v stay", left)
		}

		return nil
	})
	pg := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "high"}}
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(6) })
	cluster.Eventually(t, "the record of the reservation is removed", func() error {
		l.must(l.c.Get(t.Context(), key(pg), pg))
		if text := pg.Annotations[v2alpha2.ReservationAnnotation]; text != "" {
			return fmt.Errorf("it is %s", text)
		}

		return nil
	})
	show()
	l.pods("", "", 4, 1, low)
	l.runs("", 4)
	l.none("high")
}

// The class of the group counts, whatever its pods have.
func TestPriorityOfTheGroup(t *testing.T) {
	l := newLab(t, 1, 4)
	low, _ := l.classes()
	l.gang("low", 4, low)
	l.runs("low", 4)
	l.group("high", v2alpha2.PodGroupSpec{MinMember: num(4), PriorityClassName: l.ns + "-high"})
	l.pods("high", "", 4, 1)
	l.runs("high", 4)
	if left := l.names("low"); len(left) > 0 {
		t.Errorf("of a gang that is broken, %v are left", left)
	}
}

// Only as many go as must.
func TestFewestVictims(t *testing.T) {
	l := newLab(t, 2, 4)
	low, high := l.classes()
	l.pods("", "", 8, 1, low)
	l.runs("", 8)
	l.gang("high", 3, high)
	l.runs("high", 3)
	l.runs("", 5)
}

// Pods that a gang can do without go before a gang that cannot.
func TestSurplusFirst(t *testing.T) {
	l := newLab(t, 2, 4)
	low, high := l.classes()
	l.group("large", simple(4))
	l.pods("large", "", 6, 1, low)
	l.runs("large", 6)
	l.gang("small", 2, low)
	l.runs("small", 2)

	l.gang("high", 2, high)
	l.runs("high", 2)
	l.runs("large", 4)
	l.runs("small", 2)

	// No surplus is left: the smaller gang is evicted completely. The room of one of its pods is
	// enough, so the other one may be evicted a little later.
	l.gang("more", 1, high)
	l.runs("more", 1)
	l.evicted("small")
	l.runs("large", 4)
}

// Those as important, and those that asked not to, evict no pod.
func TestWhoMayNotPreempt(t *testing.T) {
	l := newLab(t, 1, 4)
	low, _ := l.classes()
	l.gang("low", 4, low)
	l.runs("low", 4)
	l.gang("equal", 2, low)
	l.group("polite", simple(2))
	l.pods("polite", "", 2, 1, l.class("polite", 50, corev1.PreemptNever))
	l.waits("equal", "of min 2 pods")
	l.waits("polite", "of min 2 pods")
	l.nudge(false)
	l.runs("low", 4)
}

// A gang waits for those that are going already before it evicts more pods.
func TestTerminatingVictims(t *testing.T) {
	l := newLab(t, 1, 8)
	low, high := l.classes()
	l.group("going", simple(4))
	going := l.pods("going", "", 4, 1, low, lingering)
	l.gang("staying", 4, low)
	l.runs("going", 4)
	l.runs("staying", 4)
	l.end("going")

	l.gang("high", 4, high)
	l.waits("high", "of min 4 pods")
	l.nudge(false)
	if n := len(l.names("staying")); n != 4 {
		t.Errorf("four pods were going, which is enough, and %d of the rest were evicted", 4-n)
	}
	for _, pod := range going {
		change(l, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	}
	l.runs("high", 4)
	l.runs("staying", 4)
}
