package show

import "fmt"

// Count writes a number with its noun: 1 file, 2 files.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

// Verb writes a number with its noun and what it does: 1 claim waits, 2 claims
// wait.
func Verb(n int, noun, one, many string) string {
	if n == 1 {
		return Count(n, noun) + " " + one
	}

	return Count(n, noun) + " " + many
}
