package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/node/machine"
)

// webhookDrain is how long the chart has a manager serve webhooks after SIGTERM.
const webhookDrain = 5 * time.Second

// Requests are admitted while the node is drained, as kubectl drain does it: the node takes no
// pods any more, and all of its pods are evicted. There is no other node, so what replaces the
// first manager is pending, and its PodDisruptionBudget keeps the second one until the node
// takes pods again. Then that is evicted as well.
func TestDrain(t *testing.T) {
	c := server.Client(t, nil)
	s := admit(t, c)
	cordon(t, c, true)
	t.Cleanup(func() { cordon(t, c, false) })
	d := startDrain(t, c)
	d.releases()
	d.stalls()
	seen := s.requests.Load()
	cluster.Eventually(t, "one manager admits requests", func() error {
		if n := s.requests.Load() - seen; n < 100 {
			return fmt.Errorf("it has admitted %d", n)
		}

		return nil
	})
	cordon(t, c, false)
	d.wait()
	cluster.Eventually(t, "both components run", func() error {
		return errors.Join(rolledOut(t.Context(), c, "arbor-manager"), rolledOut(t.Context(), c, "arbor-scheduler"))
	})
	s.check(t)
}

// cordon has the node take no pods, or take them again.
func cordon(t *testing.T, c client.Client, on bool) {
	t.Helper()
	node := &corev1.Node{}
	node.Name = machine.Name
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, on)
	must(t, c.Patch(context.WithoutCancel(t.Context()), node, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// A drained is a node whose pods are being evicted.
type drained struct {
	client.Client

	t      *testing.T
	began  time.Time
	leader corev1.Pod
	done   sync.WaitGroup

	mu       sync.Mutex
	rejected map[string]string // by pod
	failed   []error
}

// startDrain evicts all pods of the node, beginning with the manager that leads. An eviction that a
// PodDisruptionBudget rejects is tried again.
func startDrain(t *testing.T, c client.Client) *drained {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	d := &drained{Client: c, t: t, leader: leader(t, c), rejected: map[string]string{}}
	pods := &corev1.PodList{}
	must(t, c.List(t.Context(), pods, client.MatchingFields{"spec.nodeName": machine.Name}))
	d.began = time.Now()
	must(t, c.SubResource("eviction").Create(t.Context(), &d.leader, &policyv1.Eviction{}))
	for _, pod := range pods.Items {
		if pod.UID != d.leader.UID {
			d.done.Go(func() { d.fail(pod, d.evict(ctx, pod)) })
		}
	}

	return d
}

// evict evicts a pod and waits until it does not exist.
func (d *drained) evict(ctx context.Context, pod corev1.Pod) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for evicted := false; ; {
		var err error
		if evicted {
			now := &corev1.Pod{}
			if err = d.Get(ctx, client.ObjectKeyFromObject(&pod), now); err == nil && now.UID != pod.UID {
				return nil
			}
		} else {
			err = d.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{})
			evicted = err == nil
		}
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsTooManyRequests(err):
			d.mu.Lock()
			d.rejected[pod.Name] = err.Error()
			d.mu.Unlock()
		case err != nil:
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("evicted %t: %w", evicted, ctx.Err())
		}
	}
}

// fail records why a pod was not evicted.
func (d *drained) fail(pod corev1.Pod, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.failed = append(d.failed, fmt.Errorf("cannot evict %s/%s, which was rejected with %q: %w", pod.Namespace, pod.Name, d.rejected[pod.Name], err))
	}
}

// releases waits until the evicted leader has released its lease: before it has served webhooks for
// as long as it has to.
func (d *drained) releases() {
	d.t.Helper()
	cluster.Eventually(d.t, "the evicted manager has released the lease", func() error {
		if name := holder(d.t, d.Client); name == d.leader.Name {
			return fmt.Errorf("%s holds it", name)
		}

		return nil
	})
	if took := time.Since(d.began); took >= webhookDrain {
		d.t.Errorf("the evicted manager released the lease after %s, want less than %s", took, webhookDrain)
	}
}

// stalls waits until the evicted manager has ended, another one is pending, and the one that is left
// cannot be evicted.
func (d *drained) stalls() {
	d.t.Helper()
	cluster.Eventually(d.t, "the drain waits for a second manager", func() error {
		var running, pending []string
		for _, pod := range managers(d.t, d.Client) {
			if pod.Spec.NodeName == "" {
				pending = append(pending, pod.Name)
			} else {
				running = append(running, pod.Name)
			}
		}
		if len(running) != 1 || len(pending) != 1 {
			return fmt.Errorf("running %v, pending %v", running, pending)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if why := d.rejected[running[0]]; !strings.Contains(why, "disruption budget") {
			return fmt.Errorf("the eviction of %s was answered with %q", running[0], why)
		}

		return nil
	})
}

// wait waits until all pods are evicted.
func (d *drained) wait() {
	d.t.Helper()
	d.done.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(d.failed...); err != nil {
		d.t.Fatal(err)
	}
}
