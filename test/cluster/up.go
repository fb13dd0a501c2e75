package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// An Up is a running `arbor up`.
type Up struct {
	*Process

	Dir        string
	Kubeconfig string
	Config     *rest.Config

	releases releases
}

// Main runs the tests of a package on one control plane, which server points to. It returns the
// code to exit with. m is a testing.M, or another program that uses the control plane before it
// runs one.
func Main(m interface{ Run() int }, server **Up, args ...string) int {
	dir, err := os.MkdirTemp("", "arbor-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var running atomic.Pointer[Up]
	cleanUpWhenKilled(func() {
		if up := running.Load(); up != nil {
			up.Stop() // it writes to the directory until then
		}
		_ = os.RemoveAll(dir)
	})
	up, err := Start(dir, append([]string{"--unsafe-no-fsync"}, args...)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}
	defer up.Stop()

	running.Store(up)
	*server = up
	code := m.Run()
	found := races.all()
	if len(found) > 0 {
		code = max(code, 1)
	}
	if code != 0 {
		up.DumpLogs()
	}
	if len(found) > 0 { // last, where it is seen
		fmt.Fprintf(os.Stderr, "--- %d data races in programs under test\n%s\n", len(found), strings.Join(found, "\n"))
	}

	return code
}

// Start starts `arbor up` on a directory and waits until it is ready.
func Start(dir string, args ...string) (*Up, error) {
	binary, err := Binary("arbor", "ARBOR")
	if err != nil {
		return nil, err
	}
	u := &Up{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	// One that was killed left its file, which does not describe this one.
	_ = os.Remove(u.Kubeconfig)
	u.Process, err = StartProcess(binary, append([]string{"up", "--dir=" + dir}, args...)...)
	if err != nil {
		return nil, err
	}
	if err := u.await(); err != nil {
		u.DumpLogs()
		u.Stop()

		return nil, err
	}

	return u, nil
}

// await waits for the kubeconfig, which appears when all is ready.
func (u *Up) await() error {
	err := poll("arbor up is ready", u.Done(), func() error {
		config, err := clientcmd.BuildConfigFromFlags("", u.Kubeconfig)
		if err != nil {
			return err
		}
		config.QPS = -1
		u.Config = config

		return nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, u.Output())
	}

	return nil
}

// DumpLogs prints the ends of all logs, to debug a failed test.
func (u *Up) DumpLogs() {
	fmt.Fprintf(os.Stderr, "--- arbor up\n%s", u.Output())
	logs, err := filepath.Glob(filepath.Join(u.Dir, "logs", "*.log"))
	if err != nil {
		return
	}
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			continue
		}
		const end = 4 << 10
		fmt.Fprintf(os.Stderr, "--- %s\n%s\n", filepath.Base(log), data[max(0, len(data)-end):])
	}
}
