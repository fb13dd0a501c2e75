// Package testcluster reads a cluster that consists of objects, for tests of packages that
// need PodGroups and trials.
package testcluster
