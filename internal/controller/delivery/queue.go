package delivery

import (
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

// newResourceQueue returns the queue of the workers, in the order of a fairQueue.
func newResourceQueue() workqueue.TypedRateLimitingInterface[key] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](backoffBase, backoffMax)
	order := &fairQueue{failed: func(k key) bool { return limiter.NumRequeues(k) > 0 }}

	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[key]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{
			Name:  queueName,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Name: queueName, Queue: order}),
		}),
	})
}

// A fairQueue alternates between resources that failed last time and all others, and among
// each of these between compositions. So neither the size nor the failures of one
// composition delay another one, and retries still make progress under load. It is not
// safe for concurrent use: the work queue has a lock.
type fairQueue struct {
	// failed reports whether a resource failed last time.
	failed func(key) bool

	attempts, retries rotation
	// retryNext is true if a retry is next.
	retryNext bool
}

// Touch is called for a resource that is queued already. It keeps its place.
func (*fairQueue) Touch(key) {}

func (q *fairQueue) Push(k key) {
	if q.failed(k) {
		q.retries.push(k)
	} else {
		q.attempts.push(k)
	}
}

func (q *fairQueue) Len() int { return q.attempts.size + q.retries.size }

func (q *fairQueue) Pop() key {
	retry := q.attempts.size == 0 || q.retryNext && q.retries.size > 0
	q.retryNext = !retry
	if retry {
		return q.retries.pop()
	}

	return q.attempts.pop()
}

// A rotation has queues of resources, one for each composition, which take turns.
type rotation struct {
	// next are the compositions that have resources here, in the order of their turns.
	next   []types.NamespacedName
	queues map[types.NamespacedName][]key
	size   int
}

func (r *rotation) push(k key) {
	if r.queues == nil {
		r.queues = map[types.NamespacedName][]key{}
	}
	queue, queued := r.queues[k.composition]
	if !queued {
		r.next = append(r.next, k.composition)
	}
	r.queues[k.composition] = append(queue, k)
	r.size++
}

// pop returns the first resource of the composition whose turn it is. There must be one.
func (r *rotation) pop() key {
	composition := r.next[0]
	r.next = r.next[1:]
	queue := r.queues[composition]
	k := queue[0]
	queue[0] = key{} // the array behind the slice keeps nothing
	r.size--
	if len(queue) > 1 {
		r.queues[composition] = queue[1:]
		r.next = append(r.next, composition)
	} else {
		delete(r.queues, composition)
	}

	return k
}
