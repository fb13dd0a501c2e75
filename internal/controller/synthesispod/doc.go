// Package synthesispod creates a pod for every synthesis in flight, and deletes the pods that no
// synthesis needs.
//
// It keeps no state: decide.Pods compares a composition, its Synthesizer and its pods, and returns
// which pods are missing and which are surplus. The name of a pod follows from its synthesis, so
// two managers cannot create two of them. Before anything is written, the decision that was made
// on the cache is made again on what the API server has.
//
// The pod writes the result of the synthesis to the composition: see package executorpod. If it
// ends without having done so, or cannot start, the synthesis is given up here, with the message
// of the kubelet.
package synthesispod
