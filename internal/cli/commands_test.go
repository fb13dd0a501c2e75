package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/audit"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/delivery"
	"github.com/arbor-control/arbor/internal/cli/fields"
	"github.com/arbor-control/arbor/internal/cli/groups"
	"github.com/arbor-control/arbor/internal/cli/lint"
	"github.com/arbor-control/arbor/internal/cli/pools"
	"github.com/arbor-control/arbor/internal/cli/source"
)

// Commands on the cluster that the flags name.
func auditCommand(s genericiooptions.IOStreams) *cobra.Command { return audit.New(s, source.Connect) }

func groupsCommand(s genericiooptions.IOStreams) *cobra.Command {
	return groups.New(s, source.Connect, groups.Scheduling{})
}

func poolsCommand(s genericiooptions.IOStreams) *cobra.Command {
	return pools.New(s, source.Connect, source.ConnectEditor)
}

func deliveryCommand(s genericiooptions.IOStreams) *cobra.Command {
	return delivery.New(s, source.Connect, delivery.ConnectServer, time.Now)
}

// Commands on objects in memory.
func auditing(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return audit.New(s, clitest.Cluster(list)) }
}

func poolsIn(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return pools.New(s, clitest.Cluster(list), nil) }
}

func TestInterrupt(t *testing.T) {
	stdin, silent := io.Pipe()
	defer silent.Close()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	for _, build := range []func(genericiooptions.IOStreams) *cobra.Command{lint.New, groupsCommand, poolsCommand} {
		cmd := build(genericiooptions.IOStreams{In: stdin, Out: io.Discard, ErrOut: io.Discard})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"-f", "-"})

		if err := cmd.ExecuteContext(ctx); err == nil || err.Error() != "interrupted: context canceled" {
			t.Errorf("%s: got %v, want an end without input", cmd.Name(), err)
		}
	}
}

func TestNoKubeconfig(t *testing.T) {
	refuse := func(*genericclioptions.ConfigFlags, io.Writer) (source.Lister, error) {
		return nil, errors.New("cannot find a cluster")
	}
	want := clitest.Result{Code: command.ExitBlind, Err: "cannot find a cluster"}

	for name, build := range map[string]func(genericiooptions.IOStreams) *cobra.Command{
		"audit":  func(s genericiooptions.IOStreams) *cobra.Command { return audit.New(s, refuse) },
		"groups": func(s genericiooptions.IOStreams) *cobra.Command { return groups.New(s, refuse, groups.Scheduling{}) },
		"pools":  func(s genericiooptions.IOStreams) *cobra.Command { return pools.New(s, refuse, nil) },
	} {
		if diff := cmp.Diff(want, clitest.Run(t, build, "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	if r := clitest.Run(t, groupsCommand, "", "--kubeconfig", "/nonexistent"); r.Code != command.ExitBlind || !strings.HasPrefix(r.Err, "cannot read the kubeconfig") {
		t.Errorf("got %+v, want an error about the kubeconfig", r)
	}
}

// TestHelp keeps every command explained by examples that name it.
func TestHelp(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	noun := poolsCommand(streams)

	for _, cmd := range append(noun.Commands(), lint.New(streams), auditCommand(streams), groupsCommand(streams), noun) {
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, "arbor "+cmd.CommandPath()) {
			t.Errorf("%s lacks help or examples", cmd.CommandPath())
		}

		if cmd.Flags().Lookup("output") == nil {
			t.Errorf("%s lacks -o", cmd.CommandPath())
		}
	}
}

// brokenWriter is a pipe without a reader.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		build func(genericiooptions.IOStreams) *cobra.Command
		args  []string
	}{
		"Lint":       {build: lint.New, args: []string{"-f", "-"}},
		"LintJSON":   {build: lint.New, args: []string{"-f", "-", "-o", "json"}},
		"Audit":      {build: auditing(clitest.Holding(clitest.PodGroup("a", "b", "X")))},
		"AuditSkips": {build: auditing(clitest.Failing(source.ErrNotInstalled))},
		"Groups":     {build: groupsCommand, args: []string{"-f", "-"}},
		"Pools":      {build: poolsIn(clitest.Serving(clitest.IPAM("n", clitest.Pools)...)), args: []string{"-A"}},
		"PoolsNone":  {build: poolsIn(clitest.Serving()), args: []string{"-A"}},
		"PoolsJSON":  {build: poolsIn(clitest.Serving()), args: []string{"-A", "-o", "json"}},
		"Show":       {build: poolsIn(clitest.Serving(clitest.IPAM("n", clitest.Pools)...)), args: []string{"show", "-A", "core"}},
		"Plan":       {build: poolsIn(clitest.Serving(clitest.IPAM("n", clitest.Pools)...)), args: []string{"plan", "-A", "--pool", "core"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := tc.build(genericiooptions.IOStreams{In: strings.NewReader(clitest.PodGroupHead + "spec: {subGroups: [{name: A}]}"), Out: brokenWriter{}, ErrOut: brokenWriter{}})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{}, tc.args...))

			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "broken pipe") {
				t.Errorf("got %v, want the error of the pipe", err)
			}
		})
	}
}

// TestOtherNames types flags and nouns with the words of other commands and of kubectl.
func TestOtherNames(t *testing.T) {
	cases := map[string]struct{ reason, typed, is, value string }{
		"PlanManager":    {"The manager is --manager everywhere.", "fields plan --manager eno", "to", "eno"},
		"MigrateKubectl": {"kubectl calls it so.", "fields migrate --field-manager eno", "to", "eno"},
		"ShowKubectl":    {"Here, too.", "fields show --field-manager eno", "manager", "eno"},
		"CheckKubectl":   {"And here.", "fields check --field-manager eno", "manager", "eno"},
		"OwnedKubectl":   {"By its new name.", "fields owned --field-manager eno", "manager", "eno"},
		"UndoFile":       {"kubectl has another --record.", "fields undo --undo-file f", "record", "f"},
		"MigrateFile":    {"It is the same file.", "fields migrate --undo-file f", "record", "f"},
		"DiffTo":         {"As rollback has it.", "delivery diff --to previous", "synthesis", "previous"},
		"PlanRows":       {"--all of fields migrate means objects.", "fields plan --show-all", "all", "true"},
		"ShowRows":       {"The same word.", "pools show --show-all", "all", "true"},
		"Old":            {"The names of earlier releases stay.", "delivery diff --synthesis previous", "synthesis", "previous"},
		"Compositions":   {"Users know the kind.", "compositions diff --to previous", "synthesis", "previous"},
		"Pool":           {"In the singular.", "pool show --show-all", "all", "true"},
	}
	streams := genericiooptions.NewTestIOStreamsDiscard()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "arbor"}
			root.AddCommand(fields.New(streams, fields.Find, fields.ConnectMigrator), poolsCommand(streams), deliveryCommand(streams), groupsCommand(streams))
			cmd, rest, err := root.Find(strings.Fields(tc.typed))
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if got := cmd.Flags().Lookup(tc.is).Value.String(); got != tc.value {
				t.Errorf("%s\n--%s is %q, want %q", tc.reason, tc.is, got, tc.value)
			}
		})
	}
}

// TestShow needs a name: without one, it would show everything.
func TestShow(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	for name, noun := range map[string]*cobra.Command{"Groups": groupsCommand(streams), "Delivery": deliveryCommand(streams)} {
		t.Run(name, func(t *testing.T) {
			show, _, err := noun.Find([]string{"show"})
			if err != nil || show.Name() != "show" {
				t.Fatalf("there is no show: %v", err)
			}
			if err := show.Args(show, nil); err == nil || !strings.Contains(err.Error(), "no name is given") {
				t.Errorf("error %v", err)
			}
			if err := show.Args(show, []string{"a"}); err != nil {
				t.Error(err)
			}
		})
	}
}
