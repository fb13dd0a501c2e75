package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// everyCommand runs a test for each command of the tree.
func everyCommand(t *testing.T, test func(*testing.T, *cobra.Command)) {
	t.Helper()
	root := &cobra.Command{Use: "arbor"}
	root.AddCommand(Commands(genericiooptions.NewTestIOStreamsDiscard(), Environment{})...)
	GroupFlags(root)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) { test(t, cmd) })
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	for _, cmd := range root.Commands() {
		walk(cmd)
	}
}

// TestHelpStyle has all helps in one style.
func TestHelpStyle(t *testing.T) {
	everyCommand(t, func(t *testing.T, cmd *cobra.Command) {
		t.Helper()
		if r := []rune(cmd.Short); len(r) == 0 || !unicode.IsUpper(r[0]) || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("the short help is %q: write a capital at its start and no full stop", cmd.Short)
		}
		if !strings.HasSuffix(cmd.Long, ".") {
			t.Errorf("the long help ends with %q: write sentences", cmd.Long[max(0, len(cmd.Long)-20):])
		}
		if !strings.Contains(cmd.Example, "  arbor "+strings.TrimPrefix(cmd.CommandPath(), "arbor ")) && cmd.Name() != "show" {
			t.Error("there is no example with the command")
		}
		known := connectionFlags()
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if ours := known.Lookup(f.Name); ours != nil && ours.Usage == f.Usage {
				return
			}
			if strings.HasPrefix(f.Usage, "Linear or Buddy") {
				return // values of the API keep their case
			}
			first := []rune(f.Usage + "  ")[:2]
			if unicode.IsUpper(first[0]) && unicode.IsLower(first[1]) || strings.TrimSpace(f.Usage) == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("--%s is described as %q: write lower case and no full stop", f.Name, f.Usage)
			}
		})
	})
}

// TestHelpGroups shows the flags of kubectl below those of the command.
func TestHelpGroups(t *testing.T) {
	everyCommand(t, func(t *testing.T, cmd *cobra.Command) {
		t.Helper()
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		own, connection, both := strings.Cut(out.String(), "\nConnection flags:\n")
		if both != (cmd.Flags().Lookup("kubeconfig") != nil) {
			t.Fatalf("connection flags are in their own group: %t\n%s", both, out.String())
		}
		if !both {
			return
		}
		_, own, _ = strings.Cut(own, "\nFlags:\n")
		for _, name := range []string{"kubeconfig", "context", "as-group", "request-timeout"} {
			if strings.Contains(own, " --"+name+" ") || !strings.Contains(connection, " --"+name+" ") {
				t.Errorf("--%s is not in the group of the connection\n%s", name, out.String())
			}
		}
		for _, name := range []string{"output", "namespace", "selector"} {
			if cmd.Flags().Lookup(name) != nil && strings.Contains(connection, " --"+name+" ") {
				t.Errorf("--%s is in the group of the connection\n%s", name, out.String())
			}
		}
	})
}
