// Package pool decides what the status of a SubnetPool says.
package pool

import (
	"fmt"
	"net/netip"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
)

// MaxListed is how many blocks a status lists. A pool may have tens of
// thousands, and an object of that size could not be stored.
const MaxListed = 256

// Default lengths of a block, where neither claim nor pool says one.
const (
	defaultLength4 = 24
	defaultLength6 = 64
)

// Reasons of the conditions Ready and Exhausted.
const (
	ReasonReady       = "Ready"
	ReasonInvalidCIDR = "InvalidCIDR"
	ReasonDeleting    = "Deleting"
	ReasonFull        = "NoBlockLeft"
	ReasonSpace       = "BlocksLeft"
)

// Figures of a pool. All is nil when the pool's CIDR is no prefix.
type Figures struct {
	// All is everything that is taken, Own what is not delegated.
	All, Own *cidr.Pool
	// Delegated is the number of child pools.
	Delegated int
	// Listed maps the first blocks to who has them.
	Listed map[string]string
}

// Status returns the status that belongs on the pool now.
func Status(p *v1alpha1.SubnetPool, f Figures, now metav1.Time) v1alpha1.SubnetPoolStatus {
	s := v1alpha1.SubnetPoolStatus{ObservedGeneration: p.Generation}
	for _, c := range p.Status.Conditions {
		s.Conditions = append(s.Conditions, *c.DeepCopy())
	}
	if f.All == nil {
		set(&s, p, v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonInvalidCIDR, invalid(p), now)
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionExhausted) // of what it was before

		return s
	}

	s.AllocatedCount = int64(f.Own.Len())
	s.DelegatedCount = int64(f.Delegated)
	s.AllocatedCIDRs = f.Listed
	s.FreeCountBySize = counts(f.Own, true)
	s.AllocatableCountBySize = counts(f.All, false)
	s.UtilizationPercent = percent(f.All.Utilisation())
	s.FragmentationPercent = percent(f.All.Fragmentation())
	if p.DeletionTimestamp == nil {
		set(&s, p, v1alpha1.ConditionReady, metav1.ConditionTrue, ReasonReady, "blocks can be taken from this pool", now)
	} else {
		set(&s, p, v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonDeleting, "it hands out nothing more, and goes when nothing lives in it", now)
	}

	length := DefaultLength(p, f.All.Prefix())
	if left := f.All.FreeCount(length); left.IsZero() {
		set(&s, p, v1alpha1.ConditionExhausted, metav1.ConditionTrue, ReasonFull, fmt.Sprintf("no /%d is left", length), now)
	} else {
		set(&s, p, v1alpha1.ConditionExhausted, metav1.ConditionFalse, ReasonSpace, fmt.Sprintf("there are blocks of /%d left", length), now)
	}

	return s
}

// DefaultLength is the length of a block for a claim that names none: what the
// pool says, or what is usual, but never larger than the pool.
func DefaultLength(p *v1alpha1.SubnetPool, prefix netip.Prefix) int {
	length := defaultLength4
	if prefix.Addr().Is6() {
		length = defaultLength6
	}
	if p.Spec.DefaultBlockSize != nil {
		length = int(*p.Spec.DefaultBlockSize)
	}

	return min(max(length, prefix.Bits()), prefix.Addr().BitLen())
}

// counts says how many blocks of each length are free, and under both spellings
// of the length where old readers look for them.
func counts(p *cidr.Pool, both bool) map[string]int64 {
	all := map[string]int64{}
	for length, n := range p.FreeCounts() {
		all[strconv.Itoa(length)] = n.Int64()
		if both {
			all["/"+strconv.Itoa(length)] = n.Int64()
		}
	}

	return all
}

func set(s *v1alpha1.SubnetPoolStatus, p *v1alpha1.SubnetPool, kind string, status metav1.ConditionStatus, reason, message string, now metav1.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: p.Generation, LastTransitionTime: now,
	})
}

// invalid says what is wrong with a pool's CIDR, and what would be right, as
// admission does.
func invalid(p *v1alpha1.SubnetPool) string {
	_, problem := read(p)
	if problem == nil {
		return fmt.Sprintf("%q cannot be used", p.Spec.CIDR)
	}

	return problem.Message + ": " + problem.Fix
}

func percent(share float64) int32 {
	return int32(share * 100)
}
