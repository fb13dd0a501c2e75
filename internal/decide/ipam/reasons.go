package ipam

// Reasons that several kinds have.
const (
	ReasonInvalidCIDR    = "InvalidCIDR"
	ReasonNotMasked      = "NotMasked"
	ReasonOverlap        = "Overlap"
	ReasonOutsidePool    = "OutsidePool"
	ReasonPoolNotFound   = "PoolNotFound"
	ReasonPoolNotReady   = "PoolNotReady"
	ReasonClusterIDInUse = "ClusterIDInUse"
)

// Reasons of the conditions Ready and Exhausted of a pool.
const (
	ReasonReady    = "Ready"
	ReasonDeleting = "Deleting"
	ReasonFull     = "NoBlockLeft"
	ReasonSpace    = "BlocksLeft"
)

// Reasons to reject a pool, or not to open it yet.
const (
	ReasonBlockSize     = "InvalidBlockSize"
	ReasonOutsideParent = "OutsideParent"
	ReasonCycle         = "ParentCycle"
	ReasonInUse         = "InUse"
	ReasonMapped        = "IPv4AsIPv6"
	ReasonJudging       = "Judging"
	ReasonNoParent      = "NoParent"
	ReasonOutsideBlock  = "OutsideBlock"
	ReasonOrphans       = "Orphans"
)

// ReasonParentNotFound is a warning: the parent of a pool may be created later.
const ReasonParentNotFound = "ParentNotFound"

// Reasons of a Subnet.
const (
	ReasonAllocated    = "Allocated"
	ReasonPoolDeleting = "PoolDeleting"
	ReasonVersion      = "InvalidResourceVersion"
	ReasonDelegated    = "Delegated"
)

// Reasons of the condition Ready of a claim.
const (
	ReasonBound         = "Allocated"
	ReasonPoolInvalid   = "PoolInvalid"
	ReasonPoolRestoring = "PoolRestoring"
	ReasonExhausted     = "PoolExhausted"
	ReasonTaken         = "RequestedCIDRTaken"
	ReasonRecordTaken   = "RecordedBlockTaken"
	ReasonInvalidRecord = "InvalidRecord"
	ReasonSizeRefused   = "BlockSizeRefused"
	ReasonNotCreated    = "NotCreated"
	ReasonSubnetLost    = "SubnetLost"
)
