package chaos_test

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// notBy accepts every holder of a lease but the named one.
func notBy(name string) func(holder string) bool {
	return func(holder string) bool { return holder != "" && holder != name }
}

// partitioned drops all packets of one of two managers for a minute, without a sign: the
// connections that it has are dead for good. First it leads, then it waits to.
func partitioned(w *world) {
	w.Helper()
	relay := server.NewRelay(w)
	behind, err := server.Behind(w.Context(), relay)
	must(w, err)
	w.start([]string{behind, "--leader-elect"})
	cutOff := w.leader()
	was := held(w, notBy(""))
	w.flags, w.managers = append(w.flags, []string{"--leader-elect"}), append(w.managers, nil)
	w.launch(1)
	w.await(1)

	relay.Partition()
	began := time.Now()
	held(w, notBy(was))
	w.Logf("the other replica leads after %s, and binds a claim after %s", time.Since(began).Round(100*time.Millisecond), w.binds().Round(10*time.Millisecond))
	select {
	case <-cutOff.Done():
		w.Logf("the leader without a network has ended after %s", time.Since(began).Round(100*time.Millisecond))
	case <-time.After(outage):
		w.Error("a leader without a network goes on as if it led")
	}
	w.lasts(outage - time.Since(began))
	relay.Heal()
	w.await(0)
	w.leader()
	w.underLoad(50)

	// Now it is the one that waits. What it watches is dead, and it must notice before it leads.
	relay.Partition()
	w.lasts(outage)
	relay.Heal()
	w.managers[1].Kill()
	away := w.managers[1]
	w.managers, w.flags = w.managers[:1], w.flags[:1]
	began = time.Now()
	w.leader()
	w.Logf("after the partition it leads after %s, and binds a claim after %s", time.Since(began).Round(100*time.Millisecond), w.binds().Round(10*time.Millisecond))
	w.underLoad(50)
	w.managers, w.flags = append(w.managers, away), append(w.flags, []string{"--leader-elect"})
	w.launch(1)
}

// flapping takes the lease from the leader for three seconds, five seconds after it has it, for a
// minute. Each time a composition was created a moment before: it is synthesized once, whichever
// replica gets the lease next.
func flapping(w *world) int {
	w.Helper()
	const thief = "thief"
	w.leader()
	watches := w.watches()
	times := 0
	for over := time.Now().Add(outage); time.Now().Before(over); times++ {
		held(w, func(holder string) bool { return holder != "" && holder != thief })
		w.lasts(5 * time.Second)
		w.load.add(fmt.Sprintf("%s-%d", alone, times), alone)
		l := lease()
		must(w, w.c.Get(w.Context(), client.ObjectKeyFromObject(l), l))
		before := l.DeepCopy()
		l.Spec.HolderIdentity, l.Spec.RenewTime = new(thief), new(metav1.NowMicro())
		l.Spec.LeaseDurationSeconds = new(int32(3)) // longer than the time until the leader tries to renew it
		must(w, w.c.Patch(w.Context(), l, client.MergeFrom(before)))
	}
	held(w, func(holder string) bool { return holder != "" && holder != thief })
	w.leader()
	for i := range times {
		name := fmt.Sprintf("%s-%d", alone, i)
		c := w.load.awaitReady(name, w.revive)
		if st := c.Status; st.PreviousSynthesis != nil || len(st.History) > 0 {
			w.Errorf("composition %s was synthesized more than once: %+v, %+v", name, st.PreviousSynthesis, st.History)
		}
		w.load.withdraw(name, w.revive)
	}
	w.underLoad(50)
	for i := range w.managers {
		w.await(i)
	}
	w.Logf("the lease was taken %d times; managers have ended %d times, and have %d watches, %d before", times, w.exits, w.watches(), watches)
	cluster.Eventually(w, "no watch has leaked", func() error {
		w.revive()
		if n := w.proxy.Watches(); n != watches {
			return fmt.Errorf("there are %d, before there were %d", n, watches)
		}

		return nil
	})

	return times
}

// watches waits until their number does not change, and returns it.
func (w *world) watches() int {
	w.Helper()
	last, same := -1, 0
	cluster.Eventually(w, "the number of watches stays", func() error {
		if n := w.proxy.Watches(); n != last {
			last, same = n, 0
		}
		if same++; same < 25 { // half a second
			return fmt.Errorf("there are %d", last)
		}

		return nil
	})

	return last
}

// nodeLost ends the leader and all programs that it runs at once, and does not start it again
// before the other replica leads: its lease has to run out.
func nodeLost(w *world) {
	w.Helper()
	leads := w.leader()
	was := held(w, notBy(""))
	i := slices.Index(w.managers, leads)
	must(w, syscall.Kill(-leads.PID(), syscall.SIGKILL))
	<-leads.Done()
	all, flags := w.managers, w.flags
	w.managers, w.flags = all[1-i:2-i], flags[1-i:2-i]
	began := time.Now()
	held(w, notBy(was))
	w.Logf("the other replica leads after %s, and binds a claim after %s", time.Since(began).Round(100*time.Millisecond), w.binds().Round(10*time.Millisecond))
	w.underLoad(50)
	other := w.managers[0]
	w.managers, w.flags = all, flags
	w.managers[1-i] = other
	w.launch(i)
	w.await(i)
	w.underLoad(50)
}
