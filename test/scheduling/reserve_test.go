package scheduling_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nodeByNode has the pods of one node end one by one within a second, those of the
// next one in the second after the next, and so on.
func nodeByNode(node, nth int) time.Duration {
	return time.Duration(node)*1500*time.Millisecond + time.Duration(nth%8+1)*100*time.Millisecond
}

// Victims take seconds to terminate, node by node, and a ReplicaSet creates them
// again at once. The room stays reserved until the gang has it: exactly the pods
// are evicted whose room it uses, and none of those that replace them.
func TestSlowTermination(t *testing.T) {
	t.Parallel()
	type gangs map[string]int // pods of 8 GPUs
	cases := map[string]struct {
		reason  string
		nodes   int
		gangs   gangs
		byGroup bool
		kill    bool
	}{
		"OneNode": {
			reason: "The gang has one pod, so there is no part of it that finds room first.",
			nodes:  2, gangs: gangs{"high": 1},
		},
		"TwoNodes": {
			reason: "The gang is tried as soon as the first node is empty, which must not lose that node.",
			nodes:  2, gangs: gangs{"high": 2},
		},
		"PriorityOfTheGroup": {
			reason: "The pods of the gang have priority 0: the room is reserved with the priority of the PodGroup.",
			nodes:  2, gangs: gangs{"high": 2}, byGroup: true,
		},
		"TwoGangs": {
			reason: "Each gets the room that was made for it, however the other one is doing.",
			nodes:  4, gangs: gangs{"high-a": 2, "high-b": 2},
		},
		"TwoOfFiveNodes": {
			reason: "Pods of the other three nodes stay.",
			nodes:  5, gangs: gangs{"high": 2},
		},
		"FiveNodes": {
			reason: "The whole cluster is emptied, over seven seconds.",
			nodes:  5, gangs: gangs{"high": 5},
		},
		"SchedulerKilled": {
			reason: "The next scheduler takes the reservation over.",
			nodes:  2, gangs: gangs{"high": 2}, kill: true,
		},
		"SchedulerKilledPriorityOfTheGroup": {
			reason: "The next scheduler takes the reservation over, with the priority of the PodGroup.",
			nodes:  2, gangs: gangs{"high": 2}, byGroup: true, kill: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, tc.nodes, 8)
			if tc.kill {
				l.start()
			}
			low, high := l.classes()
			k := l.keep(nodeByNode)
			l.replicaSet(tc.nodes*8, low, lingering)
			l.runs("", tc.nodes*8)

			evicted := 0
			for gang, size := range tc.gangs {
				evicted += size * 8
				spec := simple(size)
				use := high
				if tc.byGroup {
					spec.PriorityClassName = l.ns + "-high"
					use = func(*corev1.Pod) {}
				}
				l.group(gang, spec)
				l.pods(gang, "", size, 8, use)
			}
			if tc.kill {
				k.endsSome()
				l.scheduler.Kill()
				l.start()
			}
			k.evictsFor(evicted, tc.gangs)
			k.within(soon, "the pods that were created again wait", func() error {
				if all, bound := len(l.members("")), l.bound(""); all != tc.nodes*8 || bound != tc.nodes*8-evicted {
					return fmt.Errorf("there are %d, of which %d are bound", all, bound)
				}

				return nil
			})
		})
	}
}

// endsSome waits until some pods that were evicted are gone, while other pods terminate.
func (k *keeper) endsSome() {
	k.Helper()
	k.within(soon, "some pods have ended", func() error {
		gone := k.stories(func(s *story) bool { return s.gone })
		if len(gone) < 4 {
			return fmt.Errorf("%d have", len(gone))
		}
		if len(gone) == len(k.evicted()) {
			k.Log("all pods have ended: the machine is slow, and the scheduler is killed late")
		}

		return nil
	})
}
