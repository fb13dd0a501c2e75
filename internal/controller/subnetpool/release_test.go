package subnetpool

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// A parentReader is a cache with one pool.
type parentReader struct {
	client.Client

	pool *v1alpha1.SubnetPool
}

func (r parentReader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if p, ok := o.(*v1alpha1.SubnetPool); ok && r.pool != nil && key.Name == r.pool.Name {
		r.pool.DeepCopyInto(p)

		return nil
	}

	return apierrors.NewNotFound(schema.GroupResource{Resource: "subnetpools"}, key.Name)
}

// A backing Subnet whose pool is missing is kept while the pool may be restored.
func TestExpected(t *testing.T) {
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	parent := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "parent"}}
	deleting := parent.DeepCopy()
	deleting.DeletionTimestamp = new(metav1.NewTime(created))
	cases := map[string]struct {
		reason  string
		change  func(*v1alpha1.Subnet)
		parent  *v1alpha1.SubnetPool
		deleted bool
		after   time.Duration
		want    time.Duration
	}{
		"Restored": {"The pool of a backup may come after its Subnet.", nil, parent, false, time.Minute, 9 * time.Minute},
		"Over":     {"It does not come any more.", nil, parent, false, time.Hour, 0},
		"Deleted":  {"The pool was deleted.", nil, parent, true, time.Minute, 0},
		"Claim":    {"The claim decides.", func(s *v1alpha1.Subnet) { s.Spec.ClaimRef = &v1alpha1.ClaimReference{} }, parent, false, time.Minute, 0},
		"Deleting": {"The Subnet is being deleted.", func(s *v1alpha1.Subnet) { s.DeletionTimestamp = new(metav1.NewTime(created)) }, parent, false, time.Minute, 0},
		"Parent":   {"No pool is opened in a parent that is being deleted.", nil, deleting, false, time.Minute, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := backingIn(v1alpha1.SubnetAllocated, "u", tc.change)
			s.CreationTimestamp = metav1.NewTime(created)
			now := func() time.Time { return created.Add(tc.after) }
			r := &Releaser{client: parentReader{pool: tc.parent}, deleted: kube.NewRecentlyDeleted(now), grace: 10 * time.Minute, now: now}
			if tc.deleted {
				r.deleted.Add("u")
			}
			if got, err := r.expected(t.Context(), &s); err != nil || got != tc.want {
				t.Errorf("%s\ngot %s (%v), want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}
