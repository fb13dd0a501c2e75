package gangs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

// The shape is that of KAI's own scale tests, so that figures can be compared.
const (
	farmNodes = 500
	nodeGPUs  = 8
	wide      = 512
	MaxScale  = 50
	namespace = "gangs"

	// waitingLabel is on pods that a scheduler has to place.
	waitingLabel = "waiting"

	stock, ours = "kube-scheduler", "arbor-scheduler"
)

// A controlPlane is a control plane with nodes that have no kubelet: a pod that is bound
// stays as it is.
type controlPlane struct {
	client.Client

	up        *cluster.Up
	kc        *kubernetes.Clientset
	apiserver int // PID of the API server, which etcd is part of
	scale     int
}

func newControlPlane(ctx context.Context, u *cluster.Up, scale int) (*controlPlane, error) {
	c, err := u.NewClient(nil)
	if err != nil {
		return nil, err
	}
	if err := cluster.Define(ctx, c, v2alpha2.GroupVersion, v2alpha2.PodGroupKind); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(u.Config)
	config.QPS = -1
	kc, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &controlPlane{Client: c, up: u, kc: kc, scale: scale}
	if f.apiserver, err = u.Child("kube-apiserver"); err != nil {
		return nil, err
	}
	if err := f.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}
	// Pods need the ServiceAccount, which is made a little after the namespace.
	return f, harness.Until(ctx, harness.ShortPoll, func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})

		return err == nil, client.IgnoreNotFound(err)
	})
}

// scaled is a number of nodes, pods or gangs at the scale of the run.
func (f *controlPlane) scaled(n int) int { return max(1, n/f.scale) }

// grow makes the nodes from one number to another.
func (f *controlPlane) grow(ctx context.Context, from, to int) error {
	_, err := harness.PerSecond(to-from, func(i int) error {
		resources := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("128"), corev1.ResourceMemory: resource.MustParse("1Ti"),
			corev1.ResourcePods: resource.MustParse("250"), "nvidia.com/gpu": *resource.NewQuantity(nodeGPUs, resource.DecimalSI),
		}
		name := fmt.Sprintf("node-%04d", from+i)

		return f.Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
		})
	})

	return err
}

// fill makes nodes, and a pod for each of their GPUs.
func (f *controlPlane) fill(ctx context.Context, nodes int) error {
	if err := f.grow(ctx, 0, nodes); err != nil {
		return err
	}
	_, err := harness.PerSecond(nodes*nodeGPUs, func(i int) error {
		pod := scheduler{who: "nobody", gpus: 1}.newPod(0)
		pod.Name, pod.Labels = fmt.Sprintf("full-%d", i-1), nil
		pod.Spec.NodeName = fmt.Sprintf("node-%04d", (i-1)/nodeGPUs+1)

		return f.Create(ctx, pod)
	})

	return err
}

// A scheduler is a scheduler with the pods that it has to place, in gangs of a
// size unless that is 0.
type scheduler struct {
	who        string
	pods, size int
	gpus       int    // that each pod requests
	class      string // PriorityClass of gangs and pods
}

// crowd makes pods that wait, and their groups.
func (f *controlPlane) crowd(ctx context.Context, c scheduler) error {
	if c.size > 0 {
		if _, err := harness.PerSecond(c.pods/c.size, func(i int) error {
			return f.Create(ctx, &v2alpha2.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "g" + strconv.Itoa(i-1)},
				Spec:       v2alpha2.PodGroupSpec{MinMember: new(int32(c.size)), PriorityClassName: c.class},
			})
		}); err != nil {
			return err
		}
	}
	_, err := harness.PerSecond(c.pods, func(i int) error {
		return f.Create(ctx, c.newPod(i-1))
	})

	return err
}

func (c scheduler) newPod(i int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p-%d", i), Labels: map[string]string{waitingLabel: "true"}},
		Spec: corev1.PodSpec{
			SchedulerName:     c.who + "-bench",
			PriorityClassName: c.class,
			Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(c.gpus), resource.DecimalSI)},
			}}},
		},
	}
	if c.size > 0 {
		pod.Annotations = map[string]string{"pod-group-name": "g" + strconv.Itoa(i/c.size)}
	}

	return pod
}

// start starts a scheduler. Both have the same configuration, but for the gangs.
func (f *controlPlane) start(who string) (*cluster.Scheduler, error) {
	file := filepath.Join(f.up.Dir, who+".yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 5000, burst: 5000}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: %s-bench}]
`, f.up.Kubeconfig, who)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if who == stock {
		return f.up.KubeScheduler("--config=" + file)
	}

	return f.up.Scheduler("--config=" + file)
}

// clear removes all pods and groups.
func (f *controlPlane) clear(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := f.kc.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := f.DeleteAllOf(ctx, &v2alpha2.PodGroup{}, client.InNamespace(namespace)); err != nil {
		return err
	}

	return harness.Until(ctx, harness.LongPoll, func(ctx context.Context) (bool, error) {
		list, err := f.kc.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})

		return err == nil && len(list.Items) == 0, err
	})
}
