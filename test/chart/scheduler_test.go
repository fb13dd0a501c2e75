package chart_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// seats is what pods of gangs ask for: a node that the test makes has some.
const seats = corev1.ResourceName("example.com/seat")

// withScheduler are values of a release in which nothing but the scheduler does anything,
// so the CRDs are Helm's.
func withScheduler(more ...string) []string {
	return only("podgroups", append([]string{"scheduler.enabled=true", "crds.manage=helm", "webhooks.enabled=false"}, more...)...)
}

// A theatre is where gangs are placed: a release, and a node with two seats.
type theatre struct {
	*stage

	// user is what the API server calls the scheduler, kubeconfig is how it gets there.
	user       string
	kubeconfig string
	args       []string
	// name is the schedulerName of pods.
	name string
}

func newTheatre(t *testing.T, release string, values ...string) *theatre {
	t.Helper()
	c := server.Client(t, nil)
	purge(t, c)
	r := install(t, c, release, withScheduler(values...)...)
	account := cluster.Account{Namespace: release, Name: release + "-scheduler"}
	h := &theatre{stage: &stage{Client: c, release: r, namespace: cluster.Namespace(t, c)}, name: "arbor-scheduler", user: "system:serviceaccount:" + account.Namespace + ":" + account.Name}
	d := &appsv1.Deployment{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: release, Name: account.Name}, d))
	if is := d.Spec.Template.Spec.ServiceAccountName; is != account.Name {
		t.Fatalf("the scheduler runs as %s", is)
	}
	h.args = d.Spec.Template.Spec.Containers[0].Args
	var err error
	h.kubeconfig, err = server.KubeconfigOf(t.Context(), account)
	must(t, err)
	h.node(t)

	return h
}

// node makes one with two seats, which no other test uses.
func (h *theatre) node(t *testing.T) {
	t.Helper()
	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("99"), seats: resource.MustParse("2")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}}
	must(t, h.Create(t.Context(), node))
	t.Cleanup(func() {
		ctx := (&lasting{t}).Context()
		must(t, h.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(h.namespace), client.GracePeriodSeconds(0)))
		must(t, h.Delete(ctx, node))
	})
}

// start starts the scheduler as its pod would, with the rendered flags and the token of
// the rendered service account.
func (h *theatre) start(t *testing.T, args ...string) *cluster.Scheduler {
	t.Helper()

	return server.StartScheduler(t, slices.Concat(h.args, []string{
		"--kubeconfig=" + h.kubeconfig, "--authentication-kubeconfig=" + h.kubeconfig, "--authorization-kubeconfig=" + h.kubeconfig, "--logging-format=text",
		// An API server that cannot stream lists is asked for them.
		"--feature-gates=WatchListClient=false",
	}, args)...)
}

// gang makes a group of two pods that need a seat each, and returns them.
func (h *theatre) gang(t *testing.T, name, class string) (*v2alpha2.PodGroup, []*corev1.Pod) {
	t.Helper()
	group := &v2alpha2.PodGroup{ObjectMeta: h.meta(name), Spec: v2alpha2.PodGroupSpec{MinMember: new(int32(2)), PriorityClassName: class}}
	h.create(t, group)
	var pods []*corev1.Pod
	for i := range 2 {
		pod := &corev1.Pod{ObjectMeta: h.meta(fmt.Sprintf("%s-%d", name, i)), Spec: corev1.PodSpec{
			SchedulerName: h.name, PriorityClassName: class, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{seats: resource.MustParse("1")}}}},
		}}
		pod.Annotations = map[string]string{"pod-group-name": name}
		h.create(t, pod)
		pods = append(pods, pod)
	}

	return group, pods
}

// scheduled waits until a group reports that it is, with this many pods.
func (h *theatre) scheduled(t *testing.T, group *v2alpha2.PodGroup) {
	t.Helper()
	h.await(t, group.Name+" has its places", group, func() bool {
		return group.Status.Placed != nil && *group.Status.Placed == 2 && slices.ContainsFunc(group.Status.Conditions, func(c v2alpha2.PodGroupCondition) bool {
			return c.Type == v2alpha2.PodGroupScheduled && c.Status == metav1.ConditionTrue
		})
	})
}

// leaves waits until pods are deleted.
func (h *theatre) leaves(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		cluster.Eventually(t, pod.Name+" is evicted", func() error {
			if err := h.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is still there"), err)
			}

			return nil
		})
	}
}

// class makes a PriorityClass, and waits until the API server takes pods of it.
func (h *theatre) class(t *testing.T, name string, value int32) string {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: h.namespace + name}, Value: value}
	must(t, h.Create(t.Context(), class))
	t.Cleanup(func() { must(t, h.Delete((&lasting{t}).Context(), class)) })
	cluster.Eventually(t, "pods may be of "+class.Name, func() error {
		pod := &corev1.Pod{ObjectMeta: h.meta("any"), Spec: corev1.PodSpec{PriorityClassName: class.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}

		return h.Create(t.Context(), pod, client.DryRunAll)
	})

	return class.Name
}

// The scheduler, with the flags and the permissions that the chart gives, places a gang, sends it
// away for a more important one, evicts what is left of that when it breaks, and reports all of it.
// Nothing is rejected, and no permission of Arbor's own roles is left over.
func TestSchedulerPermissions(t *testing.T) {
	h := newTheatre(t, "arbor-gangs", "scheduler.staleGrace=1s",
		"metrics.readers[0].kind=ServiceAccount", "metrics.readers[0].namespace=default", "metrics.readers[0].name=reader")
	have := granted(t, h.Client, h.release.name, h.release.name+"-scheduler")
	s := h.start(t)

	first, sent := h.gang(t, "first", h.class(t, "-low", 10))
	h.scheduled(t, first)
	important, pods := h.gang(t, "important", h.class(t, "-high", 1000))
	h.leaves(t, sent...)
	h.scheduled(t, important)
	must(t, h.Delete(t.Context(), pods[0]))
	h.leaves(t, pods...)
	for selector, want := range map[string]float64{
		`arbor_gang_cycles_total{result="scheduled"}`: 2, `arbor_gang_evictions_total{reason="preempted"}`: 2, `arbor_gang_evictions_total{reason="stale"}`: 1,
	} {
		// What is gone is counted when the scheduler has heard so.
		cluster.Eventually(t, "it is counted", func() error {
			if got := s.Sum(t, selector); got != want {
				return fmt.Errorf("%s is %v, want %v", selector, got, want)
			}

			return nil
		})
	}

	h.release.metrics = strings.TrimPrefix(s.Address, "https://")
	playMetrics(t, h.stage)
	cluster.Eventually(t, "every right is used", func() error {
		given, refused := asked(t, h.user)
		for asked := range refused {
			t.Errorf("used and not granted: %s", asked)
		}
		if left := unused(have, given); len(left) > 0 && !t.Failed() {
			return fmt.Errorf("granted and not used:\n%s", strings.Join(left, "\n"))
		}

		return nil
	})
	if len(have) != 8 {
		t.Errorf("Arbor's own roles have %d permissions: %v", len(have), have)
	}
}

// A replica that waits for its turn looks on, and writes nothing.
func TestSchedulerWaits(t *testing.T) {
	h := newTheatre(t, "arbor-waits")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.release.name, Name: "arbor-scheduler"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()},
	}}
	must(t, h.Create(t.Context(), lease))
	s := h.start(t)
	group, _ := h.gang(t, "waits", "")
	cluster.Eventually(t, "it knows of the pods", func() error {
		// It rejects requests for metrics until it has read the certificate authority of clients.
		if n, err := s.Value("scheduler_queue_incoming_pods_total"); err != nil || n < 2 {
			return errors.Join(fmt.Errorf("it knows of %v", n), err)
		}

		return nil
	})
	must(t, h.Delete(t.Context(), lease))
	h.scheduled(t, group)

	// Each line is written after its answer, so it may come late, and after a later one.
	isLease := func(e auditv1.Event) bool { return e.ObjectRef.Resource == "leases" && e.Verb == "create" }
	var all []auditv1.Event
	cluster.Eventually(t, "it has asked for the lease", func() error {
		if all = audited(t, h.user); !slices.ContainsFunc(all, isLease) {
			return errors.New("it has not")
		}

		return nil
	})
	slices.SortStableFunc(all, func(a, b auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	for _, event := range all[:slices.IndexFunc(all, isLease)] {
		if ref := event.ObjectRef; ref.Resource == "podgroups" && ref.Subresource == "status" {
			t.Errorf("it wrote the status of %s before it led", ref.Name)
		}
	}
}

// A configuration of kube-scheduler's, with profiles of its own: gangs are placed in each.
func TestSchedulerConfigured(t *testing.T) {
	kubeconfig, file := filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "config.yaml")
	h := newTheatre(t, "arbor-configured", "scheduler.config="+strings.Join([]string{
		"apiVersion: kubescheduler.config.k8s.io/v1", "kind: KubeSchedulerConfiguration",
		"clientConnection:", "  kubeconfig: " + kubeconfig,
		"profiles:", "- schedulerName: one", "- schedulerName: two", "",
	}, "\n"))
	data, err := os.ReadFile(h.kubeconfig)
	must(t, err)
	must(t, os.WriteFile(kubeconfig, data, 0o600))
	config := &corev1.ConfigMap{}
	must(t, h.Get(t.Context(), client.ObjectKey{Namespace: h.release.name, Name: h.release.name + "-scheduler"}, config))
	must(t, os.WriteFile(file, []byte(config.Data["config.yaml"]), 0o600))
	h.start(t, "--config="+file)
	for _, h.name = range []string{"one", "two"} {
		group, pods := h.gang(t, h.name, "")
		h.scheduled(t, group)
		for _, pod := range pods {
			must(t, h.Delete(t.Context(), pod))
		}
	}
	if _, refused := asked(t, h.user); len(refused) > 0 {
		t.Errorf("used and not granted: %v", refused)
	}
}
