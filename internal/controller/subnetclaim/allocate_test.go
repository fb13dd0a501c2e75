package subnetclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

var errQuota = apierrors.NewForbidden(resources, "p-10-0-0-0-26", errors.New("exceeded quota: small, requested: count/subnets=1"))

// Blocks are reserved in the order of age, though requests run at once and the list
// has no order.
func TestOldestFirst(t *testing.T) {
	b := newBench(t, "10.0.0.0/16")
	want := map[string]string{}
	for i := range 100 {
		name := fmt.Sprintf("c%02d", 99-i)
		b.claim(name, 24)
		want[name] = fmt.Sprintf("10.0.%d.0/24", i)
	}
	if after := b.round(); after != safetyNet {
		t.Errorf("the next round is in %s, want %s", after, safetyNet)
	}
	if diff := cmp.Diff(want, b.blocks()); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	b.round()
	if len(b.calls) != 100 {
		t.Errorf("%d requests for 100 claims: the second round had nothing to do", len(b.calls))
	}
}

// Claims that ask for one exact block are served before older ones that take any.
func TestExactFirst(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.claim("any", 26)
	recorded := b.claim("recorded", 26)
	recorded.Annotations = map[string]string{v1alpha1.BlockAnnotation: "p/10.0.0.0/26"}
	requested := b.claim("requested", 26)
	requested.Spec.BlockSize, requested.Spec.RequestedCIDR = nil, "10.0.0.64/26"
	b.round()
	want := map[string]string{"any": "10.0.0.128/26", "recorded": "10.0.0.0/26", "requested": "10.0.0.64/26"}
	if diff := cmp.Diff(want, b.blocks()); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

// A claim for a block that was released has a message until when it stays unused.
func TestCoolingBlock(t *testing.T) {
	const taken, record = "cannot allocate 10.0.0.0/26 from 10.0.0.0/24: it is taken; use another block", "; the claim had this block before; remove its annotation ipam.plexaubnet.io/block to get any free block"
	const cooling = "cannot allocate 10.0.0.0/26 from 10.0.0.0/24: 10.0.0.0/26 was released and stays unused until 2026-01-02T04:00:05Z; wait, or use another block"
	cases := map[string]struct {
		reason string
		reuse  time.Duration
		age    time.Duration // since the deletion of the Subnet, 0 if it is not deleted
		change func(*v1alpha1.Subnet, *v1alpha1.SubnetClaim)
		want   string
	}{
		"InUse":   {reason: "The block is in use.", reuse: time.Hour, want: taken},
		"Cooling": {reason: "It was released four minutes ago.", reuse: time.Hour, age: 4 * time.Minute, want: cooling},
		"Recorded": {reason: "Also if it is the block that the claim had.", reuse: time.Hour, age: 4 * time.Minute, want: cooling + record, change: func(_ *v1alpha1.Subnet, c *v1alpha1.SubnetClaim) {
			c.Annotations = map[string]string{v1alpha1.BlockAnnotation: "p/10.0.0.0/26"}
		}},
		"Inside":   {reason: "The block is a part of what was released.", reuse: time.Hour, age: 4 * time.Minute, change: func(s *v1alpha1.Subnet, _ *v1alpha1.SubnetClaim) { s.Spec.CIDR = "10.0.0.0/25" }, want: strings.Replace(cooling, "10.0.0.0/26 was", "10.0.0.0/25 was", 1)},
		"Over":     {reason: "The time is over, and the Subnet disappears at any moment.", reuse: time.Minute, age: 4 * time.Minute, want: taken},
		"NoTime":   {reason: "The pool reuses blocks at once.", age: 4 * time.Minute, want: taken},
		"Unjudged": {reason: "The Subnet never had its block.", reuse: time.Hour, age: 4 * time.Minute, change: func(s *v1alpha1.Subnet, _ *v1alpha1.SubnetClaim) { s.Status.Phase = "" }, want: taken},
		"Child":    {reason: "The block of a child pool is free once the pool is gone.", reuse: time.Hour, age: 4 * time.Minute, change: func(s *v1alpha1.Subnet, _ *v1alpha1.SubnetClaim) { s.Status.PoolUID = "child" }, want: taken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "10.0.0.0/24")
			b.pool.Spec.ReuseAfter = &metav1.Duration{Duration: tc.reuse}
			s := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{UID: "s"}, Spec: v1alpha1.SubnetSpec{PoolRef: "p", CIDR: "10.0.0.0/26"}, Status: v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated}}
			if tc.age != 0 {
				s.DeletionTimestamp = new(metav1.NewTime(b.clock.Add(-tc.age)))
			}
			c := b.claim("c", 26)
			c.Spec.BlockSize, c.Spec.RequestedCIDR = nil, "10.0.0.0/26"
			if tc.change != nil {
				tc.change(s, c)
			}
			block, _ := poolblocks.BlockOf(s)
			b.allocator.view.Put(poolKey, block)
			b.round()
			if got := b.claims["c"].Status.Message; got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

// The claims of a pool that is not ready name the reason. They are not written again
// when only the pool's message changes.
func TestPoolNotReady(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.pool.Status.UID = "" // closed
	for _, message := range []string{"10.0.0.0/24 overlaps pool q", "10.0.0.0/24 overlaps pools q and r"} {
		b.pool.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Overlap", Message: message}}
		if b.claims["c"] == nil {
			b.claim("c", 26)
		}
		b.round()
		if got := b.claims["c"].Status.Message; b.reason("c") != ipamrules.ReasonPoolNotReady || got != "pool p is not ready: Overlap; see its status" {
			t.Errorf("the status of the claim is %s: %s", b.reason("c"), got)
		}
	}
	if b.writes != 1 {
		t.Errorf("the claim was written %d times", b.writes)
	}
}

// Linear takes the lowest free block, Buddy the smallest one that is large enough.
func TestStrategies(t *testing.T) {
	for strategy, want := range map[v1alpha1.Strategy]string{
		"": "10.0.0.0/26", v1alpha1.StrategyLinear: "10.0.0.0/26", v1alpha1.StrategyBuddy: "10.0.0.192/26",
	} {
		b := newBench(t, "10.0.0.0/24")
		b.pool.Spec.Strategy = strategy
		b.taken("10.0.0.128/26") // a /25 below it is free, and a /26 above it
		b.claim("c", 26)
		b.round()
		if got := b.blocks()["c"]; got != want {
			t.Errorf("strategy %q gives %s, want %s", strategy, got, want)
		}
	}
}

// A claim that the API server rejects a Subnet for has that message, is retried later and later,
// and keeps neither its block nor the other claims.
func TestRejected(t *testing.T) {
	invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Subnet").GroupKind(), "x", nil)
	for name, reject := range map[string]error{
		"Quota": errQuota, "Invalid": invalid, "TooMany": apierrors.NewTooManyRequests("later", 1),
		"QuotaConflict": apierrors.NewConflict(resources, "small", errors.New("changed")),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "10.0.0.0/24")
			b.claim("a", 26)
			b.claim("bad", 26)
			b.claim("z", 26)
			b.before = func(s *v1alpha1.Subnet) error {
				if s.Spec.ClaimRef.Name == "bad" {
					return reject
				}

				return nil
			}
			if after := b.round(); after != firstDelay {
				t.Errorf("the next round is in %s, want %s", after, firstDelay)
			}
			if diff := cmp.Diff(map[string]string{"a": "10.0.0.0/26", "z": "10.0.0.128/26"}, b.blocks()); diff != "" {
				t.Errorf("the others (-want +got):\n%s", diff)
			}
			status := b.claims["bad"].Status
			if b.reason("bad") != ipamrules.ReasonNotCreated || status.Phase != v1alpha1.ClaimPending || !strings.Contains(status.Message, reject.Error()) {
				t.Errorf("the status of the claim is %+v, want the message of the API server", status)
			}
			late := b.claim("late", 26)
			b.round()
			if got := b.blocks()[late.Name]; got != "10.0.0.64/26" {
				t.Errorf("the block of the rejected Subnet is not free: the next claim has %q", got)
			}
			if slices.ContainsFunc(b.calls, func(c string) bool { return strings.HasPrefix(c, "read") }) {
				t.Errorf("what was rejected was looked for: %q", b.calls)
			}
			if tries := slices.DeleteFunc(slices.Clone(b.calls), func(c string) bool { return c != "create p-10-0-0-64-26" }); len(tries) != 2 {
				t.Errorf("the rejected claim did not wait: %q", b.calls)
			}
		})
	}
}

// The delay grows, and never keeps the pool from its rounds.
func TestRejectedAgain(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.claim("bad", 26)
	b.before = func(*v1alpha1.Subnet) error { return errQuota }
	for _, seconds := range []int{1, 2, 4, 8, 16, 31} {
		want := time.Duration(seconds) * time.Second
		if after := b.round(); after != want {
			t.Fatalf("the next round is in %s, want %s", after, want)
		}
		if b.writes != 1 {
			t.Fatalf("the same reason was written %d times", b.writes)
		}
		b.clock = b.clock.Add(want)
	}
	b.before = func(*v1alpha1.Subnet) error { return nil }
	b.clock = b.clock.Add(longestDelay)
	b.round()
	if b.blocks()["bad"] == "" {
		t.Error("it is not served once it can be")
	}
	delete(b.claims, "bad")
	b.round()
	if len(b.allocator.backoff.pools) != 0 {
		t.Error("claims that are gone are remembered")
	}
}

// After an answer that does not show whether the Subnet was created, nothing else is tried for the
// claim, and no other claim gets its block, until a live read has shown.
func TestUnknownOutcome(t *testing.T) {
	timeout := apierrors.NewTimeoutError("etcd has no leader", 1)
	for name, broken := range map[string]error{
		"Timeout": timeout, "Internal": apierrors.NewInternalError(errors.New("failed calling webhook")),
		"Connection": errors.New("read tcp: connection reset by peer"), "Deadline": context.DeadlineExceeded,
		"Request": apierrors.NewGenericServerResponse(http.StatusRequestTimeout, "create", resources, "x", "", 0, false),
	} {
		for _, stored := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", name, stored), func(t *testing.T) {
				b := newBench(t, "10.0.0.0/24")
				b.claim("c", 26)
				fail := func(*v1alpha1.Subnet) error { return broken }
				if stored {
					b.after = fail
				} else {
					b.before = fail
				}
				b.round()
				if b.reason("c") != ipamrules.ReasonNotCreated || !strings.Contains(b.claims["c"].Status.Message, broken.Error()) {
					t.Errorf("the status of the claim is %+v", b.claims["c"].Status)
				}
				b.before, b.after = func(*v1alpha1.Subnet) error { return nil }, func(*v1alpha1.Subnet) error { return nil }

				b.read = func(string) error { return timeout }
				b.claim("other", 26)
				b.clock = b.clock.Add(firstDelay)
				b.round()
				if got := b.blocks()["other"]; got != "10.0.0.64/26" {
					t.Fatalf("another claim got %q while the block was in doubt", got)
				}

				b.read = func(string) error { return nil }
				b.calls = nil
				b.clock = b.clock.Add(firstDelay)
				b.round()
				want := []string{"read p-10-0-0-0-26"}
				if !stored {
					want = append(want, "read p-10-0-0-0-26-uid-c", "create p-10-0-0-0-26")
				}
				calls := slices.DeleteFunc(b.calls, func(c string) bool { return strings.Contains(c, "64") })
				if diff := cmp.Diff(want, calls); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if b.names() != "p-10-0-0-0-26 p-10-0-0-64-26" || b.blocks()["c"] != "10.0.0.0/26" {
					t.Errorf("there are %s", b.names())
				}
			})
		}
	}
}

// A Subnet that was created and that no watch brings is looked for, and its block is
// free again if it is gone.
func TestOverdue(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.claim("c", 26)
	b.round()
	b.round()
	if len(b.calls) != 1 {
		t.Fatalf("it is looked for at once: %q", b.calls)
	}
	b.clock = b.clock.Add(safetyNet)
	b.round()
	if diff := cmp.Diff([]string{"create p-10-0-0-0-26", "read p-10-0-0-0-26"}, b.calls); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	delete(b.subnets, "p-10-0-0-0-26")
	delete(b.claims, "c")
	if after := b.round(); after != safetyNet {
		t.Errorf("a reservation without a claim is not looked for: next round in %s", after)
	}
	b.claim("whole", 24)
	b.round()
	if b.blocks()["whole"] != "10.0.0.0/24" {
		t.Error("the block is not free again")
	}
}

// The name of a block may be another object's.
func TestNameTaken(t *testing.T) {
	subnet := func(change func(*v1alpha1.Subnet)) *v1alpha1.Subnet {
		s := &v1alpha1.Subnet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-10-0-0-0-26"},
			Spec:       v1alpha1.SubnetSpec{PoolRef: "p", CIDR: "10.0.0.0/26", ClusterID: "x"},
		}
		change(s)

		return s
	}
	const suffixed = "p-10-0-0-0-26-uid-c"
	cases := map[string]struct {
		reason string
		there  *v1alpha1.Subnet
		// after two rounds
		block, name string
	}{
		"OtherPool": {"A Subnet of another pool takes nothing of this one.", subnet(func(s *v1alpha1.Subnet) { s.Spec.PoolRef = "q" }), "10.0.0.0/26", suffixed},
		"Invalid":   {"A CIDR that cannot be read takes nothing.", subnet(func(s *v1alpha1.Subnet) { s.Spec.CIDR = "010.0.0.0/26" }), "10.0.0.0/26", suffixed},
		"Failed":    {"A Failed Subnet takes nothing.", subnet(func(s *v1alpha1.Subnet) { s.Status.Phase = v1alpha1.SubnetFailed }), "10.0.0.0/26", suffixed},
		"OtherCIDR": {"A Subnet of another block takes that one.", subnet(func(s *v1alpha1.Subnet) { s.Spec.CIDR = "10.0.0.128/26" }), "10.0.0.0/26", suffixed},
		"SameBlock": {"A Subnet that the watch has not brought is counted, and another block chosen.", subnet(func(*v1alpha1.Subnet) {}), "10.0.0.64/26", "p-10-0-0-64-26"},
		"Ours": {"A Subnet of this claim is what was to be created.", subnet(func(s *v1alpha1.Subnet) {
			s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "c", UID: "uid-c"}
		}), "10.0.0.0/26", "p-10-0-0-0-26"},
		"OursFailed": {"Unless it has Failed.", subnet(func(s *v1alpha1.Subnet) {
			s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "c", UID: "uid-c"}
			s.Status.Phase = v1alpha1.SubnetFailed
		}), "10.0.0.0/26", suffixed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "10.0.0.0/24")
			b.store(tc.there)
			b.claim("c", 26)
			for range 2 {
				b.round()
				b.clock = b.clock.Add(time.Second)
			}
			if got := b.subnets[tc.name]; got == nil || got.Spec.CIDR != tc.block || b.blocks()["c"] != tc.block {
				t.Fatalf("%s\nclaim has %q, Subnets are %s; want %s, %s", tc.reason, b.blocks()["c"], b.names(), tc.block, tc.name)
			}
			if got := b.reason("c"); got != "" {
				t.Errorf("%s\nthe claim complains: %s", tc.reason, got)
			}
			if slices.Contains(b.calls, "recount") {
				t.Errorf("%s\nthe cache, which is behind, was asked", tc.reason)
			}
			if collided := len(b.allocator.others.pools) > 0; collided != (name == "SameBlock") {
				t.Errorf("%s\ncollided: %t", tc.reason, collided)
			}
			// A ghost in the counts would keep the rest of the pool.
			b.claim("rest", 25)
			b.round()
			if got := b.blocks()["rest"]; got != "10.0.0.128/25" {
				t.Errorf("%s\nthe rest of the pool is %q", tc.reason, got)
			}
		})
	}
}

// If both names are other objects', the status of the claim shows it.
func TestBothNamesTaken(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	for _, name := range []string{"p-10-0-0-0-26", "p-10-0-0-0-26-uid-c"} {
		b.store(&v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1alpha1.SubnetSpec{PoolRef: "q", CIDR: "10.0.0.0/26"}})
	}
	b.claim("c", 26)
	if after := b.round(); after != firstDelay || b.reason("c") != ipamrules.ReasonNotCreated {
		t.Errorf("next round in %s, the status of the claim is %q", after, b.claims["c"].Status.Message)
	}
}

// After a lost block the pool is counted again before anything is chosen from it.
func TestLostBlock(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.claim("c", 26)
	broken := errors.New("no cache")
	err := broken
	b.allocator.recount = func(context.Context, types.NamespacedName) error {
		b.calls = append(b.calls, "recount")
		b.taken("10.0.0.0/25") // the counts had missed it

		return err
	}
	b.allocator.others.lost(poolKey, b.clock)
	if after := b.round(); after <= 0 || after > 2*shortest || len(b.calls) != 0 {
		t.Fatalf("after a collision the pool is left alone for %s, with requests %q", after, b.calls)
	}
	b.clock = b.clock.Add(time.Second)
	if _, got := b.allocator.Reconcile(t.Context(), reconcile.Request{NamespacedName: poolKey}); !errors.Is(got, broken) {
		t.Errorf("a failed recount is %v", got)
	}
	err = nil
	b.clock = b.clock.Add(time.Second)
	b.round()
	b.claim("d", 26)
	b.round()
	if diff := cmp.Diff([]string{"recount", "recount", "create p-10-0-0-128-26", "create p-10-0-0-192-26"}, b.calls); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// A claim waits until it is Bound, whether its Subnet was created or not. One that
// can never be served does not wait.
func TestWaitingMetric(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	gauge := func() float64 { return testutil.ToFloat64(b.allocator.metrics.waiting.WithLabelValues("ns", "p")) }
	b.claim("served", 25)
	b.claim("full", 24)
	b.claim("wrong", 23)
	b.round()
	b.round()
	if got := gauge(); got != 2 {
		t.Errorf("%v claims wait, want the one with a Subnet and the one without", got)
	}
	delete(b.claims, "served") // Bound ones are not listed
	b.round()
	if got := gauge(); got != 1 {
		t.Errorf("%v claims wait, want 1", got)
	}
}

// Claims that wait for a block are not written again because something else is
// allocated from their pool.
func TestExhaustedIsQuiet(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	const many = 5000
	b.taken("10.0.0.0/25")
	b.taken("10.0.0.128/32")
	for i := range many {
		b.claim(fmt.Sprintf("c%d", i), 25)
	}
	b.round()
	if b.writes != many || b.reason("c7") != ipamrules.ReasonExhausted {
		t.Fatalf("%d writes, the message of a claim is %q", b.writes, b.claims["c7"].Status.Message)
	}
	for _, cidr := range []string{"10.0.0.192/26", "10.0.0.160/27", "10.0.0.144/28"} { // the largest free block shrinks
		b.taken(cidr)
		b.round()
	}
	if b.writes != many {
		t.Errorf("%d more writes", b.writes-many)
	}
}

// A pool that is being restored gives a claim the block of its record, and nothing to
// a claim without. A claim with a record never gets another block.
func TestRestore(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.pool.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: "before"}
	b.taken("10.0.0.128/26")
	record := func(c *v1alpha1.SubnetClaim, record string) {
		c.Annotations = map[string]string{v1alpha1.BlockAnnotation: record}
	}
	b.claim("new", 26)
	record(b.claim("had", 26), "p/10.0.0.64/26")
	record(b.claim("taken", 26), "p/10.0.0.128/26")
	record(b.claim("elsewhere", 26), "q/10.0.0.192/26")
	record(b.claim("wrong", 26), "p/10.0.0.192")
	b.round()
	if diff := cmp.Diff(map[string]string{"had": "10.0.0.64/26"}, b.blocks()); diff != "" {
		t.Errorf("while restoring (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"new": ipamrules.ReasonPoolRestoring, "elsewhere": ipamrules.ReasonPoolRestoring,
		"taken": ipamrules.ReasonRecordTaken, "wrong": ipamrules.ReasonInvalidRecord, "had": "",
	} {
		if got := b.reason(name); got != want {
			t.Errorf("the message of claim %s is %q, want %q", name, got, want)
		}
	}
	if b.claims["wrong"].Status.Phase != v1alpha1.ClaimError || b.claims["taken"].Status.Phase != v1alpha1.ClaimPending {
		t.Error("a record that cannot be read is an error, a taken block is waited for")
	}
	b.pool.Annotations[v1alpha1.PoolUIDAnnotation] = string(b.pool.UID)
	b.round()
	if diff := cmp.Diff(map[string]string{"had": "10.0.0.64/26", "new": "10.0.0.0/26", "elsewhere": "10.0.0.192/26"}, b.blocks()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// A pool allocates only while it is open; otherwise its claims have the message of the pool.
func TestUnavailable(t *testing.T) {
	overlap := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Overlap", Message: "pool q has 10.0.0.0/25"}}
	cases := map[string]struct {
		reason  string
		change  func(*bench)
		want    string
		message string
	}{
		"Absent":   {"There is no pool.", func(b *bench) { b.pool = nil }, ipamrules.ReasonPoolNotFound, "pool p does not exist"},
		"Deleting": {"It is on its way out.", func(b *bench) { b.pool.DeletionTimestamp = new(metav1.NewTime(b.clock)) }, ipamrules.ReasonPoolInvalid, "being deleted"},
		"New":      {"It is not decided on yet.", func(b *bench) { b.pool.Status = v1alpha1.SubnetPoolStatus{} }, ipamrules.ReasonPoolNotReady, "not been checked"},
		"Restored": {"The status is that of another pool.", func(b *bench) { b.pool.Status.UID = "before" }, ipamrules.ReasonPoolNotReady, "not been checked"},
		"Lost": {
			"The reason of the pool.",
			func(b *bench) { b.pool.Status = v1alpha1.SubnetPoolStatus{Lost: 1, Conditions: overlap} },
			ipamrules.ReasonPoolNotReady, "Overlap; see its status",
		},
		"Moved": {
			"Open, but for addresses that it does not want any more.",
			func(b *bench) { b.pool.Spec.CIDR, b.pool.Status.Conditions = "10.9.0.0/24", overlap },
			ipamrules.ReasonPoolNotReady, "Overlap",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "10.0.0.0/24")
			b.claim("c", 26)
			tc.change(b)
			b.round()
			if got := b.claims["c"].Status; b.reason("c") != tc.want || got.Phase != v1alpha1.ClaimPending || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%s\nthe status of the claim is %s: %q; want %s: %q", tc.reason, b.reason("c"), got.Message, tc.want, tc.message)
			}
			if len(b.calls) != 0 {
				t.Errorf("%s\nrequests %q", tc.reason, b.calls)
			}
		})
	}
}

// The cache may have a pool that is open before the view has, and the other way round.
func TestViewBehind(t *testing.T) {
	b := newBench(t, "10.0.0.0/24")
	b.claim("c", 26)
	b.allocator.view.SetOpen(poolKey, false)
	if after := b.round(); after != firstDelay || b.writes != 0 || len(b.calls) != 0 {
		t.Errorf("next round in %s, %d writes, requests %q", after, b.writes, b.calls)
	}
}
