package executor

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// executionVariable marks every process that a program starts, whatever group or session
// it is in: children inherit it.
const executionVariable = "ARBOR_EXECUTION"

// maxRounds bounds how often processes are looked for which a program has left behind: one
// may start another one while it is killed.
const maxRounds = 10

// newExecution returns a marker of one run of a program.
func newExecution() string { return executionVariable + "=" + rand.Text() }

// killMarked kills the processes that have a marker in their environment.
func killMarked(marker string) {
	for range maxRounds {
		found := marked(marker)
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended since
		}
	}
}

// marked returns the processes that have a marker in their environment.
func marked(marker string) []int {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var found []int
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Those of other users cannot be read, and those that have ended have none.
		environment, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && hasVariable(environment, marker) {
			found = append(found, pid)
		}
	}

	return found
}

func hasVariable(environment []byte, variable string) bool {
	for one := range bytes.SplitSeq(environment, []byte{0}) {
		if string(one) == variable {
			return true
		}
	}

	return false
}
