//go:build race

package fields_test

// The race detector makes everything ten times slower, and has nothing to find
// in functions of their arguments.
func init() { rounds = 60 }
