package placement

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

const guardName = "Guard"

// guard is a Permit plugin with an answer for some pods.
type guard map[string]fwk.Code

func (guard) Name() string { return guardName }

func (g guard) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	if code, ok := g[pod.Name]; ok {
		return fwk.NewStatus(code, "by the guard"), time.Minute
	}

	return nil, 0
}

// guarded is a framework with that plugin.
func guarded(t *testing.T, g guard) framework.Framework {
	t.Helper()
	metrics.Register()
	only := func(name string) config.PluginSet { return config.PluginSet{Enabled: []config.Plugin{{Name: name}}} }
	fw, err := frameworkruntime.NewFramework(t.Context(), frameworkruntime.Registry{
		guardName:          func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return g, nil },
		queuesort.Name:     queuesort.New,
		defaultbinder.Name: defaultbinder.New,
	}, &config.KubeSchedulerProfile{SchedulerName: settings.Name, Plugins: &config.Plugins{
		QueueSort: only(queuesort.Name), Permit: only(guardName), Bind: only(defaultbinder.Name),
	}}, frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()))
	if err != nil {
		t.Fatal(err)
	}

	return fw
}

func TestPermitAll(t *testing.T) {
	cases := map[string]struct {
		reason   string
		guard    guard
		required int
		refused  string
		held     []string
		waiting  []string
	}{
		"All": {
			reason: "members that no plugin rejects keep their places",
			guard:  guard{}, required: 3, held: []string{"a", "b", "c"},
		},
		"Wait": {
			reason: "a member that is delayed waits",
			guard:  guard{"b": fwk.Wait}, required: 3, held: []string{"a", "b", "c"}, waiting: []string{"b"},
		},
		"Required": {
			reason: "when a required member is rejected, no member waits any more",
			guard:  guard{"a": fwk.Wait, "b": fwk.Unschedulable}, required: 2, refused: "b", held: []string{"a", "b", "c"},
		},
		"Extra": {
			reason: "an extra that is rejected loses its place, and the others keep theirs",
			guard:  guard{"b": fwk.Unschedulable, "c": fwk.Wait}, required: 1, held: []string{"a", "c"}, waiting: []string{"c"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fw := guarded(t, tc.guard)
			w := &World{ctx: t.Context(), fw: fw, cache: internalcache.New(t.Context(), nil, false), Rejectors: sets.New[string]()}
			for i, name := range []string{"a", "b", "c"} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: "n"}}
				if err := w.cache.AssumePod(klog.Background(), pod); err != nil {
					t.Fatal(err)
				}
				w.pods = append(w.pods, pod)
				w.Held = append(w.Held, Holding{Member: i, Pod: pod, State: framework.NewCycleState(), Node: "n"})
			}
			refused := ""
			if r := w.PermitAll(t.Context(), tc.required); r != nil {
				refused = r.Pod.Name
			}
			var held, waiting []string
			for _, h := range w.Held {
				held = append(held, h.Pod.Name)
			}
			fw.IterateOverWaitingPods(func(p fwk.WaitingPod) { waiting = append(waiting, p.GetPod().Name) })
			if refused != tc.refused {
				t.Errorf("%s\npermitAll() refuses %q, want %q", tc.reason, refused, tc.refused)
			}
			if diff := cmp.Diff([][]string{tc.held, tc.waiting}, [][]string{held, waiting}); diff != "" {
				t.Errorf("%s\npermitAll(): -want, +got held and waiting:\n%s", tc.reason, diff)
			}
			rejected := tc.guard["b"] == fwk.Unschedulable
			if w.Rejectors.Has(guardName) != rejected {
				t.Errorf("%s\nthe rejectors are %v", tc.reason, w.Rejectors)
			}
			assumed, err := w.cache.IsAssumedPod(w.pods[1])
			if want := refused != "" || !rejected; err != nil || assumed != want {
				t.Errorf("%s\nb is assumed: %t (%v), want %t", tc.reason, assumed, err, want)
			}
		})
	}
}
