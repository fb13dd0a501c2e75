package poolblocks_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

var prefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestRangeOf(t *testing.T) {
	cases := map[string]struct {
		reason       string
		spec, status string
		uid          string
		want         string
		open         bool
	}{
		"New":       {reason: "A pool that is not open has the range that it asks for.", spec: "10.0.0.0/16", want: "10.0.0.0/16"},
		"Open":      {reason: "An open one has its own.", spec: "10.0.0.0/16", status: "10.0.0.0/16", uid: "u", want: "10.0.0.0/16", open: true},
		"Grows":     {reason: "Not more than the status says.", spec: "10.0.0.0/8", status: "10.0.0.0/16", uid: "u", want: "10.0.0.0/16", open: true},
		"Shrinks":   {reason: "Not more than the spec says.", spec: "10.0.128.0/17", status: "10.0.0.0/16", uid: "u", want: "10.0.128.0/17", open: true},
		"Moves":     {reason: "They have nothing in common.", spec: "10.1.0.0/16", status: "10.0.0.0/16", uid: "u", want: "invalid Prefix", open: true},
		"Restored":  {reason: "The status of another pool counts as none.", spec: "10.0.0.0/16", status: "10.0.0.0/24", uid: "old", want: "10.0.0.0/16"},
		"Unmasked":  {reason: "It cannot be a range.", spec: "10.0.0.5/16", want: "invalid Prefix"},
		"Mapped":    {reason: "Nor can IPv4 written as IPv6.", spec: "::ffff:10.0.0.0/104", want: "invalid Prefix"},
		"Sloppy":    {reason: "Nor what is not a prefix.", spec: "010.0.0.0/16", want: "invalid Prefix"},
		"NowSloppy": {reason: "Also if it was one.", spec: "010.0.0.0/16", status: "10.0.0.0/16", uid: "u", want: "invalid Prefix", open: true},
		"Families":  {reason: "IPv4 and IPv6 have nothing in common.", spec: "::/0", status: "10.0.0.0/16", uid: "u", want: "invalid Prefix", open: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: tc.spec}}
			p.Status.CIDR, p.Status.UID = tc.status, types.UID(tc.uid)
			got, open := poolblocks.RangeOf(p)
			if got.String() != tc.want || open != tc.open {
				t.Errorf("%s\ngot %s, open: %t", tc.reason, got, open)
			}
		})
	}
}

func TestBlockOf(t *testing.T) {
	block := netip.MustParsePrefix("10.0.0.0/24")
	backs := &v1alpha1.PoolReference{Name: "child"}
	bound := &v1alpha1.PoolReference{Name: "child", UID: "c"}
	cases := map[string]struct {
		reason  string
		spec    v1alpha1.SubnetSpec
		status  v1alpha1.SubnetStatus
		want    ledger.Block
		deleted int64
		absent  bool
	}{
		"Handmade":  {reason: "It has no claim.", want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c"}},
		"Claimed":   {reason: "It was taken for a claim.", spec: v1alpha1.SubnetSpec{ClaimRef: &v1alpha1.ClaimReference{Name: "n", UID: "1"}}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Claim: "1"}},
		"Adopted":   {reason: "The status says which claim has it.", spec: v1alpha1.SubnetSpec{ClaimRef: &v1alpha1.ClaimReference{Name: "n", UID: "1"}}, status: v1alpha1.SubnetStatus{ClaimUID: "2"}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Claim: "2"}},
		"ClaimName": {reason: "A claim without UID is a claim.", spec: v1alpha1.SubnetSpec{ClaimRef: &v1alpha1.ClaimReference{Name: "n"}}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Claim: "name/n"}},
		"Backs":     {reason: "It is for a pool that is not known yet.", spec: v1alpha1.SubnetSpec{Backs: backs}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Delegated: true}},
		"BacksUID":  {reason: "It was created for a pool.", spec: v1alpha1.SubnetSpec{Backs: bound}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Delegated: true, Backs: "pool/c"}},
		"Bound":     {reason: "The status says which pool.", spec: v1alpha1.SubnetSpec{Backs: bound}, status: v1alpha1.SubnetStatus{PoolUID: "d"}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Delegated: true, Backs: "pool/d"}},
		"BoundOnly": {reason: "Also of a Subnet from before there was spec.backs.", status: v1alpha1.SubnetStatus{PoolUID: "d"}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Delegated: true, Backs: "pool/d"}},
		"Unmasked":  {reason: "It keeps these addresses from others.", spec: v1alpha1.SubnetSpec{CIDR: "10.0.0.5/24"}, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c"}},
		"Released":  {reason: "It is being deleted, and its block stays unused for some time.", status: v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated}, deleted: 9, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c", Released: 9}},
		"Unjudged":  {reason: "It never had its block.", deleted: 9, want: ledger.Block{ID: "u", Name: "s", Prefix: block, Owner: "c"}},
		"Failed":    {reason: "It takes nothing.", status: v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetFailed}, want: ledger.Block{ID: "u", Name: "s", Owner: "c"}, absent: true},
		"Sloppy":    {reason: "It is not a prefix.", spec: v1alpha1.SubnetSpec{CIDR: "010.0.0.0/24"}, want: ledger.Block{ID: "u", Name: "s", Owner: "c"}, absent: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u"}, Spec: tc.spec, Status: tc.status}
			s.Spec.ClusterID = "c"
			if tc.deleted != 0 {
				s.DeletionTimestamp = new(metav1.Unix(tc.deleted, 0))
			}
			if s.Spec.CIDR == "" {
				s.Spec.CIDR = block.String()
			}
			got, ok := poolblocks.BlockOf(s)
			if diff := cmp.Diff(tc.want, got, prefixes); diff != "" || ok == tc.absent {
				t.Errorf("%s\n%t (-want +got):\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestDelegationOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		cidr   string
		status v1alpha1.SubnetPoolStatus
		want   string
		absent bool
	}{
		"New":       {reason: "What a child asks for is not for others.", cidr: "10.0.0.0/24", want: "10.0.0.0/24"},
		"Open":      {reason: "It has what its status says.", cidr: "10.0.0.0/25", status: v1alpha1.SubnetPoolStatus{UID: "u", CIDR: "10.0.0.0/24"}, want: "10.0.0.0/24"},
		"Refused":   {reason: "It has nothing.", cidr: "10.0.0.0/24", status: v1alpha1.SubnetPoolStatus{Lost: 3}, want: "invalid Prefix", absent: true},
		"OpenLost":  {reason: "A resize that was refused changes nothing.", cidr: "10.0.0.0/23", status: v1alpha1.SubnetPoolStatus{UID: "u", CIDR: "10.0.0.0/24", Lost: 3}, want: "10.0.0.0/24"},
		"LostOnce":  {reason: "Another spec was refused.", cidr: "10.0.0.0/24", status: v1alpha1.SubnetPoolStatus{Lost: 2}, want: "10.0.0.0/24"},
		"NotPrefix": {reason: "It is not a prefix.", cidr: "010.0.0.0/24", want: "invalid Prefix", absent: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 3}, Spec: v1alpha1.SubnetPoolSpec{CIDR: tc.cidr}, Status: tc.status}
			got, ok := poolblocks.DelegationOf(p)
			if got.ID != "pool/u" || got.Name != "p" || !got.Delegated || got.Prefix.String() != tc.want || ok == tc.absent {
				t.Errorf("%s\ngot %+v, %t", tc.reason, got, ok)
			}
		})
	}
}
