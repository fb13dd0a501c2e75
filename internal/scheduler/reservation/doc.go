// Package reservation keeps room on nodes for gangs whose victims terminate. To the filters
// of kube-scheduler, a reserved place is a nominated pod that has the priority of its gang.
package reservation
