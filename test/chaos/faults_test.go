package chaos_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/cluster/network"
)

// A fault is something that happens to a cluster.
type fault struct {
	name string
	// managers are the flags of those that run.
	managers [][]string
	// survives : the process of the manager is the same before and after, so what it
	// holds can be compared.
	survives bool
	// long : only in the long form.
	long bool
	// do does it as often as it should, and reports how often that was. When it returns the
	// fault is over.
	do func(w *world) int
}

var (
	one = [][]string{nil}
	// pair is two managers of which one leads.
	pair = [][]string{{"--leader-elect"}, {"--leader-elect"}}
	// rivals are two managers that both allocate blocks.
	rivals = [][]string{nil, {"--controllers=subnets", "--webhooks=false"}}
)

var faults = []fault{
	{name: "none", managers: one, survives: true, do: func(w *world) int {
		w.underLoad(100)

		return 0
	}},
	{name: "manager killed, and started again", managers: one, do: repeated(2, func(w *world) {
		w.replace(0)
		w.underLoad(50)
	})},
	{name: "webhook unreachable", managers: one, do: repeated(1, unreachable)},
	{name: "slow API server", managers: one, survives: true, long: true, do: weather(network.Rates{Delay: 400 * time.Millisecond})},
	{name: "connections cut", managers: one, survives: true, do: repeated(3, func(w *world) {
		w.proxy.Cut()
		w.underLoad(30)
	})},
	{name: "answers lost", managers: one, survives: true, long: true, do: weather(network.Rates{Drop: 0.1, Swallow: 0.1})},
	{name: "API server answers 429 and 500", managers: one, survives: true, long: true, do: weather(network.Rates{Busy: 0.05, Broken: 0.1})},
	{name: "all of that, and watches that break", managers: one, survives: true, do: weather(network.Rates{
		Delay: 50 * time.Millisecond, Drop: 0.05, Swallow: 0.05, Busy: 0.05, Broken: 0.05, Watch: 2 * time.Second,
	})},
	{name: "API server and etcd killed", managers: one, survives: true, do: apiserver},
	{name: "two managers, and either killed", managers: rivals, do: repeated(2, func(w *world) {
		w.replace(w.load.draw(2))
		w.underLoad(50)
	})},
	{name: "lease deleted", managers: pair, do: repeated(1, unleased)},
	{name: "lease taken by nobody", managers: pair, long: true, do: repeated(1, stolen(0))},
	{name: "lease taken by nobody, a year ago", managers: pair, long: true, do: repeated(1, stolen(-1))},
	{name: "lease taken by nobody, in a year", managers: pair, long: true, do: repeated(1, stolen(1))},
	{name: "leader paused for longer than its lease", managers: pair, do: repeated(1, paused)},
	{name: "409: somebody wrote a moment before", managers: one, survives: true, long: true, do: weather(network.Rates{Busy: 0.05, Broken: 0.1, Race: 0.3})},
	{name: "409 although nobody wrote", managers: one, survives: true, do: unblamed(weather(network.Rates{Conflict: 0.2}))},
	{name: "429 to every request for a minute", managers: pair, long: true, do: overloaded},
	{name: "watches expired by a compaction", managers: one, survives: true, long: true, do: once(compacted)},
	{name: "etcd out of space", managers: one, survives: true, long: true, do: once(noSpace)},
	{name: "aggregated API down", managers: one, do: once(aggregated)},
	{name: "CRDs deleted and created again", managers: one, survives: true, long: true, do: once(redefined)},
	{name: "CRD of ResourceSlices deleted", managers: one, survives: true, long: true, do: once(withoutSlices)},
	{name: "webhook takes 4.9 s", managers: one, long: true, do: once(slowWebhook(4900 * time.Millisecond))},
	{name: "webhook takes 6 s", managers: one, long: true, do: once(slowWebhook(6 * time.Second))},
	{name: "clock 10 minutes off", managers: one, do: once(skewed)},
	{name: "little memory for a large load", managers: one, long: true, do: once(littleMemory)},
	{name: "half-open partition for a minute", managers: one, long: true, do: once(partitioned)},
	{name: "lease stolen every 5 s for a minute", managers: pair, long: true, do: flapping},
	{name: "node lost with the leader", managers: pair, long: true, do: repeated(1, nodeLost)},
}

// TestFaults does them one after the other to one cluster.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	for _, f := range faults {
		if f.long && *rounds == 1 {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			in := *w
			in.T, in.load.TB = t, t
			defer func() { w.managers, w.flags = in.managers, in.flags }()
			in.endure(f)
			in.end()
		})
	}
}

// repeated does something some times in every round.
func repeated(times int, do func(w *world)) func(w *world) int {
	return func(w *world) int {
		for range times * *rounds {
			do(w)
		}

		return times * *rounds
	}
}

// once does something once, however many rounds there are: it takes long, or has a length.
func once(do func(w *world)) func(w *world) int {
	return func(w *world) int {
		do(w)

		return 1
	}
}

// weather lasts until it has been felt by some requests in every round.
func weather(bad network.Rates) func(w *world) int {
	return func(w *world) int {
		felt := func() int {
			n := 0
			for _, count := range w.proxy.Counts() {
				n += count
			}

			return n
		}
		before := felt()
		w.proxy.Set(bad)
		defer w.proxy.Set(network.Rates{})
		for range *rounds {
			from := felt()
			w.underLoad(100)
			cluster.Eventually(w, "the weather is felt", func() error {
				w.revive()
				if n := felt() - from; n < 50 {
					return fmt.Errorf("by %d requests", n)
				}

				return nil
			})
		}

		return felt() - before
	}
}

// unblamed does what no controller may count as an error of its own: an alert would fire.
func unblamed(do func(w *world) int) func(w *world) int {
	return func(w *world) int {
		failures := func() map[string]float64 {
			all := map[string]float64{}
			for _, name := range []string{
				"controller_runtime_reconcile_errors_total", "eno_reconciliation_errors_total",
				`subnetpool_parent_reconcile_duration_seconds_count{result="error"`,
			} {
				series, err := w.managers[0].Series(name)
				must(w, err)
				for labels, n := range series {
					all[name+" "+labels] = n
				}
			}

			return all
		}
		w.load.rest(true, w.revive)
		defer w.load.rest(false, w.revive)
		before := failures()
		n := do(w)
		if diff := cmp.Diff(before, failures()); diff != "" {
			w.why = fmt.Sprintf("errors were counted: -before, +after:\n%s%s", diff, strings.Join(errorsIn(w.managers[0].Remarks()), "\n"))
			w.Error(w.why)
		}

		return n
	}
}

// errorsIn returns the last errors of a log.
func errorsIn(log string) []string {
	var all []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, `"level":"ERROR"`) {
			all = append(all, strings.TrimSpace(line))
		}
	}

	return all[max(0, len(all)-10):]
}

// unreachable stops all webhooks for a while: objects are rejected, with the reason.
func unreachable(w *world) {
	w.Helper()
	w.managers[0].Kill()
	pg := group(w.load.ns, w.load.name("shut"), "workers")
	err := w.c.Create(w.Context(), pg)
	if err == nil || !strings.Contains(err.Error(), "podgroups.admission.arbor") || !strings.Contains(err.Error(), "failed calling webhook") {
		w.Errorf("without webhooks, a PodGroup got: %v", err)
	}
	// Claims do not go through that door. Nobody may be revived before they have gone on.
	away := w.managers
	w.managers = nil
	w.underLoad(20)
	w.managers = away
	w.launch(0)
	cluster.Eventually(w, "the door is open", func() error {
		w.revive()

		return w.c.Create(w.Context(), pg)
	})
	w.load.note(pg, v2alpha2.PodGroupKind, true, nil)
}

// apiserver kills the API server, with etcd in the same process. arbor up starts it again,
// unless it dies too often in a minute.
func apiserver(w *world) int {
	w.Helper()
	times := min(*rounds, 3)
	for range times {
		kill(w)
		w.underLoad(50)
	}

	return times
}

func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.Lease}}
}

// held waits until the lease is held by an expected holder.
func held(w *world, by func(holder string) bool) string {
	w.Helper()
	holder := ""
	cluster.Eventually(w, "the lease is held", func() error {
		w.revive()
		l := lease()
		if err := w.c.Get(w.Context(), client.ObjectKeyFromObject(l), l); err != nil {
			return err
		}
		if l.Spec.HolderIdentity != nil {
			holder = *l.Spec.HolderIdentity
		}
		if !by(holder) {
			return fmt.Errorf("by %q", holder)
		}

		return nil
	})

	return holder
}

// leader waits until one of the managers leads, and no other.
func (w *world) leader() *cluster.Manager {
	w.Helper()
	var leads []*cluster.Manager
	cluster.Eventually(w, "one leads", func() error {
		w.revive()
		leads = nil
		for _, m := range w.managers {
			n, err := m.Value("leader_election_master_status")
			if err != nil {
				return err
			}
			if n == 1 {
				leads = append(leads, m)
			}
		}
		if len(leads) != 1 {
			return fmt.Errorf("%d of %d do", len(leads), len(w.managers))
		}

		return nil
	})

	return leads[0]
}

// paused stops the leader until another leads, and lets it go on then, in the middle of
// whatever it did. It must not go on for long.
func paused(w *world) {
	w.Helper()
	leads := w.leader()
	was := held(w, func(holder string) bool { return holder != "" })
	leads.Signal(syscall.SIGSTOP)
	held(w, func(holder string) bool { return holder != "" && holder != was })
	w.underLoad(50)
	leads.Signal(syscall.SIGCONT)
	select {
	case <-leads.Done():
	case <-time.After(time.Minute):
		w.Error("a leader that was paused continues as if nothing had happened")
	}
	w.underLoad(50)
}

// unleased deletes the lease. The manager that creates it again leads.
func unleased(w *world) {
	w.Helper()
	w.leader()
	must(w, w.c.Delete(w.Context(), lease()))
	held(w, func(holder string) bool { return holder != "" })
	w.leader()
	w.underLoad(50)
}

// stolen has a lease with a holder that does not exist, and whose clock is some years away.
// Managers go by when they saw it, so that it runs out for all of them.
func stolen(years int) func(w *world) {
	const nobody = "nobody"

	return func(w *world) {
		w.Helper()
		leads := w.leader()
		l := lease()
		must(w, w.c.Get(w.Context(), client.ObjectKeyFromObject(l), l))
		before := l.DeepCopy() // a patch wins every race against whoever leads
		l.Spec.HolderIdentity = new(nobody)
		l.Spec.AcquireTime = new(metav1.NewMicroTime(time.Now().AddDate(years, 0, 0)))
		l.Spec.RenewTime = l.Spec.AcquireTime
		must(w, w.c.Patch(w.Context(), l, client.MergeFrom(before)))
		began := time.Now()
		held(w, func(holder string) bool { return holder != nobody })
		w.Logf("a lease of %d s without a live holder was taken after %.1f s", *l.Spec.LeaseDurationSeconds, time.Since(began).Seconds())
		<-leads.Done()
		w.leader()
		w.underLoad(50)
	}
}
