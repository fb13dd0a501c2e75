package subnets_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// writes counts the writes of one pool: each is an event of a watch.
func writes(t *testing.T, pool *v1alpha1.SubnetPool) *atomic.Int64 {
	t.Helper()
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Client(t, nil).Scheme()})
	must(t, err)
	events, err := c.Watch(t.Context(), &v1alpha1.SubnetPoolList{}, client.InNamespace(pool.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: pool.ResourceVersion}})
	must(t, err)
	t.Cleanup(events.Stop)
	var n atomic.Int64
	name := pool.Name
	go func() {
		for e := range events.ResultChan() {
			if e.Type == watch.Modified && e.Object.(client.Object).GetName() == name {
				n.Add(1)
			}
		}
	}()

	return &n
}

// A burst of events of one pool costs few writes of its status: the workqueue keeps one
// entry for a pool, and what happens within 100 ms is one write.
func TestBurst(t *testing.T) {
	const events, spacing, slack = 1000, 100 * time.Millisecond, 8
	c := newClient(t)
	proxy := server.NewProxy(t, "", 1)
	kubeconfig, err := server.Through(t.Context(), proxy.Kubeconfig, only, noWebhooks)
	must(t, err)
	m := server.StartManager(t, only, noWebhooks, kubeconfig)
	w := newWorld(t, c)
	pool := w.pool("p", "10.0.0.0/12", "")
	w.create(pool)
	w.observed(pool)

	// measure returns how many writes it takes until the pool counts some Subnets.
	measure := func(what string, count int64, burst func()) (int64, time.Duration) {
		t.Helper()
		must(t, w.get(pool))
		written, before, began := writes(t, pool), m.Sum(t, "subnetpool_parent_requeue_total"), time.Now()
		burst()
		awaitStatus(t, c, pool, count, nil)
		w.settled(m)
		woken := m.Sum(t, "subnetpool_parent_requeue_total") - before
		t.Logf("%s: %d writes for %.0f events in %s", what, written.Load(), woken, time.Since(began))
		if woken < events {
			t.Errorf("%s: only %.0f events have arrived", what, woken)
		}

		return written.Load(), time.Since(began)
	}
	n, took := measure("one after the other", events, func() {
		must(t, inParallel(4, events, func(i int) error {
			return c.Create(t.Context(), newSubnet(w.ns, fmt.Sprintf("s-%d", i), fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255)))
		})())
	})
	if most := int64(took/spacing) + slack; n > most {
		t.Errorf("%d writes in %s, want at most %d", n, took, most)
	}
	var released time.Time
	n, _ = measure("all at once", 0, func() {
		release := proxy.Hold(t, `^WATCH .*/subnets$`)
		must(t, c.DeleteAllOf(t.Context(), &v1alpha1.Subnet{}, client.InNamespace(w.ns)))
		released = time.Now()
		release()
	})
	if most := int64(time.Since(released)/spacing) + slack; n > most {
		t.Errorf("%d writes in %s, want at most %d", n, time.Since(released), most)
	}
}

// settled waits until a manager's queues of Subnets and pools are empty.
func (w *world) settled(m *cluster.Manager) {
	w.t.Helper()
	cluster.Eventually(w.t, "the queues are empty", func() error {
		for _, queue := range []string{"subnet", "PoolStatus"} {
			for _, metric := range []string{"workqueue_depth", "workqueue_unfinished_work_seconds"} {
				if n := m.Sum(w.t, fmt.Sprintf("%s{controller=%q", metric, queue)); n > 0 {
					return fmt.Errorf("%s of %s is %v", metric, queue, n)
				}
			}
		}

		return nil
	})
}
