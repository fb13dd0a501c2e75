// Package linter checks manifests without a cluster: their schema, the rules that admission applies, and what
// objects of several files mean for each other.
package linter
