package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/groups"
	"github.com/arbor-control/arbor/internal/cli/version"
	"github.com/arbor-control/arbor/internal/clusterfacts"
)

// Options are what differs from one program to another.
type Options struct {
	Version version.Client
	// Scheduling answers what the scheduler would do. Nil: the commands that need it name the
	// full arbor instead.
	Scheduling *groups.Scheduling
	Release    clusterfacts.Release
	// Run are commands that run something. A program without them rejects up, manager and
	// kubectl with the name of the full arbor.
	Run []*cobra.Command
}

// New returns the root command with all commands.
func New(streams genericiooptions.IOStreams, o Options) *cobra.Command {
	root := &cobra.Command{
		Use:           "arbor",
		Short:         "Inspect and operate pod groups, address pools, field ownership and compositions",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       o.Version.Version + " (Kubernetes " + o.Version.Kubernetes + ")",
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: command.Program()}
	inspect, change, run := "inspect", "change", "run"
	root.AddGroup(&cobra.Group{ID: inspect, Title: "Inspect (lint checks files, audit checks objects, doctor checks Arbor itself):"},
		&cobra.Group{ID: change, Title: "Inspect and change:"})
	root.AddCommand(cli.Commands(streams, o.environment())...)
	sections := map[string]string{
		"lint": inspect, "audit": inspect, "doctor": inspect, "groups": inspect, "version": inspect,
		"pools": change, "fields": change, "compositions": change, "uninstall": change,
	}
	for _, cmd := range root.Commands() {
		cmd.GroupID = sections[cmd.Name()]
	}
	if o.Scheduling == nil {
		rejectSimulations(root)
	}
	if len(o.Run) == 0 {
		root.AddCommand(missing("up"), missing("manager"), missing("kubectl"))
	} else {
		root.AddGroup(&cobra.Group{ID: run, Title: "Run:"})
	}
	for _, cmd := range o.Run {
		cmd.GroupID = run
		root.AddCommand(cmd)
	}
	cli.RejectUnknown(root)
	cli.CompleteNames(root)
	cli.GroupFlags(root)
	cli.NameProgram(root, command.Program())

	return root
}

// environment is what the commands need to know of the program.
func (o Options) environment() cli.Environment {
	e := cli.Environment{Version: o.Version, Release: o.Release}
	if o.Scheduling != nil {
		e.Scheduling = *o.Scheduling
	}

	return e
}

// rejectSimulations makes the commands that simulate scheduling name the full arbor.
func rejectSimulations(root *cobra.Command) {
	for _, name := range []string{"fit", "explain", "dump"} {
		if sub, _, err := root.Find([]string{"groups", name}); err == nil && sub.Name() == name {
			sub.RunE = needsArbor
		}
	}
}

// missing is a command that only the full arbor has.
func missing(name string) *cobra.Command {
	return &cobra.Command{Use: name, Short: "Needs the full arbor", Hidden: true, DisableFlagParsing: true, RunE: needsArbor}
}

// needsArbor runs a command that links Kubernetes itself with the full arbor, if that is installed
// next to this program or in PATH. Otherwise it rejects the command.
func needsArbor(cmd *cobra.Command, _ []string) error {
	program, err := fullArbor()
	if err != nil {
		_, path, _ := strings.Cut(cmd.CommandPath(), "arbor ")

		return &command.ExitError{Code: command.ExitBlind, Err: fmt.Errorf(
			"%q needs the full arbor, which has Kubernetes in it: install it, and run 'arbor %s'", cmd.CommandPath(), path)}
	}
	// The full arbor handles signals itself: it must not get them twice, or be killed.
	full := exec.CommandContext(context.WithoutCancel(cmd.Context()), program, os.Args[1:]...) //nolint:gosec // the user has given both
	if err := replace(full); !errors.Is(err, errors.ErrUnsupported) {
		return &command.ExitError{Code: command.ExitBlind, Err: fmt.Errorf("cannot run %s: %w", program, err)}
	}
	full.Stdin, full.Stdout, full.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := full.Run(); errors.As(err, &exit) {
		return &command.ExitError{Code: exit.ExitCode()}
	} else if err != nil {
		return &command.ExitError{Code: command.ExitBlind, Err: fmt.Errorf("cannot run %s: %w", program, err)}
	}

	return nil
}

// fullArbor finds the full arbor. A link of that name to this program is not one.
func fullArbor() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find this program: %w", err)
	}
	program := filepath.Join(filepath.Dir(self), "arbor"+filepath.Ext(self))
	if info, err := os.Stat(program); err != nil || info.IsDir() {
		if program, err = exec.LookPath("arbor"); err != nil {
			return "", fmt.Errorf("cannot find arbor: %w", err)
		}
	}
	here, err := os.Stat(self)
	if err != nil {
		return "", fmt.Errorf("cannot look at %s: %w", self, err)
	}
	there, err := os.Stat(program)
	if err != nil {
		return "", fmt.Errorf("cannot look at %s: %w", program, err)
	}
	if os.SameFile(here, there) {
		return "", fmt.Errorf("%s is this program", program)
	}

	return program, nil
}

// Execute runs a command line until it ends or a signal stops it, and returns the exit code.
func Execute(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code, exit := 1, (*command.ExitError)(nil)
	if errors.As(err, &exit) {
		code, err = exit.Code, exit.Err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}

	return code
}
