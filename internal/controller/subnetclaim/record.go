package subnetclaim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	decide "github.com/arbor-control/arbor/internal/decide/claim"
)

const (
	// recordInterval is the time between two records: at most 20 in a second.
	recordInterval = 50 * time.Millisecond
	// recordPause is the time between two records while claims wait for blocks, and
	// after an error.
	recordPause = time.Second
	// recordRetry is the time after which rejected records are written again.
	recordRetry = 5 * time.Minute
)

// records writes on each bound claim which block it has, so that a backup contains it.
// It is not urgent, so the writes are made in the background and make way for claims
// that wait for blocks.
type records struct {
	write func(context.Context, types.NamespacedName) error
	now   func() time.Time
	// unrecorded is the number of claims without a record.
	unrecorded prometheus.Gauge
	// wake has an element if a claim may be wanted.
	wake chan struct{}

	mu sync.Mutex
	// wanted are the claims without a record, and rejected those whose record the API
	// server has rejected.
	wanted, rejected map[types.NamespacedName]struct{}
	// slow is until when the pauses are long.
	slow time.Time
}

func newRecords(c client.Client, unrecorded prometheus.Gauge) *records {
	return &records{
		unrecorded: unrecorded,
		now:        time.Now, wake: make(chan struct{}, 1), wanted: map[types.NamespacedName]struct{}{}, rejected: map[types.NamespacedName]struct{}{},
		write: func(ctx context.Context, key types.NamespacedName) error { return record(ctx, c, key) },
	}
}

// want adds a bound claim, unless it has its record.
func (q *records) want(c *v1alpha1.SubnetClaim) {
	if c.Annotations[v1alpha1.BlockAnnotation] == decide.Record(c) {
		return
	}
	q.add(client.ObjectKeyFromObject(c))
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *records) add(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wanted[key] = struct{}{}
	delete(q.rejected, key)
	q.count()
}

// count sets the metric. The caller has the lock.
func (q *records) count() { q.unrecorded.Set(float64(len(q.wanted) + len(q.rejected))) }

// reject notes that the API server has rejected the record of a claim.
func (q *records) reject(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rejected[key] = struct{}{}
	q.count()
}

// retry has rejected records written again: the policy may have changed, and the claim may
// be gone.
func (q *records) retry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.Copy(q.wanted, q.rejected)
	clear(q.rejected)
}

// pause makes the writes slow for a short time.
func (q *records) pause() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slow = q.now().Add(recordPause)
}

// interval returns how long to wait before the next write.
func (q *records) interval() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.now().Before(q.slow) {
		return recordPause
	}

	return recordInterval
}

// next returns a claim that is wanted.
func (q *records) next() (types.NamespacedName, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.wanted {
		return key, true
	}

	return types.NamespacedName{}, false
}

func (q *records) done(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.wanted, key)
	q.count()
}

// Start writes records until the context ends.
func (q *records) Start(ctx context.Context) error {
	again := time.NewTicker(recordRetry)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			q.retry()
		case <-q.wake:
		}
		q.drain(ctx)
	}
}

// drain writes records until no claim is wanted.
func (q *records) drain(ctx context.Context) {
	for key, ok := q.next(); ok; key, ok = q.next() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(q.interval()):
		}
		// Removed first: a claim that changes during the write is added again.
		q.done(key)
		if err := q.write(ctx, key); err != nil {
			q.failed(ctx, key, err)
		}
	}
}

// failed has a record written again. One that the API server rejects is written again much
// later, or after an event of the claim.
func (q *records) failed(ctx context.Context, key types.NamespacedName, err error) {
	log := logr.FromContextOrDiscard(ctx)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		log.Info("The API server rejects the record of a block: a backup must contain the Subnet of this claim", "claim", key.String(), "error", err.Error())
		q.reject(key)

		return
	}
	log.V(1).Info("Cannot record a block; trying again", "claim", key.String(), "error", err.Error())
	q.add(key)
	q.pause()
}

// record writes the record of a claim. It changes only the annotation, of the claim with
// the UID that was read.
func record(ctx context.Context, w client.Client, key types.NamespacedName) error {
	c := &v1alpha1.SubnetClaim{}
	if err := w.Get(ctx, key, c); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot read SubnetClaim %s: %w", key, err))
	}
	block := decide.Record(c)
	if c.DeletionTimestamp != nil || c.Status.Phase != v1alpha1.ClaimBound || c.Annotations[v1alpha1.BlockAnnotation] == block {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.UID, "annotations": map[string]string{v1alpha1.BlockAnnotation: block},
	}})
	if err != nil {
		return fmt.Errorf("cannot encode a patch: %w", err)
	}
	err = w.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cannot record the block of SubnetClaim %s: %w", key, err)
	}

	return nil // if it is not written, the claim is gone or was replaced
}
