package view

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// inBubble runs a test with a Feed and a queue that gathers, on a clock that
// jumps to whatever is waited for.
func inBubble(t *testing.T, test func(f *Feed, q queue, seen map[string]int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(kube.NewLimiter())
		defer q.ShutDown()
		var mu sync.Mutex
		seen := map[string]int{}
		f := NewFeed(NewPools(), func(kind string) {
			mu.Lock()
			defer mu.Unlock()
			seen[kind]++
		})
		if err := f.Source(Everything, 25*time.Millisecond).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		test(f, q, seen)
	})
}

// drain waits until everything is gathered, and returns what is in the queue.
func drain(q queue) []string {
	time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble jumps
	synctest.Wait()
	var names []string
	for q.Len() > 0 {
		r, _ := q.Get()
		names = append(names, r.String())
		q.Done(r)
		q.Forget(r)
	}

	return names
}

func eventSubnet(i int) *v1alpha1.Subnet {
	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("s-%d", i)},
		Spec:       v1alpha1.SubnetSpec{PoolRef: "p", CIDR: fmt.Sprintf("10.0.%d.0/24", i), ClusterID: "c"},
	}
}

func eventPool(name, cidr, parent string) *v1alpha1.SubnetPool {
	return &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: cidr, Parent: parent},
	}
}

// Whatever comes at once from whatever side, a pool is woken once, by its whole
// name, and every event is counted.
func TestEventsCoalesce(t *testing.T) {
	inBubble(t, func(f *Feed, q queue, seen map[string]int) {
		f.pool(Created, eventPool("p", "10.0.0.0/16", ""))
		drain(q)

		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				f.subnet(Created, eventSubnet(i))
				f.subnet(Deleted, toolscache.DeletedFinalStateUnknown{Key: "ns/x", Obj: eventSubnet(i)})
			})
		}
		wg.Wait()
		if got := drain(q); len(got) != 1 || got[0] != "ns/p" {
			t.Errorf("woken are %v, want ns/p once", got)
		}
		if seen[Created] != 100 || seen[Deleted] != 100 {
			t.Errorf("counted are %v, want 100 of each", seen)
		}
		if figures, _ := f.pools.Figures(types.NamespacedName{Namespace: "ns", Name: "p"}, 1); figures.All.Len() != 0 {
			t.Errorf("%d are left", figures.All.Len())
		}
	})
}

// A Subnet and a child pool that go together are one look at the parent.
func TestTogether(t *testing.T) {
	inBubble(t, func(f *Feed, q queue, _ map[string]int) {
		child := eventPool("child", "10.0.128.0/17", "p")
		f.pool(Created, eventPool("p", "10.0.0.0/16", ""))
		f.pool(Created, child)
		f.subnet(Created, eventSubnet(1))
		drain(q)

		f.subnet(Deleted, eventSubnet(1))
		f.pool(Updated, child) // its end is announced first, and changes nothing for the parent
		f.pool(Deleted, child)
		parents := 0
		for _, name := range drain(q) {
			if name == "ns/p" {
				parents++
			}
		}
		if parents != 1 {
			t.Errorf("the parent was woken %d times", parents)
		}
	})
}

// What makes no difference wakes nobody: neither what a judge writes on a
// Subnet, nor what the status controller writes on a pool.
func TestNoNews(t *testing.T) {
	inBubble(t, func(f *Feed, q queue, seen map[string]int) {
		pool := eventPool("p", "10.0.0.0/16", "")
		f.pool(Created, pool)
		f.subnet(Created, eventSubnet(1))
		drain(q)

		judged := eventSubnet(1)
		judged.Status.Phase = v1alpha1.SubnetAllocated
		f.subnet(Updated, judged)
		f.Wrote(types.NamespacedName{Namespace: "ns", Name: "p"}, "2")
		ours := pool.DeepCopy()
		ours.ResourceVersion = "2"
		f.pool(Updated, ours)
		if got := drain(q); len(got) != 0 || seen[Updated] != 0 {
			t.Errorf("woken are %v, counted %v", got, seen)
		}

		theirs := ours.DeepCopy()
		theirs.ResourceVersion = "3"
		f.pool(Updated, theirs)
		failed := eventSubnet(1)
		failed.Status.Phase = v1alpha1.SubnetFailed
		f.subnet(Updated, failed)
		if got := drain(q); len(got) != 1 || seen[Updated] != 1 {
			t.Errorf("woken are %v, counted %v, want the pool and one update", got, seen)
		}
	})
}

// A pool that is older than what was written here must not be taken for what is
// there: the event of that write wakes nobody.
func TestBehind(t *testing.T) {
	cases := map[string]struct {
		reason string
		wrote  string
		has    string
		want   bool
	}{
		"Nothing": {"Nothing was written here.", "", "7", false},
		"Older":   {"The cache has not seen it.", "10", "9", true},
		"Ours":    {"The cache has it.", "10", "10", false},
		"Newer":   {"Somebody wrote after us.", "10", "11", false},
		"Strange": {"Of versions without an order nothing is known.", "b", "a", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := NewFeed(NewPools(), func(string) {})
			p := eventPool("p", "10.0.0.0/16", "")
			if tc.wrote != "" {
				f.Wrote(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, tc.wrote)
			}
			p.ResourceVersion = tc.has
			if got := f.Behind(p); got != tc.want {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
		})
	}
}
