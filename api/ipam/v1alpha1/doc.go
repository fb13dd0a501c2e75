// Package v1alpha1 holds the address API, group plexaubnet.io.
//
//	SubnetPool ──▶ Subnet ◀── SubnetClaim      a block taken from a pool
//	    │
//	    └──▶ SubnetPool ◀── SubnetPoolClaim    a pool taken from a pool
//
// A SubnetPool is a prefix that blocks are taken from. A Subnet is one such
// block; a SubnetClaim asks for one, a SubnetPoolClaim for a pool of its own.
// References are names in the same namespace.
//
// Manifests written for plexaubnet apply unchanged. Block sizes are widened
// from 16..28 to every length of IPv4 and IPv6, and what was immutable by
// comment is immutable by rule.
//
// +kubebuilder:object:generate=true
// +groupName=plexaubnet.io
package v1alpha1
