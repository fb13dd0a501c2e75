package scheduler

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
)

// A fitter that remembers chooses the same nodes as one that does not, while pods of
// several shapes come and go, and nodes change.
func TestMemoChoosesTheSame(t *testing.T) {
	asked := 0
	for _, nodes := range []int{7, 60, 230} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%dNodes/Seed%d", nodes, seed), func(t *testing.T) {
				m := newMemoTrial(t, nodes, rand.New(rand.NewPCG(seed, uint64(nodes))))
				for range 150 {
					m.step()
				}
				asked += m.remembered
			})
		}
	}
	if asked < 500 {
		t.Errorf("Only %d answers were remembered: the test tests little.", asked)
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
}

func newMemoTrial(t *testing.T, nodes int, random *rand.Rand) *memoTrial {
	t.Helper()
	m := &memoTrial{T: t, random: random}
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
	m.with = &fitter{fw: fw, snapshot: m.trial.snapshot, memos: newMemos(fw), reserving: func() bool { return false }}
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
	default:
		m.place()
	}
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
