package subnet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

func TestLastClaim(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type objects struct {
		subnet *v1alpha1.Subnet
		pool   *v1alpha1.SubnetPool
	}
	restored := func(o *objects) { o.subnet.Spec.ClaimRef.Time = new(metav1.NewTime(created.Add(-time.Hour))) }
	for name, test := range map[string]struct {
		reason  string
		change  func(*objects)
		after   time.Duration
		deleted bool
		want    types.UID
	}{
		"Held":            {reason: "the status says which claim has it", change: func(o *objects) { o.subnet.Status.ClaimUID = "other" }, want: "other"},
		"OtherStatus":     {reason: "the status is of another Subnet", change: func(o *objects) { o.subnet.Status = v1alpha1.SubnetStatus{UID: "old", ClaimUID: "other"} }},
		"New":             {reason: "its claim may not be in the cache yet"},
		"Old":             {reason: "it was created for a claim that is gone", after: time.Hour, want: "claim"},
		"Deleted":         {reason: "its claim was seen to be deleted", deleted: true, want: "claim"},
		"DeletedNoPool":   {reason: "its claim was seen to be deleted", change: func(o *objects) { o.pool = nil }, deleted: true, want: "claim"},
		"Restored":        {reason: "its claim may be restored later, in a pool that was never gone", change: restored, after: time.Hour},
		"RestoredDeleted": {reason: "a new claim with the same record may be restored", change: restored, deleted: true},
		"OtherPool":       {reason: "it comes from a backup, as its pool", change: func(o *objects) { o.pool.UID = "new" }, after: time.Hour},
		"Restoring":       {reason: "the pool is being restored", change: func(o *objects) { o.pool.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: "old"} }, after: time.Hour},
		"NoPool":          {reason: "the pool may be restored later", change: func(o *objects) { o.pool = nil }, after: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects{
				subnet: &v1alpha1.Subnet{
					ObjectMeta: metav1.ObjectMeta{UID: "s", CreationTimestamp: metav1.NewTime(created)},
					Spec:       v1alpha1.SubnetSpec{ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "claim", PoolUID: "pool", Time: new(metav1.NewTime(created))}},
					Status:     v1alpha1.SubnetStatus{UID: "s"},
				},
				pool: &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{UID: "pool"}},
			}
			if test.change != nil {
				test.change(&o)
			}
			now := func() time.Time { return created.Add(test.after) }
			r := &Reconciler{now: now, deleted: kube.NewRecentlyDeleted(now), grace: time.Hour}
			if test.deleted {
				r.deleted.Add("claim")
			}
			if got := r.lastClaim(o.subnet, o.pool); got != test.want {
				t.Errorf("%s: the last claim is %q, want %q", test.reason, got, test.want)
			}
		})
	}
}

func TestConsistsOf(t *testing.T) {
	type objects struct {
		child  *v1alpha1.SubnetPool
		subnet *v1alpha1.Subnet
	}
	for name, test := range map[string]struct {
		reason string
		change func(*objects)
		want   bool
	}{
		"Bound":     {reason: "the pool is made of the block", want: true},
		"NoPool":    {reason: "the pool is gone", change: func(o *objects) { o.child = nil }},
		"OtherPool": {reason: "another pool has the name", change: func(o *objects) { o.child.UID = "new" }},
		"NotBound":  {reason: "the guard may bind it at any moment", change: func(o *objects) { o.subnet.Status.PoolUID = "" }, want: true},
		"Surplus":   {reason: "the pool is made of another block", change: func(o *objects) { o.subnet.Status.PoolUID, o.child.Spec.CIDR = "", "10.0.1.0/24" }},
		"Stored":    {reason: "its pool may have another name", change: func(o *objects) { o.child, o.subnet.Spec.Backs = nil, nil }, want: true},
		"Plain":     {reason: "it is not for a child pool", change: func(o *objects) { o.child, o.subnet.Spec.Backs, o.subnet.Status.PoolUID = nil, nil, "" }},
		"Failed":    {reason: "it holds nothing", change: func(o *objects) { o.subnet.Status.Phase = v1alpha1.SubnetFailed }},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects{
				child: &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{UID: "child"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/24"}},
				subnet: &v1alpha1.Subnet{
					Spec:   v1alpha1.SubnetSpec{CIDR: "10.0.0.0/24", Backs: &v1alpha1.PoolReference{Name: "c"}},
					Status: v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated, PoolUID: "child"},
				},
			}
			if test.change != nil {
				test.change(&o)
			}
			if got := consistsOf(o.child, o.subnet); got != test.want {
				t.Errorf("%s: got %t", test.reason, got)
			}
		})
	}
}
