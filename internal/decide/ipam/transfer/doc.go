// Package transfer moves pools and blocks between clusters and other address management.
//
//	rows     what CSV, NetBox and AWS know: pools, and blocks with their owners
//	objects  what Kubernetes knows, without what only one cluster can know
//	plan     the objects that must be created, and those that do not fit
//
// All of it are functions of bytes and objects; callers read and write.
package transfer
