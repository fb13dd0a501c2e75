package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// variable is the environment variable with the role of a process, none for outside.
const variable = "ARBOR_SANDBOX"

// Roles of a process.
const (
	roleJanitor = "janitor"
	roleInit    = "init"
	roleInside  = "inside"
	roleTry     = "try" // does what init does, and then ends
)

// namespaces are those that init starts in. It makes the cgroup namespace itself, once it is
// in its cgroups.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// nameVariable is the environment variable with the name of the sandbox.
const nameVariable = "ARBOR_SANDBOX_NAME"

// prefix is that of errors of a sandbox.
const prefix = "sandbox: "

// Main runs the tests of a package in a sandbox and returns the code to exit with. It skips
// them, with one line, when this machine lacks something; with CI=true that is a failure.
// Programs are files that must exist, with the command that makes them.
func Main(m interface{ Run() int }, programs ...Program) int {
	var code int
	var err error
	switch os.Getenv(variable) {
	case roleInside:
		return m.Run()
	case roleInit:
		code, err = initialize(os.Getenv(nameVariable))
	case roleJanitor:
		err = tidy(os.Getenv(nameVariable))
	case roleTry:
		err = rehearse(os.Getenv(nameVariable))
	default:
		if missing := Missing(programs...); missing != "" {
			return skip(missing)
		}
		code, err = outside()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, prefix+err.Error())

		return 1
	}

	return code
}

// skip reports what is missing and returns the code to exit with.
func skip(missing string) int {
	if os.Getenv("CI") == "true" {
		fmt.Fprintln(os.Stderr, "The tests on a real node cannot run, and CI=true does not allow to skip them:", missing)

		return 1
	}
	fmt.Fprintln(os.Stdout, "Skipping the tests on a real node:", missing)

	return 0
}

// outside starts the sandbox, waits until it ends, and checks that nothing is left of it.
func outside() (int, error) {
	// The kernel kills init when this thread ends, so it must live as long as this process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	name := fmt.Sprintf("arbor-node-%d", os.Getpid())
	janitor, err := startJanitor(name)
	if err != nil {
		return 0, err
	}
	endWithGo()
	code, err := runInit(name)
	if err != nil {
		return code, err
	}
	if err := janitor.finish(); err != nil {
		return code, err
	}
	left, err := leftovers(name)
	if err != nil {
		return code, err
	}
	if len(left) > 0 {
		return 1, fmt.Errorf("the sandbox %s has ended and left:\n  %s", name, strings.Join(left, "\n  "))
	}

	return code, nil
}

// runInit runs PID 1 of the namespaces and returns its exit code.
func runInit(name string) (int, error) {
	cmd := self(roleInit, name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: namespaces,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return 0, fmt.Errorf("cannot start in namespaces of its own: %w", err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}

	return 1, fmt.Errorf("it was killed: %s", cmd.ProcessState)
}

// self is this program in a role, with the same arguments.
func self(role, name string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:gosec,noctx // it ends with this process
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), variable+"="+role, nameVariable+"="+name)

	return cmd
}

// endWithGo ends this process when the go command that started it is killed.
func endWithGo() {
	parent := os.Getppid()
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if strings.TrimSpace(string(name)) != "go" {
		return
	}
	go func() {
		for os.Getppid() == parent {
			time.Sleep(500 * time.Millisecond)
		}
		os.Exit(1) //nolint:revive // the goroutine of main waits for init
	}()
}
