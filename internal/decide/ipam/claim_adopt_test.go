package ipam_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

func TestClaimAdopts(t *testing.T) {
	type pair struct {
		c *v1alpha1.SubnetClaim
		s *v1alpha1.Subnet
	}
	bound := func(p pair, cidr string) {
		p.c.Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, AllocatedCIDR: cidr}
	}
	record := func(p pair, block string) { p.c.Annotations = map[string]string{v1alpha1.BlockAnnotation: block} }
	for name, test := range map[string]struct {
		reason                 string
		change                 func(pair)
		wants, adopts, surplus bool
	}{
		"Restored":      {reason: "names and size fit; UIDs are new", wants: true, adopts: true},
		"Stored":        {reason: "a former version wrote no UID", change: func(p pair) { p.s.Status.UID = "" }, wants: true, adopts: true},
		"OtherStatus":   {reason: "the status is of another Subnet", change: func(p pair) { p.s.Status.UID = "old" }, wants: true},
		"Pending":       {reason: "it has no phase yet", change: func(p pair) { p.s.Status.Phase = v1alpha1.SubnetPending }, wants: true},
		"Failed":        {reason: "it holds nothing", change: func(p pair) { p.s.Status.Phase = v1alpha1.SubnetFailed }, wants: true},
		"Deleted":       {reason: "its block is freed", change: func(p pair) { p.s.DeletionTimestamp = &metav1.Time{} }, wants: true},
		"ClaimDeleted":  {reason: "the claim needs nothing any more", change: func(p pair) { p.c.DeletionTimestamp = &metav1.Time{} }},
		"Unclaimed":     {reason: "it was made for no claim", change: func(p pair) { p.s.Spec.ClaimRef = nil }},
		"OtherClaim":    {reason: "it names another claim", change: func(p pair) { p.c.Name = "d" }},
		"OtherPool":     {reason: "it is of another pool", change: func(p pair) { p.c.Spec.PoolRef = "q" }},
		"OtherCluster":  {reason: "it is for another cluster", change: func(p pair) { p.c.Spec.ClusterID = "d" }},
		"OtherPlace":    {reason: "namespaces are separate", change: func(p pair) { p.c.Namespace = "other" }},
		"OtherSize":     {reason: "the claim asks for a larger one", change: func(p pair) { p.c.Spec.BlockSize = new(int32(23)) }},
		"Exact":         {reason: "the claim asks for this block", change: func(p pair) { p.c.Spec.BlockSize, p.c.Spec.RequestedCIDR = nil, "10.0.0.7/24" }, wants: true, adopts: true},
		"OtherExact":    {reason: "the claim asks for another block", change: func(p pair) { p.c.Spec.BlockSize, p.c.Spec.RequestedCIDR = nil, "10.0.1.0/24" }},
		"Bound":         {reason: "the claim has this block", change: func(p pair) { bound(p, "10.0.0.0/24") }, wants: true, adopts: true},
		"BoundToOther":  {reason: "the claim has another block, and this one was restored", change: func(p pair) { bound(p, "10.0.1.0/24") }},
		"Second":        {reason: "the claim has another block, and this one was taken for it", change: func(p pair) { bound(p, "10.0.1.0/24"); p.s.Spec.ClaimRef.UID = "new" }, surplus: true},
		"SecondHeld":    {reason: "the claim has another block, and held this one", change: func(p pair) { bound(p, "10.0.1.0/24"); p.s.Status.ClaimUID = "new" }, surplus: true},
		"BoundHostBits": {reason: "host bits make no difference", change: func(p pair) { bound(p, "10.0.0.7/24"); p.s.Spec.ClaimRef.UID = "new" }, wants: true, adopts: true},
		"BoundWritten":  {reason: "the claim has this block, however it is written", change: func(p pair) { bound(p, "fd00:0::/64"); p.s.Spec.CIDR = "fd00::1/64"; p.s.Status.ClaimUID = "new" }, wants: true, adopts: true},
		"BoundByName":   {reason: "the claim is bound to this Subnet", change: func(p pair) { bound(p, "10.0.1.0/24"); p.c.Status.SubnetRef, p.s.Status.ClaimUID = "s", "new" }},
		"Recorded":      {reason: "the claim had this block", change: func(p pair) { record(p, "p/10.0.0.0/24") }, wants: true, adopts: true},
		"RecordOther":   {reason: "the claim had another block, which it waits for", change: func(p pair) { record(p, "p/10.0.1.0/24") }},
		"RecordPool":    {reason: "a record of another pool does not count", change: func(p pair) { record(p, "q/10.0.1.0/24") }, wants: true, adopts: true},
		"RecordInvalid": {reason: "the claim waits until its record is corrected", change: func(p pair) { record(p, "p") }},
		"RecordLate":    {reason: "it was taken for this claim before the record came", change: func(p pair) { record(p, "p/10.0.1.0/24"); p.s.Spec.ClaimRef.UID = "new" }, wants: true, adopts: true},
		"Lost":          {reason: "the claim has this block by another Subnet", change: func(p pair) { bound(p, "10.0.0.0/24"); p.s.Status.Phase = v1alpha1.SubnetFailed }, wants: true, surplus: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := pair{
				c: &v1alpha1.SubnetClaim{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "new"},
					Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "c", BlockSize: new(int32(24))},
				},
				s: &v1alpha1.Subnet{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s"},
					Spec:       v1alpha1.SubnetSpec{PoolRef: "p", ClusterID: "c", CIDR: "10.0.0.0/24", ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "old"}},
					Status:     v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated, UID: "s"},
				},
			}
			if test.change != nil {
				test.change(p)
			}
			for _, answer := range []struct {
				what      string
				got, want bool
			}{
				{"wants", ipam.ClaimWants(p.c, p.s), test.wants},
				{"adopts", ipam.ClaimAdopts(p.c, p.s), test.adopts},
				{"surplus", ipam.IsSurplus(p.c, p.s), test.surplus},
			} {
				if answer.got != answer.want {
					t.Errorf("%s: %s is %v", test.reason, answer.what, answer.got)
				}
			}
		})
	}
}
