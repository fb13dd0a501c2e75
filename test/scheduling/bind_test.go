package scheduling_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/cluster/network"
)

// unprovisioned makes a StorageClass with a provisioner that does not exist.
// The PreBind plugins of a pod with such a volume wait for it.
func (l *lab) unprovisioned() *lab {
	l.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: l.ns}, Provisioner: "test.arbor/none", VolumeBindingMode: &wait}
	l.must(l.c.Create(l.Context(), class))
	l.Cleanup(func() { _ = l.c.Delete(l.background(), class) })

	return l
}

// stuck makes gang g of n pods that needs all of them, the last one with a
// volume that is never provisioned, and waits until its PodGroup reports that.
func (l *lab) stuck(n int, change ...func(*corev1.Pod)) {
	l.Helper()
	const group = "g"
	l.group(group, simple(n))
	l.pods(group, "", n-1, 1, change...)
	l.create(l.pod(group, "", group+"-slow", 1, append(change, l.disk(group))...))
	// Reason and message are read at once: the next condition comes with --bind-timeout.
	says := fmt.Sprintf("pod %q waits for PreBind", group+"-slow")
	l.shows(group, "reports "+says, func(status *v2alpha2.PodGroupStatus) bool {
		return slices.ContainsFunc(status.Conditions, func(c v2alpha2.PodGroupCondition) bool {
			return c.Type == v2alpha2.PodGroupScheduled && c.Status == metav1.ConditionFalse &&
				c.Reason == v2alpha2.ReasonBinding && strings.Contains(c.Message, says)
		})
	})
	l.none(group)
}

// nominations are the nominatedNodeNames of a gang, by pod.
func (l *lab) nominations(group string) map[string]string {
	l.Helper()
	nodes := map[string]string{}
	for _, pod := range l.members(group) {
		if node := pod.Status.NominatedNodeName; node != "" {
			nodes[pod.Name] = node
		}
	}

	return nodes
}

// H6: one member waits for a volume. No member runs, other gangs are not
// delayed, and the room is free again when the member or its claim is deleted.
func TestVolumeNotProvisioned(t *testing.T) {
	t.Parallel()
	cases := map[string]func(l *lab) client.Object{
		"PodDeleted": func(l *lab) client.Object {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "g-slow"}}
		},
		"ClaimDeleted": func(l *lab) client.Object {
			return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "g"}}
		},
		"OtherPodDeleted": func(l *lab) client.Object {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "g-01"}}
		},
	}
	for name, object := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 1, 8).unprovisioned().own("--stale-grace=0s")
			l.stuck(3)
			if got := l.nominations("g"); len(got) != 1 || got["g-slow"] != l.ns+"-node-0" {
				t.Errorf("the nominated nodes are %v; autoscalers need that of the pod that waits", got)
			}
			l.gang("h", 3)
			l.runs("h", 3)
			l.none("g")
			l.must(l.c.Delete(t.Context(), object(l)))
			l.holdsNothing()
			l.takesAll(5)
			l.none("g")
			cluster.Eventually(t, "no nomination is left", func() error {
				if got := l.nominations("g"); len(got) > 0 {
					return fmt.Errorf("there are %v", got)
				}

				return nil
			})
		})
	}
}

// A pod that comes while the minimum is being bound waits until it is known
// whether the gang has its minimum.
func TestExtraDuringRound(t *testing.T) {
	l := newLab(t, 1, 8).unprovisioned().own()
	l.stuck(3)
	l.create(l.pod("g", "", "g-extra", 1))
	l.gang("h", 3)
	l.runs("h", 3) // so the extra has had its turn
	l.none("g")
	l.must(l.c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "g-slow"}}))
	l.runs("g", 3)
}

// An extra that waits for a volume does not delay the minimum.
func TestSlowExtra(t *testing.T) {
	l := newLab(t, 1, 8).unprovisioned().own()
	l.pods("g", "", 2, 1)
	l.create(l.pod("g", "", "g-slow", 1, l.disk("g")))
	l.group("g", simple(2))
	l.runs("g", 2)
	l.says("g", metav1.ConditionTrue)
	if places := l.places("g"); places["g-slow"] != "" {
		t.Errorf("the pod without its volume is on %s", places["g-slow"])
	}
}

// When a round takes too long, the gang gives up its room, and a gang that
// waits for it gets it.
func TestBindTimeout(t *testing.T) {
	l := newLab(t, 1, 8).unprovisioned().own("--bind-timeout=5s")
	l.stuck(3)
	l.gang("h", 8)
	l.runs("h", 8)
	l.none("g")
	if n := l.scheduler.Sum(t, "arbor_gang_bind_failures_total"); n < 3 {
		t.Errorf("%v pods could not be bound, want at least 3", n)
	}
	l.end("h")
	l.waits("g", `pod "g-slow" could not be prepared`, "not ready after 5s (--bind-timeout)")
	l.none("g")
}

// A gang that cannot be bound evicts pods once, and not again and again.
func TestPreemptionWithoutAVolume(t *testing.T) {
	l := newLab(t, 1, 8).unprovisioned().own("--bind-timeout=3s")
	low, high := l.classes()
	l.pods("", "", 8, 1, low)
	l.runs("", 8)
	l.stuck(8, high)
	l.waits("g", `pod "g-slow" could not be prepared`, "its PersistentVolumeClaims: g", "preempts no pods until")
	l.pods("", "again", 8, 1, low)
	l.runs("", 8)
	if n := l.scheduler.Sum(t, `arbor_gang_reservations_ended_total{result="unprepared"}`); n != 1 {
		t.Errorf("%v reservations ended because of the volume, want 1", n)
	}
	l.must(l.c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "g-slow"}}))
	l.create(l.pod("g", "", "g-quick", 1, high))
	l.runs("g", 8)
	if n := l.scheduler.Sum(t, "arbor_gang_evictions_total"); n != 16 {
		t.Errorf("%v pods were evicted, want 8 in vain and 8 for the gang", n)
	}
}

// A member that waits for the rest is preempted without being deleted, and
// the whole gang gives up its room.
func TestPreemptedDuringRound(t *testing.T) {
	l := newLab(t, 1, 8).unprovisioned().own()
	low, high := l.classes()
	l.stuck(8, low)
	before := map[string]types.UID{}
	for _, pod := range l.members("g") {
		before[pod.Name] = pod.UID
	}
	l.pods("", "", 8, 1, high)
	l.runs("", 8)
	for _, pod := range l.members("g") {
		if before[pod.Name] != pod.UID {
			t.Errorf("pod %s was deleted", pod.Name)
		}
		delete(before, pod.Name)
	}
	if len(before) > 0 {
		t.Errorf("pods were deleted: %v", before)
	}
	l.none("g")
}

// Requests to bind fail, or succeed without an answer. They are repeated while
// the pods keep their places.
func TestBindRetried(t *testing.T) {
	cases := map[string]func(testing.TB, *network.Proxy, string, int){
		"Broken": func(t testing.TB, p *network.Proxy, like string, n int) {
			t.Helper()
			p.Fail(t, like, 0, n)
		},
		"Swallowed": func(t testing.TB, p *network.Proxy, like string, n int) {
			t.Helper()
			p.Swallow(t, like, n)
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2, 4)
			proxy := server.NewProxy(t, "", 0)
			spoil(t, proxy, fmt.Sprintf("^POST /api/v1/namespaces/%s/pods/.*/binding", l.ns), 8)
			l.own("--kubeconfig=" + proxy.Kubeconfig)
			l.gang("g", 6)
			l.runs("g", 6)
			l.holdsNothing()
			if n := l.scheduler.Sum(t, "arbor_gang_bind_failures_total"); n != 0 {
				t.Errorf("%v pods lost their place", n)
			}
			for _, name := range []string{"scheduler_pod_scheduling_sli_duration_seconds_count", `scheduler_schedule_attempts_total{result="scheduled"}`} {
				cluster.Eventually(t, "all pods are counted", func() error {
					if n := l.scheduler.Sum(t, name); n != 6 {
						return fmt.Errorf("%s is %v, want 6", name, n)
					}

					return nil
				})
			}
		})
	}
}

// Asynchronous API calls would take the binding out of Arbor's hands.
func TestAsyncAPICallsRejected(t *testing.T) {
	s, err := server.Scheduler("--feature-gates=SchedulerAsyncAPICalls=true")
	if err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if said := s.Output(); s.ExitCode() == 0 || !strings.Contains(said, "feature gate SchedulerAsyncAPICalls is enabled") {
		t.Errorf("it exits with %d and %q", s.ExitCode(), said)
	}
}
