// Package dump makes a cluster of objects that were read from files. It knows every kind
// that a plugin of kube-scheduler reads.
package dump
