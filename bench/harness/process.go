package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CPU is the processor time of a process so far, in milliseconds.
func CPU(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const user, system, tick = 11, 12, 10 // fields behind the name, and a tick in milliseconds
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	var sum float64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, err
		}
		sum += n * tick
	}

	return sum, nil
}

// ProcessKilobytes is a figure in kB from the status of a process.
func ProcessKilobytes(pid int, key string) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}

	return strconv.ParseFloat(strings.TrimSuffix(Field(string(data), key), " kB"), 64)
}

// Children are the processes that a process has started.
func Children(parent int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil || Field(string(status), "PPid:") != strconv.Itoa(parent) {
			continue // it has ended, or belongs to another process
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}

	return pids, nil
}

// Field returns the value of the line of a /proc file that begins with a key.
func Field(text, key string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(value)
		}
	}

	return ""
}
