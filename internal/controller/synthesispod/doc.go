// Package synthesispod gives every synthesis in flight a pod, and takes away the
// pods that no synthesis needs.
//
// It goes by what is there and remembers nothing: decide.Pods looks at a
// composition, its Synthesizer and its pods, and says what is missing and what is
// too much. The name of a pod follows from its synthesis, so the API server sees
// to it that there is one, whoever else makes it at the same time. Before
// anything is done, what was decided on the cache is decided again on what the API
// server has.
//
// What becomes of the synthesis, its pod writes to the composition: see package
// publisher. If it ends without having done so, or cannot begin, the synthesis is
// given up here, with what the kubelet says about that.
package synthesispod
