// Package ipam measures the allocation of addresses: the engine, Subnets, SubnetClaims and
// SubnetPools.
package ipam
