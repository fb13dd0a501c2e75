package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// starter starts programs on one thread that lives as long as this process: the kernel
// kills a program when the thread that started it ends (Pdeathsig), also by kill -9.
// Components of a control plane end with their arbor up, programs of a manager with it.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // and it is never unlocked
		for do := range work {
			do()
		}
	}()

	return work
})

// start starts a program that does not outlive this process, in a process group of its own.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }

	return <-done
}

// cleanUpWhenKilled calls a function, and exits, when this process is asked to end, or
// when the go command that started it is killed, which would leave it running.
func cleanUpWhenKilled(cleanUp func()) {
	killed := make(chan os.Signal, 1)
	signal.Notify(killed, syscall.SIGTERM, syscall.SIGINT)
	parent := os.Getppid()
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	byGo := strings.TrimSpace(string(name)) == "go"
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		for !byGo || os.Getppid() == parent {
			select {
			case <-killed:
				byGo, parent = true, -1
			case <-tick.C:
			}
		}
		cleanUp()
		os.Exit(1) //nolint:revive // the goroutine of main is in a test
	}()
}
