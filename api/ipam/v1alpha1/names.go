package v1alpha1

// Labels and finalizers of this group.
const (
	// ParentLabel on a SubnetPool names the pool it was taken from; spec.parent
	// says the same and goes first.
	ParentLabel = "plexaubnet.io/parent"
	// IPAMLabel marks child pools.
	IPAMLabel = "plexaubnet.io/ipam"
	// ClusterIDLabel on a Subnet repeats its clusterID, for selectors.
	ClusterIDLabel = "plexaubnet.io/cluster-id"
	// Finalizer keeps addresses from being handed out again while something
	// still lives in them.
	Finalizer = "ipam.plexaubnet.io/finalizer"
)

// Annotations and labels that let a backup with new UIDs come back as it was.
const (
	// BlockAnnotation on a SubnetClaim records the block that it has, as POOL/CIDR.
	BlockAnnotation = "ipam.plexaubnet.io/block"
	// PoolUIDAnnotation on a SubnetPool records its UID. A pool with the UID of
	// another was restored.
	PoolUIDAnnotation = "ipam.plexaubnet.io/pool-uid"
	// PoolClaimLabel on a SubnetClaim and on a SubnetPool names the
	// SubnetPoolClaim that they were made for.
	PoolClaimLabel = "ipam.plexaubnet.io/pool-claim"
)

// Condition types.
const (
	// ConditionReady is True when the object does what it is for: a pool can
	// be allocated from, a claim is bound, a Subnet is allocated.
	ConditionReady = "Ready"
	// ConditionExhausted on a pool is True when no block of its default size
	// is left.
	ConditionExhausted = "Exhausted"
)

// ClaimPhase is where a claim is in its life.
//
// +kubebuilder:validation:Enum=Pending;Bound;Error
type ClaimPhase string

// Phases of a claim.
const (
	// ClaimPending waits: for its pool, for space, or for its turn.
	ClaimPending ClaimPhase = "Pending"
	// ClaimBound has its block.
	ClaimBound ClaimPhase = "Bound"
	// ClaimError cannot be served as it is written.
	ClaimError ClaimPhase = "Error"
)

// SubnetPhase is where a Subnet is in its life.
//
// +kubebuilder:validation:Enum=Pending;Allocated;Failed
type SubnetPhase string

// Phases of a Subnet.
const (
	// SubnetPending has not been judged. Nobody may use it yet.
	SubnetPending SubnetPhase = "Pending"
	// SubnetAllocated overlaps no other allocated Subnet, now or ever.
	SubnetAllocated SubnetPhase = "Allocated"
	// SubnetFailed lost against another Subnet, or lies outside of its pool.
	// It is final, and counts as absent.
	SubnetFailed SubnetPhase = "Failed"
)
