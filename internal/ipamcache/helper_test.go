package ipamcache

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// key is the pool that most tests are about, and space the range of all pools.
var (
	key   = types.NamespacedName{Namespace: "ns", Name: "p"}
	space = netip.MustParsePrefix("10.0.0.0/16")
)

// gather is how long events for one pool are gathered for the listener to everything.
const gather = 100 * time.Millisecond

// A world is a Feed with a listener of each kind, on the queues that controllers have,
// and a clock that jumps to the next timer.
type world struct {
	*Feed

	everything, room queue

	mu   sync.Mutex
	seen map[string]int
}

// inBubble runs a test in a world.
func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{seen: map[string]int{}}
		w.Feed = NewFeed(NewPools(), func(kind string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[kind]++
		})
		w.everything, w.room = newQueue(t, "everything"), newQueue(t, "room")
		for wants, q := range map[Want]queue{Everything: w.everything, Room: w.room} {
			apart := gather
			if wants == Room {
				apart = 0
			}
			if err := w.Source(wants, apart).Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		test(w)
	})
}

// newQueue returns the kind of queue that controller-runtime gives each controller.
func newQueue(t *testing.T, name string) queue {
	t.Helper()
	q := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = kube.NewLimiter() })
	t.Cleanup(q.ShutDown)

	return q
}

// drain waits until everything is gathered, and returns what is in a queue.
func drain(q queue) []string {
	time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble jumps
	synctest.Wait()
	var names []string
	for q.Len() > 0 {
		r, _ := q.Get()
		names = append(names, r.Name)
		q.Done(r)
		q.Forget(r)
		synctest.Wait()
	}

	return names
}

// quiet empties both queues.
func (w *world) quiet() {
	drain(w.everything)
	drain(w.room)
}

func eventSubnet(i int) *v1alpha1.Subnet {
	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("s-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))},
		Spec:       v1alpha1.SubnetSpec{PoolRef: "p", CIDR: fmt.Sprintf("10.0.%d.0/24", i), ClusterID: "c"},
	}
}

func eventPool(name, cidr, parent string) *v1alpha1.SubnetPool {
	return &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Generation: 1},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: cidr, Parent: parent},
	}
}

// with returns a changed copy.
func with[T interface{ DeepCopy() T }](o T, change func(T)) T {
	c := o.DeepCopy()
	change(c)

	return c
}

func sorted(names []string) []string {
	slices.Sort(names)

	return names
}
