package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// gatedGang has a PodGroup whose pods are still to come.
type gatedGang struct {
	testing.TB

	s *Scheduler
}

func newGatedGang(t *testing.T, minimum int32) *gatedGang {
	t.Helper()

	return &gatedGang{t, newTestScheduler(t, schedulertest.Group("g", minimum))}
}

// change is an event of a pod, as the informer delivers it.
func (g *gatedGang) change(was, is *corev1.Pod) {
	g.Helper()
	store := g.s.groups.Pods.GetIndexer()
	var err error
	switch {
	case is == nil:
		err = store.Delete(was)
		g.s.onPod(was, nil)
	case was == nil:
		err = store.Add(is)
		g.s.onPod(nil, is)
	default:
		err = store.Update(is)
		g.s.onPod(was, is)
	}
	if err != nil {
		g.Fatal(err)
	}
}

func (g *gatedGang) open() bool {
	is := g.s.gates.Get(schedulertest.Key("g"))

	return is.Known && is.Refusal == nil
}

// A gang of n pods is not read n times while its pods are created, started and deleted.
func TestGateReadsGangsRarely(t *testing.T) {
	const n = 512
	cases := map[string]struct {
		reason  string
		minimum int32
	}{
		"AllRequired": {"The gate opens with the last pod.", n},
		"Half":        {"It opens in the middle, and stays open.", n / 2},
		"One":         {"It opens with the first.", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGatedGang(t, tc.minimum)
			var pods []*corev1.Pod
			for i := range n {
				pods = append(pods, schedulertest.Member("g", i, 1))
				g.change(nil, pods[i])
				if want := i+1 >= int(tc.minimum); g.open() != want {
					t.Fatalf("%s\nWith %d pods, open is %t.", tc.reason, i+1, !want)
				}
			}
			if g.s.gates.Reads() > 4 {
				t.Errorf("%s\nWhile %d pods were created, the gang was read %d times.", tc.reason, n, g.s.gates.Reads())
			}
			before := g.s.gates.Reads()
			for i, pod := range pods {
				g.s.groups.Commit(pod.UID, "node-0000")
				bound := pod.DeepCopy()
				schedulertest.BoundAt(0)(bound)
				g.change(pod, bound)
				pods[i] = bound.DeepCopy()
				pods[i].Status.Phase = corev1.PodRunning
				g.change(bound, pods[i])
			}
			if read := g.s.gates.Reads() - before; read > 0 {
				t.Errorf("%s\nWhile %d pods were bound and started, the gang was read %d times.", tc.reason, n, read)
			}
		})
	}
}

// Whatever happens in whatever order, the gate that is closed is one that has to be.
func TestGateIsNotClosedForLong(t *testing.T) {
	g := newGatedGang(t, 3)
	events := []struct {
		reason string
		do     func()
		open   bool
	}{
		{"One pod of three.", func() { g.change(nil, schedulertest.Member("g", 0, 1)) }, false},
		{"Two.", func() { g.change(nil, schedulertest.Member("g", 1, 1)) }, false},
		{"One was deleted.", func() { g.change(schedulertest.Member("g", 0, 1), nil) }, false},
		{"Two again.", func() { g.change(nil, schedulertest.Member("g", 2, 1)) }, false},
		{"Three, of which one has a scheduling gate.", func() { g.change(nil, gatedPod(3)) }, false},
		{"The scheduling gate is removed.", func() { g.change(gatedPod(3), schedulertest.Member("g", 3, 1)) }, true},
		{"A fourth pod names a subgroup that does not exist; the next attempt finds that.", func() {
			g.change(nil, wrongPod(4))
			g.s.gates.Regate(schedulertest.Key("g"))
		}, false},
		{"It was deleted.", func() { g.change(wrongPod(4), nil) }, true},
		{"One of three was deleted.", func() { g.change(schedulertest.Member("g", 1, 1), nil) }, false},
		{"It was created again.", func() { g.change(nil, schedulertest.Member("g", 5, 1)) }, true},
	}
	for _, e := range events {
		e.do()
		if g.open() != e.open {
			t.Fatalf("%s\nOpen is %t.", e.reason, g.open())
		}
	}
}

func gatedPod(i int) *corev1.Pod {
	pod := schedulertest.Member("g", i, 1)
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}

	return pod
}

func wrongPod(i int) *corev1.Pod {
	pod := schedulertest.Member("g", i, 1)
	pod.Labels = map[string]string{v2alpha2.SubGroupLabel: "wrong"}

	return pod
}
