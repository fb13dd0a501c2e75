// Package memlimit keeps Go's heap below the memory limit of a container. Without it the
// garbage collector waits until the heap has doubled, and the kernel may end the process
// although most of its memory is garbage.
package memlimit

import (
	"fmt"
	"runtime/debug"
	"strconv"
)

const (
	// Variable is the environment variable with the limit of the container, in bytes. The
	// chart sets it from the container's own limit.
	Variable = "ARBOR_MEMORY_LIMIT"
	// override is Go's own variable, which counts more.
	override = "GOMEMLIMIT"
	// percent of the limit are for Go. The rest is for what its collector does not
	// manage, such as the program itself and stacks of the kernel.
	percent = 90
)

// Apply sets the soft memory limit of this process from its environment.
func Apply(getenv func(string) string) error {
	limit, err := soft(getenv)
	if err != nil || limit == 0 {
		return err
	}
	debug.SetMemoryLimit(limit)

	return nil
}

// soft returns the limit for Go, 0 if there is none to set.
func soft(getenv func(string) string) (int64, error) {
	text := getenv(Variable)
	if text == "" || getenv(override) != "" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("%s %q: it must be a number of bytes above 0, such as 1073741824", Variable, text)
	}

	return limit / 100 * percent, nil
}
