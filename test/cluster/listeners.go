package cluster

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// address is where the API server listens.
func (u *Up) address() (hostPort string, port int, err error) {
	target, err := url.Parse(u.Config.Host)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(target.Port())

	return target.Host, port, err
}

// Etcd returns the address of etcd, which shares a process with the API server and listens on any
// free port, and the directory of its certificates: etcd.crt, etcd.key and etcd-ca.crt.
func (u *Up) Etcd() (address, pki string, err error) {
	pid, err := u.Child("kube-apiserver")
	if err != nil {
		return "", "", err
	}
	_, own, err := u.address()
	if err != nil {
		return "", "", err
	}
	ports, err := listening(pid)
	if err != nil {
		return "", "", err
	}
	for _, port := range ports {
		if port != own {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), filepath.Join(u.Dir, "pki"), nil
		}
	}

	return "", "", fmt.Errorf("process %d listens on %v: none is etcd's", pid, ports)
}

// listening are the TCP ports of 127.0.0.1 on which a process listens.
func listening(pid int) ([]int, error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	files, err := filepath.Glob(filepath.Join(dir, "fd", "*"))
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil {
			mine[target] = true
		}
	}
	table, err := os.ReadFile(filepath.Join(dir, "net", "tcp"))
	if err != nil {
		return nil, err
	}
	var ports []int
	for line := range strings.Lines(string(table)) {
		const local, state, inode, listens = 1, 3, 9, "0A"
		columns := strings.Fields(line)
		if len(columns) <= inode || columns[state] != listens || !mine["socket:["+columns[inode]+"]"] {
			continue
		}
		_, hex, _ := strings.Cut(columns[local], ":")
		port, err := strconv.ParseInt(hex, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", line, err)
		}
		ports = append(ports, int(port))
	}

	return ports, nil
}
