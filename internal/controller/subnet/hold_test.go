package subnet

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A childReader has at most one pool.
type childReader struct {
	client.Client

	uid types.UID
}

func (r childReader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if r.uid == "" {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	o.SetUID(r.uid)

	return nil
}

// The status names the pool that a Subnet backs only if the API server has that pool. The
// spec of a backup names one that does not exist, and the cache may show one that was
// deleted.
func TestHoldAsksTheServer(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		cached, live, want types.UID
	}{
		"Exists":   {"The pool exists.", "u", "u", "u"},
		"Unseen":   {"The cache does not show it yet.", "", "u", "u"},
		"Gone":     {"The pool is gone.", "", "", ""},
		"Deleted":  {"The cache still shows it.", "u", "", ""},
		"Restored": {"A restored pool has another UID.", "u", "new", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{client: childReader{uid: tc.cached}, reader: childReader{uid: tc.live}}
			s := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
				Spec:       v1alpha1.SubnetSpec{PoolRef: "parent", CIDR: "10.0.0.0/24", Backs: &v1alpha1.PoolReference{Name: "child", UID: "u"}},
			}
			if err := r.hold(t.Context(), s); err != nil || s.Status.PoolUID != tc.want {
				t.Errorf("%s\nstatus.poolUID is %q (%v), want %q", tc.reason, s.Status.PoolUID, err, tc.want)
			}
		})
	}
}

// A Subnet of a backup names the UID of a claim that was deleted. A cache that is behind
// still shows that claim, but the Subnet must not count as one that the claim has had.
func TestHoldOfClaims(t *testing.T) {
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	claim := func(uid types.UID) *claimReader {
		return &claimReader{claim: &v1alpha1.SubnetClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: uid},
			Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "c", BlockSize: new(int32(24))},
		}}
	}
	for name, tc := range map[string]struct {
		reason       string
		taken        time.Time
		cached, live *claimReader
		want         types.UID
	}{
		"Original": {"It was created for the claim: no read is needed.", created, claim("claim"), &claimReader{}, "claim"},
		"Deleted":  {"The claim was deleted before the Subnet was restored.", created.Add(-time.Hour), claim("claim"), &claimReader{}, ""},
		"Replaced": {"The claim was restored, too.", created.Add(-time.Hour), claim("claim"), claim("new"), ""},
		"Exists":   {"Only the Subnet was restored.", created.Add(-time.Hour), claim("claim"), claim("claim"), "claim"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{client: tc.cached, reader: tc.live}
			s := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", CreationTimestamp: metav1.NewTime(created)},
				Spec: v1alpha1.SubnetSpec{
					PoolRef: "p", ClusterID: "c", CIDR: "10.0.0.0/24",
					ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "claim", Time: new(metav1.NewTime(tc.taken))},
				},
			}
			if err := r.hold(t.Context(), s); err != nil || s.Status.ClaimUID != tc.want {
				t.Errorf("%s\nstatus.claimUID is %q (%v), want %q", tc.reason, s.Status.ClaimUID, err, tc.want)
			}
		})
	}
}
