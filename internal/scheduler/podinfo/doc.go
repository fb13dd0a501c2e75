// Package podinfo makes the form of a pod that the plugins of kube-scheduler read.
package podinfo
