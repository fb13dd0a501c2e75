package subnetclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// recorded starts records, and returns the writes of each claim so far. A write whose
// number is in failed fails.
func recorded(t *testing.T, failed ...int) (*records, func() map[string]int) {
	t.Helper()
	q, writes, n := newRecords(nil, NewMetrics(prometheus.NewRegistry()).unrecorded), map[string]int{}, 0
	var mu sync.Mutex
	q.missing = func(context.Context, types.NamespacedName) bool { return true }
	q.write = func(_ context.Context, key types.NamespacedName) error {
		mu.Lock()
		defer mu.Unlock()
		n++
		if slices.Contains(failed, n) {
			return errors.New("the API server is busy")
		}
		writes[key.Name]++

		return nil
	}
	go func() { _ = q.Start(t.Context()) }()

	return q, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()

		return maps.Clone(writes)
	}
}

func boundClaim(name, record string) *v1alpha1.SubnetClaim {
	return &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.BlockAnnotation: record}},
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p"},
		Status:     v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, AllocatedCIDR: "10.0.0.0/24"},
	}
}

func TestRecordsAtMost20InASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, writes := recorded(t)
		for i := range 50 {
			q.want(boundClaim(fmt.Sprintf("c%d", i), ""))
		}
		<-time.After(time.Second + recordInterval/2)
		synctest.Wait()
		if len(writes()) != 20 || testutil.ToFloat64(q.unrecorded) != 30 {
			t.Errorf("%d claims are recorded after a second and %v are not, want 20 and 30", len(writes()), testutil.ToFloat64(q.unrecorded))
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if len(writes()) != 50 || testutil.ToFloat64(q.unrecorded) != 0 {
			t.Errorf("%d claims are recorded in the end and %v are not, want 50 and 0", len(writes()), testutil.ToFloat64(q.unrecorded))
		}
	})
}

func TestRecordsPauseWhileClaimsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, writes := recorded(t)
		q.pause()
		for i := range 50 {
			q.want(boundClaim(fmt.Sprintf("c%d", i), ""))
		}
		for range 100 { // ten seconds in which claims are bound
			<-time.After(100 * time.Millisecond)
			q.pause()
		}
		synctest.Wait()
		if len(writes()) < 9 || len(writes()) > 11 {
			t.Errorf("%d claims are recorded in ten busy seconds, want one in each", len(writes()))
		}
	})
}

func TestRecordsOnlyWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, writes := recorded(t, 1)
		q.want(boundClaim("right", "p/10.0.0.0/24"))
		q.want(boundClaim("wrong", "p/10.0.1.0/24"))
		<-time.After(time.Minute)
		synctest.Wait()
		if len(writes()) != 1 || writes()["wrong"] != 1 || testutil.ToFloat64(q.unrecorded) != 0 {
			t.Errorf("claims %v are recorded and %v are not, want the wrong one after a second attempt", writes(), testutil.ToFloat64(q.unrecorded))
		}
	})
}

// A record that the API server rejects is not tried again, and does not slow the rest. The metric
// still counts the claim.
func TestRecordsRejected(t *testing.T) {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetClaimKind).GroupKind()
	for name, test := range map[string]struct {
		reason string
		err    error
		tries  int
	}{
		"Forbidden": {"an admission policy refuses it", apierrors.NewForbidden(resources, "c", errors.New("policy")), 1},
		"Invalid":   {"the stored claim is no longer valid", apierrors.NewInvalid(kind, "c", nil), 1},
		"Busy":      {"the next attempt may succeed", apierrors.NewTooManyRequests("later", 1), 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := recorded(t)
				tries := 0
				var accepted atomic.Bool
				q.write = func(context.Context, types.NamespacedName) error {
					if accepted.Load() {
						return nil
					}
					tries++

					return fmt.Errorf("cannot record: %w", test.err)
				}
				q.want(boundClaim("c", ""))
				<-time.After(10 * time.Second)
				synctest.Wait()
				if testutil.ToFloat64(q.unrecorded) != 1 {
					t.Errorf("%s: %v claims are not recorded, want 1", test.reason, testutil.ToFloat64(q.unrecorded))
				}
				if tries != test.tries || (q.interval() == recordInterval) != (test.tries == 1) {
					t.Errorf("%s: %d attempts, want %d; the next is after %s", test.reason, tries, test.tries, q.interval())
				}
				accepted.Store(true)
				<-time.After(recordRetry)
				synctest.Wait()
				if testutil.ToFloat64(q.unrecorded) != 0 {
					t.Errorf("%s: the claim is not recorded when it can be", test.reason)
				}
			})
		})
	}
}

// Rejected records are not written again and again: one claim of each namespace shows whether
// the API server accepts them now. New claims come first.
func TestRecordsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newRecords(nil, NewMetrics(prometheus.NewRegistry()).unrecorded)
		var logs atomic.Int32
		var mu sync.Mutex
		var writes []string
		accepted, gone := map[string]bool{}, map[string]bool{}
		q.missing = func(_ context.Context, key types.NamespacedName) bool {
			mu.Lock()
			defer mu.Unlock()

			return !gone[key.Name]
		}
		q.write = func(_ context.Context, key types.NamespacedName) error {
			mu.Lock()
			defer mu.Unlock()
			writes = append(writes, key.String())
			if accepted[key.Namespace] {
				return nil
			}

			return apierrors.NewForbidden(resources, key.Name, errors.New("policy"))
		}
		written := func(d time.Duration) []string {
			<-time.After(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			defer func() { writes = nil }()

			return writes
		}
		want := func(namespace, name string) {
			c := boundClaim(name, "")
			c.Namespace = namespace
			q.want(c)
		}
		unrecorded := func(n float64, when string) {
			t.Helper()
			if got := testutil.ToFloat64(q.unrecorded); got != n {
				t.Errorf("%v claims are not recorded %s, want %v", got, when, n)
			}
		}
		log := funcr.New(func(_, _ string) { logs.Add(1) }, funcr.Options{})
		go func() { _ = q.Start(logr.NewContext(t.Context(), log)) }()

		for i := range 50 {
			want("a", fmt.Sprintf("a%d", i))
			want("b", fmt.Sprintf("b%d", i))
		}
		if got, lines := written(time.Minute), logs.Swap(0); len(got) != 100 || lines != 1 {
			t.Fatalf("%d attempts and %d lines in the log at first, want 100 and 1", len(got), lines)
		}
		if got, lines := written(recordRetry), logs.Load(); len(got) != 2 || got[0][0] == got[1][0] || lines != 1 {
			t.Errorf("records of claims %v are written and %d lines logged after a retry, want one of each namespace and 1", got, lines)
		}
		unrecorded(100, "while a policy rejects them")

		mu.Lock()
		gone["b7"] = true
		accepted["a"] = true
		mu.Unlock()
		first := written(recordRetry - time.Minute + time.Second)
		want("a", "new")
		rest := written(30 * time.Second)
		if i := slices.Index(rest, "a/new"); len(first) == 0 || i < 0 || i > 1 {
			t.Errorf("a new claim is number %d, after the retries %v", i, first)
		}
		if total := len(first) + len(rest); total != 50+1+1 {
			t.Errorf("%d attempts, want the 50 claims of a, the new one and one of b", total)
		}
		unrecorded(49, "of namespace b, where a claim was deleted")
	})
}
