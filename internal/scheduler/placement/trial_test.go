package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// A testCluster is what an offline cluster is read into.
type testCluster struct {
	groups  *podgroups.Index
	trial   *Trial
	factory informers.SharedInformerFactory
	rules   gang.Rules
}

// openCluster reads a cluster that consists of objects.
func openCluster(t testing.TB, objects ...runtime.Object) *testCluster {
	t.Helper()
	source, client, factory := schedulertest.Connect(t, objects...)
	c := &testCluster{factory: factory}
	var err error
	if c.groups, err = podgroups.New(source, client, factory, c.rules); err != nil {
		t.Fatal(err)
	}
	if c.trial, err = NewTrial(t.Context(), client, source, factory, schedulertest.DefaultProfiles(t), schedulertest.PluginsWith(NewPacking)); err != nil {
		t.Fatal(err)
	}
	c.trial.AnswerAny(settings.Name)
	c.trial.SetNominated(podgroups.NominatedIn(c.groups))
	schedulertest.SyncInformers(t, factory)
	if err := c.groups.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	return c
}

// A search that panics while it begins does not keep the others from beginning.
func TestTrialOpenPanics(t *testing.T) {
	o := openCluster(t, schedulertest.Node(0, 1), schedulertest.Member("g", 0, 1))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("There is no panic.")
			}
		}()
		_, _ = o.trial.Open(t.Context(), func(*corev1.Pod) *corev1.Pod { panic("index out of range") })
	}()
	done, err := o.trial.Open(t.Context(), func(pod *corev1.Pod) *corev1.Pod { return pod })
	if err != nil {
		t.Fatal(err)
	}
	done()
}

// A place that a cycle only tries is not seen by others. One that is being bound is.
func TestTentativePlaces(t *testing.T) {
	s := openCluster(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1), schedulertest.Node(0, 8))...)
	pod := s.groups.Members(schedulertest.Key("high"))[0]
	tried := pod.DeepCopy()
	tried.Spec.NodeName = schedulertest.Node(0, 8).Name
	if err := s.trial.Cache.AssumePod(klog.FromContext(t.Context()), tried); err != nil {
		t.Fatal(err)
	}
	if is := s.groups.Members(schedulertest.Key("high"))[0]; is.Spec.NodeName != "" || s.groups.UsingRoom(tried) != nil {
		t.Errorf("A pod that is tried on a node is seen on %q.", is.Spec.NodeName)
	}
	s.groups.Commit(pod.UID, tried.Spec.NodeName)
	if is := s.groups.Members(schedulertest.Key("high"))[0]; is.Spec.NodeName != tried.Spec.NodeName || s.groups.UsingRoom(tried) == nil {
		t.Errorf("A pod that is being bound is seen on %q.", is.Spec.NodeName)
	}
	// The preemption evicts what usingRoom returns.
	if s.groups.UsingRoom(s.groups.UsingRoom(tried)) == nil {
		t.Error("A pod that is being bound is taken for one that has given up its place.")
	}
}

func TestEnough(t *testing.T) {
	cases := map[string]struct {
		reason  string
		percent int32
		nodes   int
		want    int
	}{
		"Few":      {reason: "in a small cluster every node is looked at", nodes: 99, want: 99},
		"Adaptive": {reason: "the larger the cluster, the smaller the part", nodes: 1000, want: 420},
		"Least":    {reason: "but at least a twentieth", nodes: 10000, want: 500},
		"Hundred":  {reason: "and at least a hundred nodes", nodes: 150, want: 100},
		"Asked":    {reason: "unless the profile says how many", percent: 100, nodes: 1000, want: 1000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := enoughOf(tc.percent, tc.nodes); got != tc.want {
				t.Errorf("%s\nenough(%v, %d) = %d, want %d", tc.reason, tc.percent, tc.nodes, got, tc.want)
			}
		})
	}
}
