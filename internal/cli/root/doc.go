// Package root assembles the commands of Arbor into one command line. arbor and the slim
// kubectl-arbor differ only in what they pass to New: arbor adds a control plane and the
// simulation of scheduling, which link Kubernetes itself.
package root
