package v1alpha1

// Labels and finalizers of this group.
const (
	// ParentLabel on a SubnetPool names its parent pool. It is ignored if spec.parent
	// is set.
	ParentLabel = "plexaubnet.io/parent"
	// IPAMLabel marks child pools.
	IPAMLabel = "plexaubnet.io/ipam"
	// ClusterIDLabel on a Subnet repeats its clusterID, for selectors.
	ClusterIDLabel = "plexaubnet.io/cluster-id"
	// Finalizer prevents addresses from being allocated again while they are in use.
	Finalizer = "ipam.plexaubnet.io/finalizer"
)

// Annotations and labels by which objects that are restored from a backup, with new
// UIDs, are matched to each other.
const (
	// BlockAnnotation on a SubnetClaim records its block, as POOL/CIDR.
	BlockAnnotation = "ipam.plexaubnet.io/block"
	// PoolUIDAnnotation on a SubnetPool records its UID. If it differs from the UID of the
	// pool, the pool was restored.
	PoolUIDAnnotation = "ipam.plexaubnet.io/pool-uid"
	// PoolClaimLabel on a SubnetClaim and on a SubnetPool names the SubnetPoolClaim
	// that they were created for.
	PoolClaimLabel = "ipam.plexaubnet.io/pool-claim"
)

// Condition types.
const (
	// ConditionReady is True if blocks can be allocated from a pool, a claim is
	// bound, or a Subnet is allocated.
	ConditionReady = "Ready"
	// ConditionExhausted on a pool is True if no block of its default size is free.
	ConditionExhausted = "Exhausted"
)

// ClaimPhase is the phase of a claim.
//
// +kubebuilder:validation:Enum=Pending;Bound;Error
type ClaimPhase string

// Phases of a claim.
const (
	// ClaimPending means that the claim waits for its pool, for free space, or for
	// earlier claims.
	ClaimPending ClaimPhase = "Pending"
	// ClaimBound means that the claim has its block.
	ClaimBound ClaimPhase = "Bound"
	// ClaimError means that the claim cannot be bound as specified.
	ClaimError ClaimPhase = "Error"
)

// SubnetPhase is the phase of a Subnet.
//
// +kubebuilder:validation:Enum=Pending;Allocated;Failed
type SubnetPhase string

// Phases of a Subnet.
const (
	// SubnetPending means that the Subnet has not been checked for overlaps. It must
	// not be used yet.
	SubnetPending SubnetPhase = "Pending"
	// SubnetAllocated means that the Subnet is usable. It never overlaps another
	// allocated Subnet.
	SubnetAllocated SubnetPhase = "Allocated"
	// SubnetFailed means that the Subnet overlaps another Subnet, or is outside of its
	// pool. The phase is final, and the Subnet is ignored.
	SubnetFailed SubnetPhase = "Failed"
)
