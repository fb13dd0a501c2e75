package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// A fitter that remembers chooses the same nodes as one that does not, while pods of
// several shapes come and go, nodes change, and room is reserved and released.
func TestMemoChoosesTheSame(t *testing.T) {
	asked, beside := 0, 0
	for _, nodes := range []int{7, 60, 230} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%dNodes/Seed%d", nodes, seed), func(t *testing.T) {
				m := newMemoTrial(t, nodes, rand.New(rand.NewPCG(seed, uint64(nodes))))
				for range 150 {
					m.step()
				}
				asked += m.remembered
				beside += m.beside
			})
		}
	}
	if asked < 500 || beside < asked/10 {
		t.Errorf("Only %d answers were remembered, %d of them while room was reserved: the test tests little.", asked, beside)
	}
}

type memoTrial struct {
	*testing.T

	trial      *trial
	random     *rand.Rand
	with       *fitter
	without    *fitter
	made       int
	running    []*corev1.Pod
	nodes      []*corev1.Node
	remembered int
	// beside is how much of that was remembered while room was reserved.
	beside       int
	reservations *reservations
}

func newMemoTrial(t *testing.T, nodes int, random *rand.Rand) *memoTrial {
	t.Helper()
	m := &memoTrial{T: t, random: random, reservations: newReservations(nominations{})}
	var objects []runtime.Object
	for i := range nodes {
		n := node(i, 1+random.IntN(8))
		if random.IntN(10) == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
		}
		m.nodes = append(m.nodes, n)
		objects = append(objects, n)
	}
	m.trial = offline(t, objects...).trial
	done, err := m.trial.open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
	m.must(err)
	t.Cleanup(done)
	fw := m.trial.profiles[Name]
	fw.SetPodNominator(m.reservations)
	m.with = &fitter{fw: fw, snapshot: m.trial.snapshot, memos: newMemos(fw), reserved: m.reservations.on}
	m.without = &fitter{fw: fw, snapshot: m.trial.snapshot}

	return m
}

func (m *memoTrial) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// step places a pod, or changes the cluster.
func (m *memoTrial) step() {
	m.Helper()
	switch draw := m.random.IntN(10); {
	case draw == 0 && len(m.running) > 0:
		i := m.random.IntN(len(m.running))
		m.must(m.trial.remove(m.Context(), m.running[i]))
		m.running = append(m.running[:i:i], m.running[i+1:]...)
	case draw == 1:
		i := m.random.IntN(len(m.nodes))
		now := m.nodes[i].DeepCopy()
		now.Spec.Unschedulable = !now.Spec.Unschedulable
		m.trial.cache.UpdateNode(klog.Background(), m.nodes[i], now)
		m.nodes[i] = now
	case draw == 2:
		m.reserve()
	default:
		m.place()
	}
}

// reserve reserves room for one of some gangs, or releases it. Some are less important than
// the pods that are placed, which then may use it.
func (m *memoTrial) reserve() {
	name := fmt.Sprintf("r%d", m.random.IntN(4))
	if m.reservations.release(gangNamed(name)) != nil {
		return
	}
	var pods []*corev1.Pod
	var nodes []string
	for i := range 1 + m.random.IntN(3) {
		pods = append(pods, member(name, i, 1+m.random.IntN(4)))
		nodes = append(nodes, m.nodes[m.random.IntN(len(m.nodes))].Name)
	}
	m.reservations.set(newReservation(gangNamed(name), pods, nodes, int32(m.random.IntN(3)-1)))
}

// pod returns a pod of one of some shapes, of which one is spread over nodes.
func (m *memoTrial) pod() *corev1.Pod {
	m.made++
	pod := member("g", m.made, 1+m.random.IntN(3))
	switch m.random.IntN(4) {
	case 0:
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("16")
	case 1:
		pod.Labels = map[string]string{"spread": "true"}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
		}}
	}

	return pod
}

func (m *memoTrial) place() {
	m.Helper()
	pod := m.pod()
	m.must(m.trial.cache.UpdateSnapshot(klog.Background(), m.trial.snapshot))
	begin := m.random.IntN(1000)
	m.with.begin, m.without.begin = begin, begin
	choose := func(f *fitter) string {
		name, err := f.choose(m.Context(), framework.NewCycleState(), pod, decide.Shape(pod, false), "")
		if fit, ok := errors.AsType[*framework.FitError](err); ok {
			return fit.Error()
		}
		m.must(err)

		return name
	}
	m.remembered += m.known()
	if m.reservations.any() {
		m.beside += m.known()
	}
	if m.random.IntN(3) == 0 {
		done := m.reservations.try(gangNamed(fmt.Sprintf("r%d", m.random.IntN(4))))
		defer done()
	}
	got, want := choose(m.with), choose(m.without)
	if got != want || m.with.begin != m.without.begin {
		m.Fatalf("With a memo the answer is %q, and the next search begins at %d; without one it is %q and %d.", got, m.with.begin, want, m.without.begin)
	}
	if _, ok := m.with.position[got]; ok {
		pod.Spec.NodeName = got
		m.must(m.trial.add(m.Context(), pod))
		m.running = append(m.running, pod)
	}
}

// known counts what is remembered of nodes that have not changed.
func (m *memoTrial) known() int {
	n := 0
	for _, one := range m.with.memos.byShape {
		for i, e := range one.entries {
			if e.filtered && i < len(m.with.nodes) && e.generation == m.with.nodes[i].GetGeneration() {
				n++
			}
		}
	}

	return n
}

// A node that was remembered as the only one that fits is asked again: another pod may have
// been nominated to it, which does not change the node.
func TestMemoOfTheOnlyNode(t *testing.T) {
	queue := nominations{}
	trial := offline(t, node(0, 4)).trial
	done, err := trial.open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	if err := trial.cache.UpdateSnapshot(klog.Background(), trial.snapshot); err != nil {
		t.Fatal(err)
	}
	fw := trial.profiles[Name]
	r := newReservations(queue)
	fw.SetPodNominator(r)
	f := &fitter{fw: fw, snapshot: trial.snapshot, memos: newMemos(fw), reserved: r.on}
	choose := func(i int) error {
		pod := member("g", i, 4)
		_, err := f.choose(t.Context(), framework.NewCycleState(), pod, decide.Shape(pod, false), "")

		return err
	}
	if err := choose(0); err != nil {
		t.Fatal(err)
	}
	important := aPod("important", 7)
	important.Spec.Containers = member("x", 0, 4).Spec.Containers
	queue["node-0000"] = append(queue["node-0000"], podInfo(important))
	if _, ok := errors.AsType[*framework.FitError](choose(1)); !ok {
		t.Error("The room of a nominated pod that is more important was taken.")
	}
}

// interrupted is a profile in which something happens while a filter runs.
type interrupted struct {
	framework.Framework

	during func()
}

func (i interrupted) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	status := i.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	i.during()

	return status
}

// Room that was reserved when the filters were asked, and is not any more when they have
// answered, does not change the node. The rejection is not remembered: the next pod would be
// rejected until the node changes.
func TestMemoOfEndingRoom(t *testing.T) {
	cases := map[string]struct {
		reason string
		begin  func(nominations, *reservations)
		end    func(nominations, *reservations)
	}{
		"Reservation": {
			"A reservation is released by another goroutine.",
			func(_ nominations, r *reservations) {
				r.set(newReservation(gangNamed("r"), []*corev1.Pod{member("r", 0, 4)}, []string{"node-0000"}, 7))
			},
			func(_ nominations, r *reservations) { r.release(gangNamed("r")) },
		},
		"Nomination": {
			"A nominated pod is deleted.",
			func(queue nominations, _ *reservations) {
				pod := member("r", 0, 4)
				prio(7)(pod)
				queue["node-0000"] = append(queue["node-0000"], podInfo(pod))
			},
			func(queue nominations, _ *reservations) { delete(queue, "node-0000") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			trial := offline(t, node(0, 4)).trial
			done, err := trial.open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(done)
			if err := trial.cache.UpdateSnapshot(klog.Background(), trial.snapshot); err != nil {
				t.Fatal(err)
			}
			queue := nominations{}
			r := newReservations(queue)
			fw := trial.profiles[Name]
			fw.SetPodNominator(r)
			f := &fitter{fw: interrupted{fw, func() { tc.end(queue, r) }}, snapshot: trial.snapshot, memos: newMemos(fw), reserved: r.on}
			choose := func(i int) error {
				pod := member("g", i, 4)
				_, err := f.choose(t.Context(), framework.NewCycleState(), pod, decide.Shape(pod, false), "")

				return err
			}
			tc.begin(queue, r)
			if _, ok := errors.AsType[*framework.FitError](choose(0)); !ok {
				t.Fatalf("%s\nThe first pod was not kept out: the test tests nothing.", tc.reason)
			}
			if err := choose(1); err != nil {
				t.Errorf("%s\nThe room is free, and a pod that fits is rejected: %v", tc.reason, err)
			}
		})
	}
}
