package placement

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
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

	trial      *Trial
	random     *rand.Rand
	with       *Fitter
	without    *Fitter
	made       int
	running    []*corev1.Pod
	nodes      []*corev1.Node
	remembered int
	// beside is how much of that was remembered while room was reserved.
	beside       int
	reservations *reservation.Reservations
}

func newMemoTrial(t *testing.T, nodes int, random *rand.Rand) *memoTrial {
	t.Helper()
	m := &memoTrial{T: t, random: random, reservations: reservation.New(schedulertest.Nominations{})}
	var objects []runtime.Object
	for i := range nodes {
		n := schedulertest.Node(i, 1+random.IntN(8))
		if random.IntN(10) == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
		}
		m.nodes = append(m.nodes, n)
		objects = append(objects, n)
	}
	m.trial = openCluster(t, objects...).trial
	done, err := m.trial.Open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
	m.must(err)
	t.Cleanup(done)
	fw := m.trial.Profiles[settings.Name]
	fw.SetPodNominator(m.reservations)
	m.with = &Fitter{fw: fw, snapshot: m.trial.Snapshot, memos: newMemos(fw), reserved: m.reservations.On}
	m.without = &Fitter{fw: fw, snapshot: m.trial.Snapshot}

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
		m.must(m.trial.Remove(m.Context(), m.running[i]))
		m.running = append(m.running[:i:i], m.running[i+1:]...)
	case draw == 1:
		i := m.random.IntN(len(m.nodes))
		now := m.nodes[i].DeepCopy()
		now.Spec.Unschedulable = !now.Spec.Unschedulable
		m.trial.Cache.UpdateNode(klog.Background(), m.nodes[i], now)
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
	if m.reservations.Release(schedulertest.Key(name)) != nil {
		return
	}
	var pods []*corev1.Pod
	var nodes []string
	for i := range 1 + m.random.IntN(3) {
		pods = append(pods, schedulertest.Member(name, i, 1+m.random.IntN(4)))
		nodes = append(nodes, m.nodes[m.random.IntN(len(m.nodes))].Name)
	}
	m.reservations.Set(reservation.NewReservation(schedulertest.Key(name), pods, nodes, int32(m.random.IntN(3)-1)))
}

// pod returns a pod of one of some shapes, of which one is spread over nodes.
func (m *memoTrial) pod() *corev1.Pod {
	m.made++
	pod := schedulertest.Member("g", m.made, 1+m.random.IntN(3))
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
	m.must(m.trial.Cache.UpdateSnapshot(klog.Background(), m.trial.Snapshot))
	begin := m.random.IntN(1000)
	m.with.begin, m.without.begin = begin, begin
	choose := func(f *Fitter) string {
		name, err := f.choose(m.Context(), framework.NewCycleState(), pod, decide.Shape(pod, false), "")
		if fit, ok := errors.AsType[*framework.FitError](err); ok {
			return fit.Error()
		}
		m.must(err)

		return name
	}
	m.remembered += m.known()
	if m.reservations.Any() {
		m.beside += m.known()
	}
	if m.random.IntN(3) == 0 {
		done := m.reservations.Try(schedulertest.Key(fmt.Sprintf("r%d", m.random.IntN(4))))
		defer done()
	}
	got, want := choose(m.with), choose(m.without)
	if got != want || m.with.begin != m.without.begin {
		m.Fatalf("With a memo the answer is %q, and the next search begins at %d; without one it is %q and %d.", got, m.with.begin, want, m.without.begin)
	}
	if _, ok := m.with.position[got]; ok {
		pod.Spec.NodeName = got
		m.must(m.trial.Add(m.Context(), pod))
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
	queue := schedulertest.Nominations{}
	trial := openCluster(t, schedulertest.Node(0, 4)).trial
	done, err := trial.Open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	if err := trial.Cache.UpdateSnapshot(klog.Background(), trial.Snapshot); err != nil {
		t.Fatal(err)
	}
	fw := trial.Profiles[settings.Name]
	r := reservation.New(queue)
	fw.SetPodNominator(r)
	f := &Fitter{fw: fw, snapshot: trial.Snapshot, memos: newMemos(fw), reserved: r.On}
	choose := func(i int) error {
		pod := schedulertest.Member("g", i, 4)
		_, err := f.choose(t.Context(), framework.NewCycleState(), pod, decide.Shape(pod, false), "")

		return err
	}
	if err := choose(0); err != nil {
		t.Fatal(err)
	}
	important := schedulertest.Pod("important", 7)
	important.Spec.Containers = schedulertest.Member("x", 0, 4).Spec.Containers
	queue["node-0000"] = append(queue["node-0000"], podinfo.New(important))
	if _, ok := errors.AsType[*framework.FitError](choose(1)); !ok {
		t.Error("The room of a nominated pod that is more important was taken.")
	}
}

// Room that was reserved when the filters were asked, and is not any more when they have
// answered, does not change the node. The rejection is not remembered: the next pod would be
// rejected until the node changes.
func TestMemoOfEndingRoom(t *testing.T) {
	cases := map[string]struct {
		reason string
		begin  func(schedulertest.Nominations, *reservation.Reservations)
		end    func(schedulertest.Nominations, *reservation.Reservations)
	}{
		"Reservation": {
			"A reservation is released by another goroutine.",
			func(_ schedulertest.Nominations, r *reservation.Reservations) {
				r.Set(reservation.NewReservation(schedulertest.Key("r"), []*corev1.Pod{schedulertest.Member("r", 0, 4)}, []string{"node-0000"}, 7))
			},
			func(_ schedulertest.Nominations, r *reservation.Reservations) { r.Release(schedulertest.Key("r")) },
		},
		"Nomination": {
			"A nominated pod is deleted.",
			func(queue schedulertest.Nominations, _ *reservation.Reservations) {
				pod := schedulertest.Member("r", 0, 4)
				schedulertest.Prio(7)(pod)
				queue["node-0000"] = append(queue["node-0000"], podinfo.New(pod))
			},
			func(queue schedulertest.Nominations, _ *reservation.Reservations) { delete(queue, "node-0000") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			trial := openCluster(t, schedulertest.Node(0, 4)).trial
			done, err := trial.Open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(done)
			if err := trial.Cache.UpdateSnapshot(klog.Background(), trial.Snapshot); err != nil {
				t.Fatal(err)
			}
			queue := schedulertest.Nominations{}
			r := reservation.New(queue)
			fw := trial.Profiles[settings.Name]
			fw.SetPodNominator(r)
			f := &Fitter{fw: schedulertest.Interrupted{Framework: fw, During: func() { tc.end(queue, r) }}, snapshot: trial.Snapshot, memos: newMemos(fw), reserved: r.On}
			choose := func(i int) error {
				pod := schedulertest.Member("g", i, 4)
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
