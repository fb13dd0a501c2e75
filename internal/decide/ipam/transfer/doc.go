// Package transfer moves pools and blocks between clusters and other address management.
//
//	rows     what CSV, NetBox and AWS know: pools, and blocks with their owners
//	objects  what Kubernetes knows, without what only one cluster can know
//	plan     which objects are to be created, and which do not fit
//
// All of it are functions of bytes and objects; reading and writing is for others.
package transfer
