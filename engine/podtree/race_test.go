//go:build race

package podtree_test

// The race detector makes big maps ten times slower, and has nothing to find
// in a chain that is read by one goroutine.
func init() { veryDeep = 100_000 }
