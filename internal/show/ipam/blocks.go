package ipam

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/identity"
)

// Kinds of blocks.
const (
	kindSubnet = "Subnet"
	kindChild  = "child pool"
	KindFree   = "free"
)

// PoolContentsView is what arbor pools show prints for programs.
type PoolContentsView struct {
	PoolView

	// Blocks are what is taken and what is free, by address.
	Blocks []BlockView `json:"blocks"`
	// DoesNotFit is what is not counted: it overlaps others, or lies outside.
	DoesNotFit []MisfitView `json:"doesNotFit"`
	// Failed are the names of Subnets that count as absent.
	Failed []string `json:"failed"`
}

// ContentsKind is the kind of the document that a [PoolContentsView] is.
const ContentsKind = "PoolContents"

// Refs are the Subnets and child pools that are listed.
func (v PoolContentsView) Refs() []identity.Ref {
	kinds := map[string]string{kindSubnet: v1alpha1.SubnetKind, kindChild: v1alpha1.SubnetPoolKind}
	var out []identity.Ref
	for _, b := range v.Blocks {
		if kind, ok := kinds[b.Kind]; ok {
			out = append(out, refOf(kind, v.Namespace, b.Name))
		}
	}

	return out
}

// A BlockView is one block of a pool.
type BlockView struct {
	CIDR string `json:"cidr"`
	// Kind is Subnet, child pool or free.
	Kind string `json:"kind"`
	// Name of the Subnet or of the child pool.
	Name string `json:"name,omitempty"`
	// Owner is the cluster that has it.
	Owner string               `json:"owner,omitempty"`
	Claim string               `json:"claim,omitempty"`
	Phase v1alpha1.SubnetPhase `json:"phase,omitempty"`
	// Created is absent in manifests that were never applied.
	Created *metav1.Time `json:"created,omitempty"`
}

// A MisfitView is a block that is not where it says it is.
type MisfitView struct {
	BlockView

	Why string `json:"why"`
}

// Holder is who has a block, in a word.
func (b BlockView) Holder() string {
	if b.Kind == kindChild {
		return b.Name
	}

	return b.Owner
}

// ContentsOf returns the view of a pool and its blocks.
func ContentsOf(s *ipamplan.Pool, blocks []BlockView) PoolContentsView {
	v := PoolContentsView{PoolView: poolViewOf(s, NotesOf(s)), Blocks: blocks, DoesNotFit: []MisfitView{}, Failed: []string{}}

	for _, m := range s.Misfits {
		v.DoesNotFit = append(v.DoesNotFit, MisfitView{BlockViewOf(m.Holder), m.Why})
	}

	for _, n := range s.Failed {
		v.Failed = append(v.Failed, n.Name)
	}

	return v
}

// BlockViewOf returns the view of the block that an object holds.
func BlockViewOf(h ipamplan.Holder) BlockView {
	if h.Child != nil {
		b := BlockView{CIDR: h.CIDR(), Kind: kindChild, Name: h.Child.Name, Created: created(h.Child)}
		if h.Subnet != nil && h.Subnet.Spec.ClaimRef != nil {
			b.Claim = h.Subnet.Spec.ClaimRef.Name
		}

		return b
	}

	b := BlockView{
		CIDR: h.CIDR(), Kind: kindSubnet, Name: h.Subnet.Name, Owner: h.Subnet.Spec.ClusterID,
		Phase: h.Subnet.Status.Phase, Created: created(h.Subnet),
	}

	if b.Phase == "" {
		b.Phase = v1alpha1.SubnetPending
	}

	if h.Subnet.Spec.ClaimRef != nil {
		b.Claim = h.Subnet.Spec.ClaimRef.Name
	}

	return b
}

func created(o metav1.Object) *metav1.Time {
	if t := o.GetCreationTimestamp(); !t.IsZero() {
		return &t
	}

	return nil
}

// BlocksOf lists what is taken and what is free, by address.
func BlocksOf(s *ipamplan.Pool) []BlockView {
	type entry struct {
		netip.Prefix
		BlockView
	}

	var all []entry

	for block := range s.All.Taken() {
		b := BlockViewOf(s.Holders[block])
		b.CIDR = block.String()
		all = append(all, entry{block, b})
	}

	for block := range s.All.Free() {
		all = append(all, entry{block, BlockView{CIDR: block.String(), Kind: KindFree}})
	}

	slices.SortFunc(all, func(a, b entry) int { return a.Addr().Compare(b.Addr()) })

	out := make([]BlockView, len(all))
	for i, e := range all {
		out[i] = e.BlockView
	}

	return out
}
