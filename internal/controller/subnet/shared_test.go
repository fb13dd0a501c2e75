package subnet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

var testKey = types.NamespacedName{Namespace: "ns", Name: "p"}

// slowReader returns a poolReader whose reads begin at once and end when the caller of release lets
// them. The generation of a pool is the number of its read.
func slowReader() (r *poolReader, begun *atomic.Int64, release chan struct{}) {
	begun, release = &atomic.Int64{}, make(chan struct{})
	r = newPoolReader(nil)
	r.get = func(context.Context, types.NamespacedName) (*v1alpha1.SubnetPool, error) {
		p := &v1alpha1.SubnetPool{}
		p.Generation = begun.Add(1)
		<-release

		return p, nil
	}

	return r, begun, release
}

func TestReadsBeginAfterTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 50
		r, begun, release := slowReader()
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			seen = map[int64]int{}
		)
		ask := func() {
			p, err := r.Get(t.Context(), testKey)
			if err != nil {
				t.Error(err)

				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[p.Generation]++
		}
		wg.Go(ask)
		synctest.Wait() // the first read is under way
		for range callers {
			wg.Go(ask)
		}
		synctest.Wait()
		release <- struct{}{}
		release <- struct{}{}
		wg.Wait()
		if diff := cmp.Diff(map[int64]int{1: 1, 2: callers}, seen); diff != "" {
			t.Errorf("callers of each read (-want +got):\n%s", diff)
		}
		if begun.Load() != 2 {
			t.Errorf("%d reads for %d callers, want 2", begun.Load(), callers+1)
		}
		synctest.Wait()
		if len(r.next)+len(r.busy) != 0 {
			t.Errorf("%d reads and %d pools are left behind", len(r.next), len(r.busy))
		}
	})
}

func TestReadsOfOtherPoolsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, begun, release := slowReader()
		var wg sync.WaitGroup
		for _, name := range []string{"p", "q"} {
			wg.Go(func() { _, _ = r.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}) })
		}
		synctest.Wait()
		if begun.Load() != 2 {
			t.Errorf("%d reads have begun, want one for each pool", begun.Load())
		}
		close(release)
		wg.Wait()
	})
}

func TestCallersLeaveReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, release := slowReader()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.Get(ctx, testKey); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
		})
		wg.Go(func() {
			if _, err := r.Get(t.Context(), testKey); err != nil {
				t.Errorf("one caller's end is another's: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		wg.Wait()
	})
}
