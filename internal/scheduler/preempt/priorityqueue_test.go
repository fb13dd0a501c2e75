package preempt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// The most important gang is dealt with first, then the one that waits the longest, and each
// of them once.
func TestPriorityQueue(t *testing.T) {
	priorities := map[string]int32{"a": 10, "b": 50, "c": 10, "d": 50}
	q := newPriorityQueue(func(key types.NamespacedName) int32 { return priorities[key.Name] })
	defer q.ShutDown()
	for _, name := range []string{"a", "b", "c", "a", "d", "b"} {
		q.Add(schedulertest.Key(name))
	}
	got := ""
	for q.Len() > 0 {
		key, _ := q.Get()
		got += key.Name
		q.Done(key)
	}
	if got != "bdac" {
		t.Errorf("The order is %s.", got)
	}
}

// Gangs of one priority take turns between namespaces.
func TestPriorityQueueNamespaces(t *testing.T) {
	priorities := map[string]int32{"z9": 50}
	q := newPriorityQueue(func(key types.NamespacedName) int32 { return priorities[key.Name] })
	defer q.ShutDown()
	add := func(names ...string) {
		for _, name := range names {
			q.Add(types.NamespacedName{Namespace: name[:1], Name: name})
		}
	}
	var got []string
	get := func(n int) {
		for range n {
			key, _ := q.Get()
			got = append(got, key.Name)
			q.Done(key)
		}
	}
	add("a1", "a2", "a3", "a4", "a5", "b1", "b2")
	get(3)
	add("c1", "b3", "z9", "c2") // a namespace that comes later has not saved up turns
	get(q.Len())
	if diff := cmp.Diff([]string{"a1", "b1", "a2", "z9", "b2", "c1", "a3", "b3", "c2", "a4", "a5"}, got); diff != "" {
		t.Errorf("The order differs (-want +got):\n%s", diff)
	}
	add("a6", "b4")
	if get(2); got[len(got)-2] != "a6" {
		t.Errorf("Turns of gangs that are gone are remembered: %v", got)
	}
}
