// Package check finds what is wrong with the pools, Subnets and claims of a cluster. audit and pools check
// share it.
package check
