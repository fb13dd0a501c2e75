// Package v1alpha1 holds the address API, group plexaubnet.io.
//
//	SubnetPool ──▶ Subnet ◀── SubnetClaim      a block allocated from a pool
//	    │
//	    └──▶ SubnetPool ◀── SubnetPoolClaim    a child pool allocated from a pool
//
// A SubnetPool is a CIDR from which blocks are allocated. A Subnet is one such
// block; a SubnetClaim requests one, and a SubnetPoolClaim requests a child pool.
// References are names in the same namespace.
//
// Manifests written for plexaubnet apply unchanged. Block sizes are extended
// from 16..28 to every length of IPv4 and IPv6, and fields that were documented
// as immutable are immutable by validation.
//
// +kubebuilder:object:generate=true
// +groupName=plexaubnet.io
package v1alpha1
