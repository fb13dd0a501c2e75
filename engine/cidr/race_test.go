//go:build race

package cidr_test

// The race detector makes the twin ten times slower, and has nothing to find
// in pools that are used by one goroutine.
func init() { seeds, steps = 4, 400 }
