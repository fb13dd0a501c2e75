// Package plainpreemption is DefaultPreemption for clusters with gangs. Pods without a
// PodGroup preempt with it, and gangs are preempted in parts that they can lose.
package plainpreemption
