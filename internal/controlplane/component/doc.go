// Package component is what a child of the control plane runs: a component of
// Kubernetes as its project builds it, with the command line that Run is
// given. It is the only package of Arbor's that links Kubernetes itself.
package component
