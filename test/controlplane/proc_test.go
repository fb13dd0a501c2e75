package controlplane_test

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// children returns the processes of the control plane in dir, whichever process is their parent
// now: every one has a file of that directory in its arguments.
func children(t *testing.T, dir string) []int {
	t.Helper()
	var pids []int
	for pid, args := range processes(t) {
		if strings.Contains(args, dir) && !strings.Contains(args, "\x00up\x00") {
			pids = append(pids, pid)
		}
	}

	return pids
}

// child returns the process of one component, 0 if there is none.
func child(t *testing.T, dir, name string) int {
	t.Helper()
	for _, pid := range children(t, dir) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), "ARBOR_CHILD="+name) {
			return pid
		}
	}

	return 0
}

// processes maps every process that lives to its arguments.
func processes(t *testing.T) map[int]string {
	t.Helper()
	all := map[int]string{}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		// One that ends while we look, or is dead already, has no arguments.
		if args, err := os.ReadFile(file); err == nil && len(args) > 0 {
			all[pid] = string(args)
		}
	}

	return all
}

// listening returns the addresses on which processes listen.
func listening(t *testing.T, pids []int) []net.IP {
	t.Helper()
	sockets := map[string]bool{}
	for _, pid := range pids {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
				sockets[strings.Trim(strings.TrimPrefix(target, "socket:"), "[]")] = true
			}
		}
	}
	var addresses []net.IP
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a machine without IPv6
		}
		for _, line := range strings.Split(string(data), "\n")[1:] {
			const local, state, inode = 1, 3, 9
			fields := strings.Fields(line)
			if len(fields) > inode && fields[state] == "0A" && sockets[fields[inode]] {
				addresses = append(addresses, parseAddress(t, fields[local]))
			}
		}
	}
	if len(addresses) == 0 {
		t.Fatal("nothing listens at all")
	}

	return addresses
}

// parseAddress reads an address as the kernel writes it: hexadecimal, in words
// of four bytes, each the wrong way round.
func parseAddress(t *testing.T, s string) net.IP {
	t.Helper()
	host, _, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}

	return net.IP(raw)
}
