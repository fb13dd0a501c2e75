package subnetclaim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

const (
	// recordInterval is the time between two records: at most 20 in a second.
	recordInterval = 50 * time.Millisecond
	// recordPause is the time between two records while claims wait for blocks, and
	// after an error.
	recordPause = time.Second
	// recordRetry is the time between two attempts to write rejected records.
	recordRetry = 5 * time.Minute
)

// records writes on each bound claim which block it has, so that a backup contains it.
// It is not urgent, so the writes are made in the background and make way for claims
// that wait for blocks.
type records struct {
	write func(context.Context, types.NamespacedName) error
	// missing reports, from the cache, whether a claim lacks its record.
	missing func(context.Context, types.NamespacedName) bool
	now     func() time.Time
	// unrecorded is the number of claims without a record.
	unrecorded prometheus.Gauge
	// wake has an element if a claim may be wanted.
	wake chan struct{}

	mu sync.Mutex
	// wanted are the claims without a record, and rejected those whose record the API
	// server has rejected.
	wanted, rejected map[types.NamespacedName]struct{}
	// again are rejected claims whose record is written again, after all that are wanted. The
	// value is true for the probe of a namespace: if its record is accepted, the other
	// rejected claims of the namespace follow.
	again map[types.NamespacedName]bool
	// logged means that a rejection was logged since the last retry.
	logged bool
	// slow is until when the pauses are long.
	slow time.Time
}

func newRecords(c client.Client, unrecorded prometheus.Gauge) *records {
	return &records{
		unrecorded: unrecorded, now: time.Now, wake: make(chan struct{}, 1),
		wanted: map[types.NamespacedName]struct{}{}, rejected: map[types.NamespacedName]struct{}{}, again: map[types.NamespacedName]bool{},
		write:   func(ctx context.Context, key types.NamespacedName) error { return record(ctx, c, key) },
		missing: func(ctx context.Context, key types.NamespacedName) bool { return isMissing(ctx, c, key) },
	}
}

// want adds a bound claim, unless it has its record.
func (q *records) want(c *v1alpha1.SubnetClaim) {
	if c.Annotations[v1alpha1.BlockAnnotation] == ipamrules.ClaimRecord(c) {
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
	delete(q.again, key)
	q.count()
}

// count sets the metric. The caller has the lock.
func (q *records) count() { q.unrecorded.Set(float64(len(q.wanted) + len(q.again) + len(q.rejected))) }

// reject notes that the API server has rejected the record of a claim. It returns how many
// are rejected, and whether this is the first one since the last retry.
func (q *records) reject(key types.NamespacedName) (rejected int, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rejected[key] = struct{}{}
	q.count()
	first, q.logged = !q.logged, true

	return len(q.rejected), first
}

// retry has one rejected record of each namespace written again, because the policy may have
// changed. Claims that are gone, or have their record, are removed.
func (q *records) retry(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.logged = false
	probed := map[string]bool{}
	for key, probe := range q.again {
		probed[key.Namespace] = probed[key.Namespace] || probe
	}
	for key := range q.rejected {
		switch {
		case !q.missing(ctx, key):
			delete(q.rejected, key)
		case !probed[key.Namespace]:
			probed[key.Namespace] = true
			delete(q.rejected, key)
			q.again[key] = true
		}
	}
	q.count()
}

// accepted has the other rejected records of a namespace written again.
func (q *records) accepted(namespace string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.rejected {
		if key.Namespace == namespace {
			delete(q.rejected, key)
			q.again[key] = false
		}
	}
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

// next returns a claim whose record must be written: one that is wanted, or else one that is
// written again.
func (q *records) next() (types.NamespacedName, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.wanted {
		return key, true
	}
	for key := range q.again {
		return key, true
	}

	return types.NamespacedName{}, false
}

// done removes a claim, and reports whether it is the probe of its namespace.
func (q *records) done(key types.NamespacedName) (probe bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	probe = q.again[key]
	delete(q.wanted, key)
	delete(q.again, key)
	q.count()

	return probe
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
			q.retry(ctx)
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
		probe := q.done(key)
		if err := q.write(ctx, key); err != nil {
			q.failed(ctx, key, err)
		} else if probe {
			q.accepted(key.Namespace)
		}
	}
}

// failed has a record written again. One that the API server rejects is written again much
// later, or after an event of the claim. Only the first rejection is logged until the next
// retry: a policy that rejects one record rejects them all.
func (q *records) failed(ctx context.Context, key types.NamespacedName, err error) {
	log := logr.FromContextOrDiscard(ctx)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		if rejected, first := q.reject(key); first {
			log.Info("The API server rejects the records of blocks: a backup must contain the Subnets of these claims",
				"claim", key.String(), "rejected", rejected, "error", err.Error())
		}

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
	if !lacksRecord(c) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.UID, "annotations": map[string]string{v1alpha1.BlockAnnotation: ipamrules.ClaimRecord(c)},
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

// isMissing reports whether the cache shows a bound claim without its record.
func isMissing(ctx context.Context, cache client.Reader, key types.NamespacedName) bool {
	c := &v1alpha1.SubnetClaim{}
	if err := cache.Get(ctx, key, c, client.UnsafeDisableDeepCopy); err != nil {
		return !apierrors.IsNotFound(err)
	}

	return lacksRecord(c)
}

// lacksRecord reports whether a claim needs a record that it does not have.
func lacksRecord(c *v1alpha1.SubnetClaim) bool {
	return c.DeletionTimestamp == nil && c.Status.Phase == v1alpha1.ClaimBound && c.Annotations[v1alpha1.BlockAnnotation] != ipamrules.ClaimRecord(c)
}
