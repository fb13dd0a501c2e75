package kube

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Backoff of the queue that keeps pool status: gentle at first, never long, and
// not more than a bucket of retries at once over all pools.
const (
	backoffBase   = 50 * time.Millisecond
	backoffMax    = 30 * time.Second
	backoffFactor = 1.5

	bucketSize = 100
	bucketRate = 10 // per second
)

// NewLimiter returns the rate limiter of the pool status queue. client-go's own
// exponential limiter doubles; this one grows by half.
func NewLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		newGradual(backoffMax),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(bucketRate, bucketSize)},
	)
}

// longestRetry is the longest time until an error is retried. A user who raises a quota
// does not wait longer.
const longestRetry = 2 * time.Minute

// NewRetryLimiter returns a rate limiter like the default of controller-runtime, whose
// delays end at longestRetry and not at 1,000 seconds.
func NewRetryLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	const first, perSecond, burst = 5 * time.Millisecond, 10, 100

	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longestRetry),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(perSecond, burst)},
	)
}

// gradual grows an item's delay with its failures in a row.
type gradual struct {
	longest  time.Duration
	mu       sync.Mutex
	failures map[reconcile.Request]int
}

func newGradual(longest time.Duration) *gradual {
	return &gradual{longest: longest, failures: map[reconcile.Request]int{}}
}

// When counts a failure and returns the delay after it.
func (g *gradual) When(item reconcile.Request) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.failures[item]
	g.failures[item]++

	// Compared before it is a Duration, which could not hold it for long.
	return time.Duration(min(float64(backoffBase)*math.Pow(backoffFactor, float64(n)), float64(g.longest)))
}

// Forget ends a row of failures.
func (g *gradual) Forget(item reconcile.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.failures, item)
}

// NumRequeues is the length of the row.
func (g *gradual) NumRequeues(item reconcile.Request) int {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.failures[item]
}
