package release_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
)

func TestPoolBlock(t *testing.T) {
	const grace = 10 * time.Minute
	parent := func(record string) *v1alpha1.SubnetPool {
		return &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{UID: "p", Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: record}}}
	}
	wait := func(d time.Duration) release.Decision { return release.Decision{Action: release.Wait, After: d} }
	released := release.Decision{Action: release.Release}
	cases := map[string]struct {
		reason   string
		deleting bool
		facts    release.PoolBlockFacts
		want     release.Decision
	}{
		"Orphan":    {"Its SubnetPoolClaim was deleted.", false, release.PoolBlockFacts{Parent: parent("p"), Waited: grace, Grace: grace}, released},
		"Young":     {"The SubnetPoolClaim may be restored next.", false, release.PoolBlockFacts{Parent: parent("p"), Waited: time.Minute, Grace: grace}, wait(9 * time.Minute)},
		"NoParent":  {"The pools of the backup are not restored yet.", false, release.PoolBlockFacts{Waited: time.Hour, Grace: grace}, wait(grace)},
		"Restoring": {"The restore is not over.", false, release.PoolBlockFacts{Parent: parent("old"), Waited: time.Hour, Grace: grace}, wait(grace)},
		"Expected":  {"Subnets of the pool are restored already.", false, release.PoolBlockFacts{Parent: parent("p"), Expected: true, Waited: time.Hour, Grace: grace}, wait(grace)},
		"NoGrace":   {"It is decided again without a grace period, too.", false, release.PoolBlockFacts{}, wait(time.Second)},
		"Deleting":  {"The user deleted it.", true, release.PoolBlockFacts{Expected: true, Grace: grace}, released},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Block = &v1alpha1.SubnetClaim{}
			if tc.deleting {
				tc.facts.Block.DeletionTimestamp = new(metav1.Now())
			}
			if diff := cmp.Diff(tc.want, release.PoolBlock(tc.facts)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
