// Package lint is the command that checks manifests without a cluster.
package lint
