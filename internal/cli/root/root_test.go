package root

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/groups"
)

// A program without Kubernetes in it names the one that has it, whatever the flags are.
func TestNeedsArbor(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no arbor there
	for _, name := range []string{"up", "manager", "kubectl", "groups fit", "groups explain", "groups dump"} {
		t.Run(name, func(t *testing.T) {
			root := New(genericiooptions.NewTestIOStreamsDiscard(), Options{})
			args := strings.Fields(name)
			if len(args) == 1 {
				args = append(args, "--flag=of-the-full-one")
			}
			root.SetArgs(args)
			err := root.ExecuteContext(t.Context())
			var exit *command.ExitError
			want := `"arbor ` + name + `" needs the full arbor, which has Kubernetes in it: install it, and run 'arbor ` + name + `'`
			if !errors.As(err, &exit) || exit.Code != command.ExitBlind || exit.Err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// Both programs have the same commands otherwise, and the help of the slim one shows only what it can do.
func TestCommands(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	slim := New(streams, Options{})
	full := New(streams, Options{Scheduling: &groups.Scheduling{}, Run: []*cobra.Command{{Use: "up", Run: func(*cobra.Command, []string) {}}}})
	names := func(root *cobra.Command) []string {
		var all []string
		for _, cmd := range root.Commands() {
			if cmd.IsAvailableCommand() && cmd.Name() != "up" {
				all = append(all, cmd.Name()+" "+cmd.GroupID)
			}
		}

		return all
	}
	if a, b := names(slim), names(full); !slices.Equal(a, b) || len(a) < 9 {
		t.Errorf("kubectl-arbor has %q, arbor has %q", a, b)
	}
	var out bytes.Buffer
	slim.SetOut(&out)
	slim.SetArgs([]string{"--help"})
	if err := slim.ExecuteContext(t.Context()); err != nil || strings.Contains(out.String(), "Run:") || !strings.Contains(out.String(), "lint ") {
		t.Errorf("%v: %s", err, out.String())
	}
}
