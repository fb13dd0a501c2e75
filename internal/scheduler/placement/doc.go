// Package placement finds nodes for the pods of a gang.
//
// A [Fitter] chooses the node of one pod with the plugins of kube-scheduler. A [World] holds
// the places of a gang that is tried, and gives them back if the gang does not fit. Both work
// on the cache of the scheduler in its cycle, and on the copy of a [Trial] for questions.
package placement
