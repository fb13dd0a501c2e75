package preempt

import (
	"cmp"
	"container/heap"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// newPriorityQueue makes a workqueue that returns the gang of the highest priority first.
// Among gangs of one priority, namespaces take turns, and within a namespace the gang that
// was added first comes first. A gang is in it once.
func newPriorityQueue(priority func(types.NamespacedName) int32) workqueue.TypedDelayingInterface[types.NamespacedName] {
	storage := &ranked{priority: priority, next: map[rankedSource]int{}, current: map[int32]int{}}

	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Queue: storage}),
	})
}

// ranked is the storage of that queue. It is called under the queue's lock.
type ranked struct {
	priority func(types.NamespacedName) int32
	items    rankedItems
	added    int
	// next is the turn that the next gang of a namespace gets, and current the one of the
	// gang that was returned last.
	next    map[rankedSource]int
	current map[int32]int
}

// A rankedSource has gangs of one priority that are returned one per turn.
type rankedSource struct {
	priority  int32
	namespace string
}

type rankedItem struct {
	key      types.NamespacedName
	priority int32
	turn     int
	added    int
}

var _ workqueue.Queue[types.NamespacedName] = &ranked{}

// Touch does nothing: a gang keeps its turn.
func (*ranked) Touch(types.NamespacedName) {}

// Push adds a gang.
func (r *ranked) Push(key types.NamespacedName) {
	r.added++
	item := rankedItem{key: key, priority: r.priority(key), added: r.added}
	source := rankedSource{item.priority, key.Namespace}
	item.turn = max(r.next[source], r.current[item.priority])
	r.next[source] = item.turn + 1
	heap.Push(&r.items, item)
}

// Len returns how many there are.
func (r *ranked) Len() int { return len(r.items) }

// Pop returns the next gang.
func (r *ranked) Pop() types.NamespacedName {
	item := heap.Pop(&r.items).(rankedItem) //nolint:forcetypeassert // Push is the only writer
	r.current[item.priority] = item.turn
	if len(r.items) == 0 { // no gang waits, so no turn has to be remembered
		clear(r.next)
		clear(r.current)
	}

	return item.key
}

type rankedItems []rankedItem

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (r *rankedItems) Len() int { return len(*r) }

func (r *rankedItems) Less(i, j int) bool {
	a, b := (*r)[i], (*r)[j]

	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.turn, b.turn), cmp.Compare(a.added, b.added)) < 0
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
