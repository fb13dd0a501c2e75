package scheduler

import (
	"container/heap"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// newPriorityQueue makes a workqueue that hands out the gang of the highest priority
// first, and of several the one that was added first. A gang is in it once.
func newPriorityQueue(priority func(types.NamespacedName) int32) workqueue.TypedDelayingInterface[types.NamespacedName] {
	storage := &ranked{priority: priority}

	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Queue: storage}),
	})
}

// ranked is the storage of that queue. It is called under the queue's lock.
type ranked struct {
	priority func(types.NamespacedName) int32
	items    rankedItems
	added    int
}

type rankedItem struct {
	key      types.NamespacedName
	priority int32
	added    int
}

var _ workqueue.Queue[types.NamespacedName] = &ranked{}

// Touch does nothing: a gang keeps its turn.
func (*ranked) Touch(types.NamespacedName) {}

// Push adds a gang.
func (r *ranked) Push(key types.NamespacedName) {
	r.added++
	heap.Push(&r.items, rankedItem{key: key, priority: r.priority(key), added: r.added})
}

// Len returns how many there are.
func (r *ranked) Len() int { return len(r.items) }

// Pop returns the next gang.
func (r *ranked) Pop() types.NamespacedName {
	return heap.Pop(&r.items).(rankedItem).key //nolint:forcetypeassert // Push is the only writer
}

type rankedItems []rankedItem

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (r *rankedItems) Len() int { return len(*r) }

func (r *rankedItems) Less(i, j int) bool {
	a, b := (*r)[i], (*r)[j]
	if a.priority != b.priority {
		return a.priority > b.priority
	}

	return a.added < b.added
}

func (r *rankedItems) Swap(i, j int) { (*r)[i], (*r)[j] = (*r)[j], (*r)[i] }

func (r *rankedItems) Push(x any) {
	*r = append(*r, x.(rankedItem)) //nolint:forcetypeassert // heap.Push has one caller
}

func (r *rankedItems) Pop() any {
	last := len(*r) - 1
	item := (*r)[last]
	*r = (*r)[:last]

	return item
}
