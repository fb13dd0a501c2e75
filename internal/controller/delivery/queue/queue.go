package queue

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

const (
	// queueName is the name of the queue in metrics.
	queueName = "delivery-resources"

	backoffBase = 100 * time.Millisecond
	backoffMax  = time.Minute
)

// New returns the queue of a number of workers, in the order of a fairQueue.
func New(workers int) workqueue.TypedRateLimitingInterface[Key] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[Key](backoffBase, backoffMax)
	order := &fairQueue{
		failed: func(k Key) bool { return limiter.NumRequeues(k) > 0 }, workers: workers, queued: map[string]int{}, busy: map[string]int{},
	}

	return &resourceQueue{order: order, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[Key]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
			Name:  queueName,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Name: queueName, Queue: order}),
		}),
	})}
}

// A resourceQueue passes to the fairQueue which resources workers have done: a work queue does not.
type resourceQueue struct {
	workqueue.TypedRateLimitingInterface[Key]

	order *fairQueue
}

// Done implements workqueue.TypedInterface.
func (q *resourceQueue) Done(k Key) {
	q.order.done(k)
	q.TypedRateLimitingInterface.Done(k)
}

// A fairQueue alternates between resources that failed last time and all that did not, among each
// of these between namespaces, and in a namespace between compositions. So neither the size nor the
// failures of one composition delay another one, and retries still make progress under load.
//
// While resources of other namespaces wait, a namespace gets no more workers than its share: one
// whose requests are slow, for example because of a webhook, would otherwise occupy all workers,
// since the requests of the rest end sooner. While nothing else waits, it gets all of them.
type fairQueue struct {
	// failed reports whether a resource failed last time.
	failed  func(Key) bool
	workers int

	// mu is for done, which is called without the lock of the work queue.
	mu                sync.Mutex
	attempts, retries rotation
	// retryNext is true if a retry is next.
	retryNext bool
	// queued counts the resources of each namespace that wait, and busy those that workers
	// have. Neither has zeros.
	queued, busy map[string]int
}

// Touch is called for a resource that is queued already. It keeps its place.
func (*fairQueue) Touch(Key) {}

// Push adds a resource.
func (q *fairQueue) Push(k Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued[k.Composition.Namespace]++
	if q.failed(k) {
		q.retries.push(k)
	} else {
		q.attempts.push(k)
	}
}

// Len is how many resources wait.
func (q *fairQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.attempts.size + q.retries.size
}

// Pop returns the next resource. There must be one.
func (q *fairQueue) Pop() Key {
	q.mu.Lock()
	defer q.mu.Unlock()
	share := q.share()
	mayHave := func(namespace string) bool { return q.busy[namespace] < share }
	first, second := &q.attempts, &q.retries
	if q.retryNext || first.size == 0 {
		first, second = second, first
	}
	if at := first.find(mayHave); first.size == 0 || at < 0 && second.find(mayHave) >= 0 {
		first = second
	}
	q.retryNext = first == &q.attempts
	k := first.pop(max(first.find(mayHave), 0)) // if all have their share, a worker that is idle helps none
	count(q.queued, k, -1)
	count(q.busy, k, 1)

	return k
}

// done notes that a worker has done a resource.
func (q *fairQueue) done(k Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	count(q.busy, k, -1)
}

// share is how many workers a namespace gets while other namespaces wait, too.
func (q *fairQueue) share() int {
	active := len(q.queued)
	for namespace := range q.busy { // there are not more of them than workers
		if q.queued[namespace] == 0 {
			active++
		}
	}

	return max(q.workers/max(active, 1), 1)
}

// count adds to the number of the namespace of a resource.
func count(numbers map[string]int, k Key, by int) {
	namespace := k.Composition.Namespace
	if numbers[namespace] += by; numbers[namespace] <= 0 {
		delete(numbers, namespace)
	}
}

// A rotation has lines of resources, one for each namespace, which take turns.
type rotation struct {
	// turns are the namespaces that have resources here, in the order of their turns.
	turns []string
	lines map[string]*line
	size  int
}

func (r *rotation) push(k Key) {
	if r.lines == nil {
		r.lines = map[string]*line{}
	}
	namespace := k.Composition.Namespace
	if r.lines[namespace] == nil {
		r.lines[namespace] = &line{queues: map[types.NamespacedName][]Key{}}
		r.turns = append(r.turns, namespace)
	}
	r.lines[namespace].push(k)
	r.size++
}

// find is the turn of the first namespace that meets a condition, -1 if none does.
func (r *rotation) find(met func(namespace string) bool) int { return slices.IndexFunc(r.turns, met) }

// pop returns the next resource of the namespace at a turn. There must be one. Those before it
// keep their turns.
func (r *rotation) pop(turn int) Key {
	namespace := r.turns[turn]
	copy(r.turns[1:turn+1], r.turns[:turn])
	r.turns = r.turns[1:]
	r.size--
	k := r.lines[namespace].pop()
	if len(r.lines[namespace].turns) > 0 {
		r.turns = append(r.turns, namespace)
	} else {
		delete(r.lines, namespace)
	}

	return k
}

// A line has the resources of a namespace in queues, one for each composition, which take turns.
type line struct {
	turns  []types.NamespacedName
	queues map[types.NamespacedName][]Key
}

func (l *line) push(k Key) {
	queue, queued := l.queues[k.Composition]
	if !queued {
		l.turns = append(l.turns, k.Composition)
	}
	l.queues[k.Composition] = append(queue, k)
}

// pop returns the first resource of the composition whose turn it is. There must be one.
func (l *line) pop() Key {
	composition := l.turns[0]
	l.turns = l.turns[1:]
	queue := l.queues[composition]
	k := queue[0]
	queue[0] = Key{} // the array behind the slice keeps nothing
	if len(queue) > 1 {
		l.queues[composition] = queue[1:]
		l.turns = append(l.turns, composition)
	} else {
		delete(l.queues, composition)
	}

	return k
}
