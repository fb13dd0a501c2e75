package poolstatus

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The options of the production controller are part of what Arbor promises.
func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes, so the bucket is not filled up again
		o := options()
		if o.MaxConcurrentReconciles != 5 || o.ReconciliationTimeout != 90*time.Second {
			t.Errorf("%d workers with a timeout of %s, want 5 and 90s", o.MaxConcurrentReconciles, o.ReconciliationTimeout)
		}
		item := func(i int) reconcile.Request {
			return reconcile.Request{NamespacedName: types.NamespacedName{Name: string(rune('a' + i))}}
		}
		for i := range 100 {
			if d := o.RateLimiter.When(item(i)); d != 50*time.Millisecond {
				t.Fatalf("retry %d waits %s, want 50ms", i+1, d)
			}
		}
		if d := o.RateLimiter.When(item(100)); d <= 50*time.Millisecond {
			t.Errorf("the 101st retry waits %s: the bucket is larger than 100", d)
		}
	})
}
