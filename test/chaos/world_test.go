package chaos_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/cluster/network"
	"github.com/arbor-control/arbor/test/invariant"
)

// A world is a cluster with managers and a load.
type world struct {
	*testing.T

	c     client.Client
	proxy *network.Proxy
	// kubeconfig is the flag of managers that go by the proxy, with the chart's permissions.
	kubeconfig string
	load       *load
	flags      [][]string
	managers   []*cluster.Manager
	// exits is how many managers have ended by themselves.
	exits int
	// why is what a fault has found wrong, for the table.
	why string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	proxy := server.NewProxy(t, "", *seed)
	kubeconfig, err := server.Through(t.Context(), proxy.Kubeconfig)
	must(t, err)
	w := &world{T: t, c: server.Client(t, nil), proxy: proxy, kubeconfig: kubeconfig}
	t.Cleanup(w.end)
	w.start(nil)
	w.load = newLoad(t, w.c)
	w.load.furnish()
	w.load.warm()

	return w
}

// start ends the managers that there are, and starts other ones, each with its own flags.
func (w *world) start(flags ...[]string) {
	w.Helper()
	w.end()
	w.flags, w.managers = flags, make([]*cluster.Manager, len(flags))
	for i := range flags {
		w.launch(i)
	}
	for i := range w.managers {
		w.await(i)
	}
}

// await waits until a manager is ready. One that finds its port taken, by another program on this
// machine, ends, and is started again.
func (w *world) await(i int) {
	w.Helper()
	cluster.Eventually(w, "the manager is ready", func() error {
		w.revive()

		return w.managers[i].Await()
	})
}

func (w *world) launch(i int) {
	w.Helper()
	w.managers[i] = server.LaunchManager(w.T, append([]string{w.kubeconfig, "--local-synthesizers", "--synthesis-timeout=5s", "--restore-grace=10s"}, w.flags[i]...)...)
	w.managers[i].MayBeRefused() // an API server that was killed denies every request until it has loaded the roles
}

func (w *world) end() {
	for _, m := range w.managers {
		m.Stop()
	}
	w.managers = nil
}

// revive starts those that have ended, as a kubelet would.
func (w *world) revive() {
	w.Helper()
	for i, m := range w.managers {
		if ended(m) {
			w.exits++
			w.launch(i)
		}
	}
}

func ended(m *cluster.Manager) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// replace kills a manager, and starts it again.
func (w *world) replace(i int) {
	w.Helper()
	w.managers[i].Kill()
	w.launch(i)
	w.await(i)
}

// underLoad waits until the cluster has acknowledged some more writes.
func (w *world) underLoad(writes int) {
	w.Helper()
	from := w.load.progress()
	cluster.Eventually(w, "the load gets on", func() error {
		w.revive()
		if n := w.load.progress() - from; n < writes {
			return fmt.Errorf("%d of %d writes were acknowledged", n, writes)
		}

		return nil
	})
}

// settle waits until everything is as it must be, and returns what is there. If it never
// is, the losses are in the report.
func (w *world) settle() (invariant.Snapshot, error) {
	w.Helper()
	var last []invariant.Finding
	var s invariant.Snapshot
	deadline := time.Now().Add(2 * time.Minute)
	err := errors.New("not looked yet")
	for tick := time.NewTicker(100 * time.Millisecond); err != nil; <-tick.C {
		w.revive()
		if s, err = invariant.Take(w.Context(), w.c, w.load.delivered(), client.InNamespace(w.load.ns)); err == nil {
			s.Objects = slices.DeleteFunc(s.Objects, w.load.isForeign)
			last = invariant.Check(s, w.load.ledger)
			err = invariant.Error(last)
		}
		if err != nil && (time.Now().After(deadline) || w.load.ledger.History.Broken()) {
			return s, &unsettled{lost: invariant.Lost(last), error: err}
		}
	}
	w.load.forget(s)

	return s, nil
}

type unsettled struct {
	error

	lost int
}

// A level is what a manager holds.
type level struct{ goroutines, files, watches int }

// measure reads the level of the only manager.
func (w *world) measure() (level, error) {
	m := w.managers[0]
	goroutines, err := m.Value("go_goroutines")
	files, err2 := m.Value("process_open_fds")

	return level{int(goroutines), int(files), w.proxy.Watches()}, errors.Join(err, err2)
}

// Tolerances of levels: goroutines of requests that end, and of the metrics that are
// asked for. Watches have none.
const (
	moreGoroutines = 15
	moreFiles      = 10
)

// rest measures a manager that has nothing to do. A watch that is just being opened
// again would be missed.
func (w *world) rest() level {
	w.Helper()
	var last level
	cluster.Eventually(w, "watches neither come nor go", func() error {
		now, err := w.measure()
		before := last.watches
		last = now
		if err != nil || now.watches != before {
			return fmt.Errorf("%d watches, before %d: %w", now.watches, before, err)
		}

		return nil
	})

	return last
}

// flat waits until a manager holds no more than before.
func (w *world) flat(before level) level {
	w.Helper()
	var after level
	cluster.Eventually(w, "nothing has leaked", func() error {
		var err error
		if after, err = w.measure(); err != nil {
			return err
		}
		if after.goroutines > before.goroutines+moreGoroutines || after.files > before.files+moreFiles || after.watches != before.watches {
			return fmt.Errorf("before: %+v, now: %+v", before, after)
		}

		return nil
	})

	return after
}

// endure does something to a cluster under load, some times, and checks everything.
func (w *world) endure(f fault) {
	w.Helper()
	w.start(f.managers...)
	r := row{fault: f.name}
	if f.survives {
		// The same load without the fault is what is compared with.
		w.load.start()
		w.underLoad(100)
		w.load.end(w.revive)
		if _, err := w.settle(); err != nil {
			w.Fatal(err)
		}
		r.before = w.rest()
	}
	acked, doubts := w.load.acked, w.load.doubts
	w.load.start()
	w.underLoad(50)
	r.count = f.do(w)
	w.load.end(w.revive)
	began := time.Now()
	s, err := w.settle()
	r.settled = time.Since(began)
	w.Log(w.load.tally())
	r.acked, r.unsure = w.load.acked-acked, w.load.doubts-doubts
	r.objects = len(s.Inventory.Claims) + len(s.Inventory.PoolClaims) + len(s.Inventory.Pools) + len(s.Inventory.Subnets) + len(s.PodGroups) + len(s.Compositions) + len(s.Slices) + len(s.Objects)
	if failure, ok := errors.AsType[*unsettled](err); ok {
		r.lost = failure.lost
	}
	defer func() {
		r.failed, r.why = w.Failed(), cmp.Or(r.why, w.why)
		report = append(report, r)
	}()
	if err != nil {
		r.why = err.Error()
		w.load.ledger.History.Forget()
		w.Fatalf("after %s: %v", f.name, err)
	}
	if f.survives {
		r.after = w.flat(r.before)
	}
}
