package monitoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	// bindings are those of pods that an outage is about.
	bindings = `^POST /api/v1/namespaces/[^/]+/pods/unbound-[^/]+/binding$`
	// gangNode is where gangs go. It has two seats.
	gangNode = "gangs"
	seat     = corev1.ResourceName("example.com/seat")
	// looked is what pods ask for that the extender has a look at.
	looked = corev1.ResourceName("example.com/looked-at")
)

// An extender is asked by the scheduler which nodes will do. It agrees with all of
// them, in its own time.
type extender struct {
	url  string
	slow atomic.Bool
}

func newExtender(t *testing.T) *extender {
	t.Helper()
	e := &extender{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}
		if e.slow.Load() {
			<-time.After(1200 * time.Millisecond)
		}
		_ = json.NewEncoder(w).Encode(map[string]json.RawMessage{"Nodes": asked["Nodes"], "NodeNames": asked["NodeNames"]})
	}))
	t.Cleanup(s.Close)
	e.url = s.URL

	return e
}

// startScheduler starts one that asks the extender and reaches the API server through
// the proxy, and has it scraped. It ends with all scenarios.
func (w *world) startScheduler(t *testing.T) {
	t.Helper()
	config := filepath.Join(w.dir, "scheduler.yaml")
	write(t, config, map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": w.proxy.Kubeconfig, "qps": 500, "burst": 1000},
		"profiles":         []any{map[string]any{"schedulerName": "arbor-scheduler"}},
		"extenders": []any{map[string]any{
			"urlPrefix": w.extender.url, "filterVerb": "filter", "managedResources": []any{map[string]any{"name": looked, "ignoredByScheduler": true}},
		}},
	})
	// One that cannot renew its lease in time ends, and there is no other.
	s, err := server.Scheduler("--config="+config, "--authorization-always-allow-paths=/livez,/readyz,/metrics",
		"--leader-elect=true", "--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s")
	must(t, err)
	w.scheduler = s
	must(t, s.Await())
	w.scrape(t, gangsJob, strings.TrimPrefix(s.Address, "https://"))

	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("900"), seat: resource.MustParse("2")}
	must(t, w.client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: gangNode}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}}))
}

// gang makes a group of so many pods, which ask for one of something each.
func (w *world) gang(ctx context.Context, name, class string, size int, of corev1.ResourceName) error {
	group := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	group.Spec = v2alpha2.PodGroupSpec{MinMember: new(int32(size)), PriorityClassName: class}
	if err := w.client.Create(ctx, group); err != nil {
		return err
	}
	for i := range size {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("%s-%d", name, i), Annotations: map[string]string{"pod-group-name": name}}}
		pod.Spec = corev1.PodSpec{SchedulerName: "arbor-scheduler", PriorityClassName: class, TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		// No kubelet reports for the node: after a minute it is tainted as unreachable.
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		if of != "" {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{of: resource.MustParse("1")}
		}
		if err := w.client.Create(ctx, pod); err != nil {
			return err
		}
	}

	return nil
}

// unbound has a gang after the other come, none of which can be bound; and before that,
// one that takes the place of another, and during that time some that would like to, so that
// there is something to see of that too.
func unbound(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	for i, name := range []string{"modest", "important"} {
		w.class(t, name, int32(10+1000*i))
		must(t, w.gang(t.Context(), name, name, 2, seat))
		w.placed(t, name)
	}
	allow := w.proxy.Forbid(t, bindings)
	stop := load(t, 250*time.Millisecond, func(i int) error {
		ctx := context.WithoutCancel(t.Context())
		// There is no room for these, whichever pods are evicted. A few are enough.
		if i%4 == 0 && i < 40 {
			if err := w.gang(ctx, fmt.Sprintf("crowd-%d", i), "important", 3, seat); err != nil {
				return err
			}
		}

		return w.gang(ctx, fmt.Sprintf("unbound-%d", i), "", 1, "")
	})

	return map[string]string{"job": gangsJob}, func() {
		stop()
		allow()
	}
}

// class makes a PriorityClass, and waits until the API server takes pods of it.
func (w *world) class(t *testing.T, name string, value int32) {
	t.Helper()
	must(t, w.client.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}))
	cluster.Eventually(t, "pods may be "+name, func() error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "any"}, Spec: corev1.PodSpec{PriorityClassName: name, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}

		return w.client.Create(t.Context(), pod, client.DryRunAll)
	})
}

// slowGangs has a gang after the other come, about which the extender thinks for long.
func slowGangs(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.extender.slow.Store(true)
	stop := load(t, 1500*time.Millisecond, func(i int) error {
		return w.gang(context.WithoutCancel(t.Context()), fmt.Sprintf("slow-%d", i), "", 1, looked)
	})

	return map[string]string{"job": gangsJob}, func() {
		stop()
		w.extender.slow.Store(false)
	}
}

// placed waits until a gang of two has its places.
func (w *world) placed(t *testing.T, name string) {
	t.Helper()
	cluster.Eventually(t, "the gang "+name+" has its places", func() error {
		group := &v2alpha2.PodGroup{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, group); err != nil {
			return err
		}
		if group.Status.Placed == nil || *group.Status.Placed != 2 {
			return fmt.Errorf("it reports %+v", group.Status)
		}

		return nil
	})
}
