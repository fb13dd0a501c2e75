package executor

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// executionVariable marks every process that a program starts, whatever group or session
// it is in: children inherit it.
const executionVariable = "ARBOR_EXECUTION"

// maxRounds bounds how often processes are looked for which a program has left behind: one
// may start another one while it is killed.
const maxRounds = 10

// newExecution returns a marker of one run of a program, which names the process that runs it.
func newExecution() string {
	return executionVariable + "=" + ownerOf(os.Getpid()) + separator + rand.Text()
}

// separator is between the parts of a marker.
const separator = "."

// procOf is where the kernel shows a process.
func procOf(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// ownerOf identifies a process: its number may be used again, but not with the time of its start.
// It is "" if there is no such process.
func ownerOf(pid int) string {
	stat, err := os.ReadFile(procOf(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name of the program is in parentheses, and may have any character. The start is the
	// 22nd field, the 20th after the name.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}

	return strconv.Itoa(pid) + separator + string(fields[19])
}

// KillAbandoned kills the processes that programs have left behind because the process that ran the
// programs was killed, and returns how many. It is for the start of a manager that runs programs itself.
func KillAbandoned() int {
	killed := 0
	for range maxRounds {
		// In another PID namespace, the owner of a marker has another number.
		found := slices.DeleteFunc(find(isAbandoned), func(pid int) bool { return namespaceOf(pid) != namespaceOf(os.Getpid()) })
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			if kill(pid) == nil {
				killed++
			}
		}
	}

	return killed
}

// namespaceOf identifies the PID namespace of a process.
func namespaceOf(pid int) string {
	space, err := os.Readlink(procOf(pid) + "/ns/pid")
	if err != nil {
		return err.Error()
	}

	return space
}

// isAbandoned reports whether the process that runs the program of a marker does not exist any more.
func isAbandoned(value string) bool {
	parts := strings.Split(value, separator)
	if len(parts) != 3 {
		return false // of an earlier release
	}
	pid, err := strconv.Atoi(parts[0])

	return err == nil && ownerOf(pid) != parts[0]+separator+parts[1]
}

// killMarked kills the processes that have a marker in their environment.
func killMarked(marker string) {
	for range maxRounds {
		found := find(func(value string) bool { return executionVariable+"="+value == marker })
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = kill(pid) // it may have ended since
		}
	}
}

// find returns the processes whose marker has a value that matches.
func find(matches func(value string) bool) []int {
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
		if err == nil && hasVariable(environment, matches) {
			found = append(found, pid)
		}
	}

	return found
}

func hasVariable(environment []byte, matches func(value string) bool) bool {
	for one := range bytes.SplitSeq(environment, []byte{0}) {
		if value, ok := strings.CutPrefix(string(one), executionVariable+"="); ok && matches(value) {
			return true
		}
	}

	return false
}
