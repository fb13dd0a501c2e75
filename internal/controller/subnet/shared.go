package subnet

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// readTimeout bounds one read, which has no caller of its own to end it.
const readTimeout = 30 * time.Second

// A poolReader reads pools from the API server. Callers that ask for the same pool at
// the same time share a read, but only one that begins after all of them have asked:
// the pool is never older than the question.
type poolReader struct {
	get func(context.Context, types.NamespacedName) (*v1alpha1.SubnetPool, error)

	mu sync.Mutex
	// next is the read of each pool that has not begun yet.
	next map[types.NamespacedName]*poolRead
	// busy has the pools that a goroutine is reading.
	busy map[types.NamespacedName]bool
}

// A poolRead is the result of one read, once done is closed.
type poolRead struct {
	done chan struct{}
	pool *v1alpha1.SubnetPool
	err  error
}

func newPoolReader(r client.Reader) *poolReader {
	return &poolReader{
		next: map[types.NamespacedName]*poolRead{},
		busy: map[types.NamespacedName]bool{},
		get: func(ctx context.Context, key types.NamespacedName) (*v1alpha1.SubnetPool, error) {
			p := &v1alpha1.SubnetPool{}
			err := r.Get(ctx, key, p)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read pool %s: %w", key, err)
			}

			return p, nil
		},
	}
}

// Get returns a pool, nil if it does not exist. Callers share the object and must not
// change it.
func (r *poolReader) Get(ctx context.Context, key types.NamespacedName) (*v1alpha1.SubnetPool, error) {
	read := r.join(ctx, key)
	select {
	case <-read.done:
		return read.pool, read.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns a read that has not begun yet.
func (r *poolReader) join(ctx context.Context, key types.NamespacedName) *poolRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.next[key]
	if read == nil {
		read = &poolRead{done: make(chan struct{})}
		r.next[key] = read
	}
	if !r.busy[key] {
		r.busy[key] = true
		go r.run(context.WithoutCancel(ctx), key)
	}

	return read
}

// run reads a pool until no caller waits for it.
func (r *poolReader) run(ctx context.Context, key types.NamespacedName) {
	for read := r.begin(key); read != nil; read = r.begin(key) {
		bounded, cancel := context.WithTimeout(ctx, readTimeout)
		read.pool, read.err = r.get(bounded, key)
		cancel()
		close(read.done)
	}
}

// begin takes the next read of a pool, so that no other caller can join it.
func (r *poolReader) begin(key types.NamespacedName) *poolRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.next[key]
	delete(r.next, key)
	if read == nil {
		delete(r.busy, key)
	}

	return read
}
