package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// The shape is that of KAI's own scale tests, so that figures can be compared.
const (
	farmNodes = 500
	nodeGPUs  = 8
	crowd     = farmNodes * nodeGPUs
	wide      = 512
	laps      = 3
	ground    = "gangs"

	// waitingLabel is on pods that a scheduler has to place.
	waitingLabel = "waiting"

	stock, ours = "kube-scheduler", "arbor-scheduler"
)

// A farm is a control plane with nodes on which nothing runs: whoever is bound
// stays where he is.
type farm struct {
	client.Client

	up *cluster.Up
	kc *kubernetes.Clientset
}

// gangs measures how fast gangs are placed, against kube-scheduler with the same
// pods without groups.
func gangs() ([]result, error) {
	return onControlPlane(func(u *cluster.Up) ([]result, error) {
		ctx := context.Background()
		f, err := newFarm(ctx, u)
		if err != nil {
			return nil, err
		}
		if err := f.grow(ctx, 0, farmNodes); err != nil {
			return nil, err
		}
		speeds, err := f.races(ctx, contestant{stock, crowd, 0, 1}, contestant{ours, crowd, 10, 1}, contestant{ours, crowd, 1, 1})
		if err != nil {
			return nil, err
		}
		base, tens, ones := speeds[0], speeds[1], speeds[2]
		all := []result{
			{"gangs/stock", base},
			{"gangs/400x10", tens},
			{"gangs/4000x1", ones},
			{"gangs/400x10-to-stock", tens / base},
			{"gangs/4000x1-to-stock", ones / base},
		}
		answers, err := f.answers()
		if err != nil {
			return nil, err
		}
		one, err := f.oneGang(ctx)

		return slices.Concat(all, answers, one), err
	}, "--unsafe-no-fsync")
}

// oneGang has a pod for each node, all of them one gang.
func (f *farm) oneGang(ctx context.Context) ([]result, error) {
	if err := f.grow(ctx, farmNodes, wide); err != nil {
		return nil, err
	}
	speeds, err := f.races(ctx, contestant{stock, wide, 0, nodeGPUs}, contestant{ours, wide, wide, nodeGPUs})
	if err != nil {
		return nil, err
	}
	single, one := speeds[0], speeds[1]

	return []result{{"gangs/512-stock", single}, {"gangs/512-in-one", one}, {"gangs/512-in-one-to-stock", one / single}}, nil
}

func newFarm(ctx context.Context, u *cluster.Up) (*farm, error) {
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
	f := &farm{Client: c, up: u, kc: kc}
	if err := f.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ground}}); err != nil {
		return nil, err
	}
	// Pods need it, and it comes a little after the namespace.
	return f, until(ctx, soon, func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: ground, Name: "default"}, &corev1.ServiceAccount{})

		return err == nil, client.IgnoreNotFound(err)
	})
}

// grow makes the nodes from one number to another.
func (f *farm) grow(ctx context.Context, from, to int) error {
	_, err := perSecond(to-from, func(i int) error {
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

// A contestant is a scheduler with the pods that it has to place, in gangs of a
// size unless that is 0.
type contestant struct {
	who        string
	pods, size int
	gpus       int // that each pod wants
}

// races has contestants run in turns, and returns how many pods each places per
// second. A control plane gets slower with what it has seen, so everybody is first,
// second and third once.
func (f *farm) races(ctx context.Context, all ...contestant) ([]float64, error) {
	took := make([]time.Duration, len(all))
	for lap := range laps {
		for i := range all {
			who := (lap + i) % len(all)
			one, err := f.race(ctx, all[who])
			if err != nil {
				return nil, err
			}
			took[who] += one
		}
	}
	speeds := make([]float64, len(all))
	for i, c := range all {
		speeds[i] = float64(laps*c.pods) / took[i].Seconds()
	}

	return speeds, nil
}

// race makes the pods, starts the scheduler, and returns how long it takes, from the
// start of its process to the last binding that a watch tells of.
func (f *farm) race(ctx context.Context, c contestant) (time.Duration, error) {
	if err := f.crowd(ctx, c); err != nil {
		return 0, err
	}
	bound, stop := f.bound(ctx)
	defer stop()
	began := time.Now()
	p, err := f.start(c.who) //nolint:contextcheck // it is stopped, not cancelled
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := until(ctx, soon, func(context.Context) (bool, error) { return bound() >= c.pods, nil }); err != nil {
		return 0, fmt.Errorf("%s has placed %d of %d pods: %w\n%s", c.who, bound(), c.pods, err, p.Output())
	}
	took := time.Since(began)
	p.Stop()
	fmt.Fprintf(os.Stderr, "  %s: %d pods in gangs of %d after %.1f s, with %.1f s of CPU\n", c.who, c.pods, c.size, took.Seconds(), p.CPU().Seconds())

	return took, f.clear(ctx)
}

// bound follows how many pods have a node.
func (f *farm) bound(ctx context.Context) (count func() int, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var n atomic.Int64
	informer := cache.NewSharedIndexInformer(
		cache.NewFilteredListWatchFromClient(f.kc.CoreV1().RESTClient(), "pods", ground, func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }),
		&corev1.Pod{}, 0, cache.Indexers{})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { n.Add(1) }})
	go informer.Run(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)

	return func() int { return int(n.Load()) }, cancel
}

// crowd makes pods that wait.
func (f *farm) crowd(ctx context.Context, c contestant) error {
	if c.size > 0 {
		if _, err := perSecond(c.pods/c.size, func(i int) error {
			return f.Create(ctx, &v2alpha2.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: ground, Name: "g" + strconv.Itoa(i-1)},
				Spec:       v2alpha2.PodGroupSpec{MinMember: new(int32(c.size))},
			})
		}); err != nil {
			return err
		}
	}
	_, err := perSecond(c.pods, func(i int) error {
		return f.Create(ctx, c.pod(i-1))
	})

	return err
}

func (c contestant) pod(i int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ground, Name: fmt.Sprintf("p-%d", i), Labels: map[string]string{waitingLabel: "true"}},
		Spec: corev1.PodSpec{
			SchedulerName: c.who + "-bench",
			Tolerations:   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
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

// start starts a scheduler with the same configuration but for the gangs.
func (f *farm) start(who string) (*cluster.Scheduler, error) {
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
func (f *farm) clear(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := f.kc.CoreV1().Pods(ground).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := f.DeleteAllOf(ctx, &v2alpha2.PodGroup{}, client.InNamespace(ground)); err != nil {
		return err
	}

	return until(ctx, later, func(ctx context.Context) (bool, error) {
		list, err := f.kc.CoreV1().Pods(ground).List(ctx, metav1.ListOptions{Limit: 1})

		return err == nil && len(list.Items) == 0, err
	})
}
