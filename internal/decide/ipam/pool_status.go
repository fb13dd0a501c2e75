package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
)

// MaxListedBlocks is how many blocks a status lists. A pool may have tens of
// thousands, and an object of that size could not be stored.
const MaxListedBlocks = 256

// Default lengths of a block, where neither claim nor pool specifies one.
const (
	defaultLength4 = 24
	defaultLength6 = 64
)

// PoolFigures are the counts of a pool. All is nil when the pool's CIDR is invalid.
type PoolFigures struct {
	// All is every taken block, Own those that are not delegated.
	All, Own *cidr.Pool
	// Delegated is the number of child pools.
	Delegated int
	// Listed maps the first blocks to the objects that have them.
	Listed map[string]string
}

// DecidedStatus returns the status of a pool with a decision in it. All figures stay as
// they are: Clear must be written without them, because it only makes the pool a
// candidate of a new version. The maps in it are those of the pool.
func DecidedStatus(p *v1alpha1.SubnetPool, v PoolDecision, now metav1.Time) v1alpha1.SubnetPoolStatus {
	s := p.Status
	s.Conditions = slices.Clone(s.Conditions)
	switch v.Action {
	case Grant:
		s.CIDR, s.UID, s.Parent, s.Lost = p.Spec.CIDR, p.UID, p.ParentName(), 0
	case Reject:
		s.Lost = p.Generation
		set(&s, p, v1alpha1.ConditionReady, metav1.ConditionFalse, v.Reason, v.Message+served(p), now)
	case Clear:
		s.Lost = 0
	case Keep, NeedsList:
	}

	return s
}

// served returns, as the end of a message, from which addresses a pool allocates after its new
// range was rejected.
func served(p *v1alpha1.SubnetPool) string {
	has := open(p)
	wants, problem := read(p)
	switch {
	case !has.IsValid() || problem != nil:
		return ""
	case within(has, wants):
		return fmt.Sprintf("; claims are still served from %s", wants)
	case within(wants, has):
		return fmt.Sprintf("; claims are still served from %s", has)
	default:
		return fmt.Sprintf("; no claims are served, because the pool has %s and asks for other addresses", has)
	}
}

// IsRestoring reports whether a pool comes from a backup and its Subnets may not all
// be back yet. Claims get no blocks from it except for those that they had.
func IsRestoring(p *v1alpha1.SubnetPool) bool {
	recorded := p.Annotations[v1alpha1.PoolUIDAnnotation]

	return recorded != "" && recorded != string(p.UID)
}

// PoolStatus returns the status that belongs on the pool now. The decision in it is
// that of the pool's status; put a new one there first, with DecidedStatus.
func PoolStatus(p *v1alpha1.SubnetPool, f PoolFigures, now metav1.Time) v1alpha1.SubnetPoolStatus {
	s := v1alpha1.SubnetPoolStatus{
		ObservedGeneration: p.Generation,
		CIDR:               p.Open(), UID: p.Status.UID, Parent: p.Status.Parent,
	}
	if s.CIDR == "" {
		s.UID, s.Parent = "", ""
	}
	if IsLost(p) && s.CIDR != p.Spec.CIDR {
		s.Lost = p.Status.Lost
	}
	for _, c := range p.Status.Conditions {
		s.Conditions = append(s.Conditions, *c.DeepCopy())
	}
	ready(&s, p, now)
	if f.All == nil {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionExhausted) // of what it was before

		return s
	}

	s.AllocatedCount = int64(f.Own.Len())
	s.DelegatedCount = int64(f.Delegated)
	s.AllocatedCIDRs = f.Listed
	s.FreeCountBySize = counts(f.Own, true)
	s.AllocatableCountBySize = counts(f.All, false)
	s.UtilizationPercent = percent(f.All.Utilization())
	s.FragmentationPercent = percent(f.All.Fragmentation())

	length := DefaultBlockLength(p, f.All.Prefix())
	if left := f.All.FreeCount(length); left.IsZero() {
		set(&s, p, v1alpha1.ConditionExhausted, metav1.ConditionTrue, ReasonFull, fmt.Sprintf("no /%d is left", length), now)
	} else {
		set(&s, p, v1alpha1.ConditionExhausted, metav1.ConditionFalse, ReasonSpace, fmt.Sprintf("there are blocks of /%d left", length), now)
	}

	return s
}

// ready sets the condition Ready. If the pool was rejected, the condition stays as DecidedStatus
// has written it.
func ready(s *v1alpha1.SubnetPoolStatus, p *v1alpha1.SubnetPool, now metav1.Time) {
	_, problem := read(p)
	switch {
	case p.DeletionTimestamp != nil:
		set(s, p, v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonDeleting, "it allocates no more blocks, and is removed when none is left in it", now)
	case s.Lost != 0 && meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionReady):
	case problem != nil:
		set(s, p, v1alpha1.ConditionReady, metav1.ConditionFalse, problem.Reason, problem.Message+": "+problem.Fix+served(p), now)
	case s.CIDR == p.Spec.CIDR:
		set(s, p, v1alpha1.ConditionReady, metav1.ConditionTrue, ReasonReady, "blocks can be taken from this pool", now)
	default:
		set(s, p, v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonJudging,
			fmt.Sprintf("whether %s is free is being decided", p.Spec.CIDR)+served(p), now)
	}
}

// DefaultBlockLength returns the length of a block for a claim that names none: that of the pool,
// or the usual one, but never larger than the pool.
func DefaultBlockLength(p *v1alpha1.SubnetPool, prefix netip.Prefix) int {
	length := defaultLength4
	if prefix.Addr().Is6() {
		length = defaultLength6
	}
	if p.Spec.DefaultBlockSize != nil {
		length = int(*p.Spec.DefaultBlockSize)
	}

	return min(max(length, prefix.Bits()), prefix.Addr().BitLen())
}

// counts returns how many blocks of each length are free, with both forms of the length where old
// readers need them.
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

func percent(share float64) int32 {
	return int32(share * 100)
}
