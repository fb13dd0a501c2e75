// Package podgroups has every PodGroup with its pods, from informers. Pods that are being
// bound or evicted by this process count as such before the API server knows.
package podgroups
