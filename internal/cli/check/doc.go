// Package check turns untyped objects into findings, by the rules that admission applies. lint, audit and
// pools check share it.
package check
