package audit

import (
	"cmp"
	"slices"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// An Inventory is all IPAM objects, of any number of namespaces, in any order. Of two
// objects with one name the last counts.
type Inventory struct {
	Pools      []v1alpha1.SubnetPool
	Subnets    []v1alpha1.Subnet
	Claims     []v1alpha1.SubnetClaim
	PoolClaims []v1alpha1.SubnetPoolClaim
}

// Severity of a finding.
type Severity string

// An error is wrong now. A warning may resolve itself, or never matter.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Reasons of two objects that have the same addresses. The rules for pools, Subnets and claims have
// further reasons.
const (
	ReasonOverlap   = "Overlap"
	ReasonDelegated = "Delegated"
)

// Reasons of something without what it was taken from or for.
const (
	ReasonPoolNotFound      = "PoolNotFound"
	ReasonClaimNotFound     = "ClaimNotFound"
	ReasonClaimReplaced     = "ClaimReplaced"
	ReasonPoolClaimNotFound = "PoolClaimNotFound"
	ReasonBlockNotFound     = "BlockNotFound"
)

// Reasons of a status that is not true.
const (
	ReasonSubnetLost         = "SubnetLost"
	ReasonSubnetNotAllocated = "SubnetNotAllocated"
	ReasonSubnetOfAnother    = "SubnetOfAnother"
	ReasonSeveralSubnets     = "SeveralSubnets"
	ReasonCIDRDiffers        = "CIDRDiffers"
	ReasonStatusDiffers      = "StatusDiffers"
	ReasonConditionDiffers   = "ConditionDiffers"
)

// Reasons of pools that allocate nothing new, and of objects that hold their blocks.
const (
	// ReasonNotOpened means that Arbor has rejected the range of a pool.
	ReasonNotOpened = "NotOpened"
	// ReasonStaysClosed is of a pool that an upgrade would leave closed.
	ReasonStaysClosed = "StaysClosed"
	// ReasonNotBacked is of a child pool whose block no Subnet of its parent holds.
	ReasonNotBacked = "NotBacked"
	// ReasonChildNotFound is of a Subnet that holds the block of a pool that is gone.
	ReasonChildNotFound = "ChildNotFound"
	// ReasonUnclaimed is of a Subnet that is kept although its claim is not there.
	ReasonUnclaimed = "Unclaimed"
	// ReasonOwnerReferences is of objects that a garbage collector deletes after a restore.
	ReasonOwnerReferences = "OwnerReferences"
)

// Reasons of warnings: something waits, or whatever has no reason of its own.
const (
	ReasonNotJudged    = "NotJudged"
	ReasonStatusBehind = "StatusBehind"
	ReasonWarning      = "Warning"
)

// Fields that findings are about.
const (
	fieldCIDR      = "spec.cidr"
	fieldPoolRef   = "spec.poolRef"
	fieldClaimRef  = "spec.claimRef"
	fieldPhase     = "status.phase"
	fieldSubnetRef = "status.subnetRef"
	fieldAllocated = "status.allocatedCIDR"
	fieldBoundPool = "status.boundPoolName"
	fieldObserved  = "status.observedGeneration"
	fieldOwners    = "metadata.ownerReferences"
	fieldParent    = "spec.parent"
	fieldBacks     = "spec.backs"
	fieldLost      = "status.lost"
	fieldPoolClaim = "metadata.labels[" + v1alpha1.PoolClaimLabel + "]"
)

// An Object is the object that a finding is about.
type Object struct {
	Kind, Namespace, Name string
}

// A Finding is one thing that is wrong with one object.
type Finding struct {
	Severity Severity
	Object   Object
	// Reason is one word for machines.
	Reason string
	// Field that it is about, and its value.
	Field, Value string
	// Message is the problem, Fix is how to repair it.
	Message, Fix string
}

// findings collects the findings of many objects.
type findings []Finding

func (f *findings) add(s Severity, o Object, p verdict.Problem) {
	*f = append(*f, Finding{Severity: s, Object: o, Reason: p.Reason, Field: p.Field, Value: p.Value, Message: p.Message, Fix: p.Fix})
}

// verdict adds the problems and warnings that the rules find in an object.
func (f *findings) verdict(o Object, v verdict.Verdict) {
	for _, p := range v.Problems {
		f.add(SeverityError, o, p)
	}
	for _, w := range v.Warnings {
		f.add(SeverityWarning, o, verdict.Problem{Reason: cmp.Or(w.Reason, ReasonWarning), Field: w.Field, Message: w.Message})
	}
}

// sorted returns findings by namespace, kind and name, and for one object in the order in which
// they were added.
func (f *findings) sorted() []Finding {
	kinds := []string{v1alpha1.SubnetPoolKind, v1alpha1.SubnetKind, v1alpha1.SubnetClaimKind, v1alpha1.SubnetPoolClaimKind}
	slices.SortStableFunc(*f, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(slices.Index(kinds, a.Object.Kind), slices.Index(kinds, b.Object.Kind)),
			cmp.Compare(a.Object.Name, b.Object.Name),
		)
	})

	return *f
}
