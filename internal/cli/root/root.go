package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli"
)

// Options are what differs from one program to another.
type Options struct {
	Version cli.ClientVersion
	// Scheduling answers what the scheduler would do. Nil: the commands that need it name the
	// full arbor instead.
	Scheduling *cli.Scheduling
	Release    cli.Release
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
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "kubectl-arbor" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl arbor"}
	}
	inspect, change, run := "inspect", "change", "run"
	root.AddGroup(&cobra.Group{ID: inspect, Title: "Inspect (lint checks files, audit checks objects, doctor checks Arbor itself):"},
		&cobra.Group{ID: change, Title: "Inspect and change:"})
	root.AddCommand(cli.NewLint(streams), cli.NewAudit(streams), o.groups(streams), cli.NewPools(streams), cli.NewFields(streams),
		cli.NewDelivery(streams), cli.NewVersion(streams, o.Version), cli.NewUninstall(streams), cli.NewDoctor(streams, o.Release))
	groups := map[string]string{
		"lint": inspect, "audit": inspect, "doctor": inspect, "groups": inspect, "version": inspect,
		"pools": change, "fields": change, "delivery": change, "uninstall": change,
	}
	for _, cmd := range root.Commands() {
		cmd.GroupID = groups[cmd.Name()]
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

	return root
}

// groups are the commands about pod groups.
func (o Options) groups(streams genericiooptions.IOStreams) *cobra.Command {
	if o.Scheduling != nil {
		return cli.NewGroups(streams, *o.Scheduling)
	}
	cmd := cli.NewGroups(streams, cli.Scheduling{})
	for _, name := range []string{"fit", "explain", "dump"} {
		if sub, _, err := cmd.Find([]string{name}); err == nil && sub != cmd {
			sub.RunE = needsArbor
		}
	}

	return cmd
}

// missing is a command that only the full arbor has.
func missing(name string) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: needsArbor}
}

// needsArbor rejects a command that links Kubernetes itself.
func needsArbor(cmd *cobra.Command, _ []string) error {
	_, path, _ := strings.Cut(cmd.CommandPath(), "arbor ")

	return &cli.ExitError{Code: cli.ExitBlind, Err: fmt.Errorf("%q needs the full arbor, which has Kubernetes in it: run 'arbor %s'", cmd.CommandPath(), path)}
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
	code, exit := 1, (*cli.ExitError)(nil)
	if errors.As(err, &exit) {
		code, err = exit.Code, exit.Err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}

	return code
}
