package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli"
	"github.com/arbor-control/arbor/internal/clusterfacts"
	"github.com/arbor-control/arbor/internal/manager"
)

// home is the home directory that defaults of flags contain.
const home = "/home/you"

// root returns the commands of arbor that inspect and change a cluster, and the manager. `arbor up` and `arbor kubectl` contain a
// control plane, which would have to be compiled first; they have pages of their own.
func root() *cobra.Command {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	arbor := &cobra.Command{Use: "arbor", Short: "Inspect and operate pod groups, address pools, field ownership and compositions"}
	arbor.AddCommand(manager.NewCommand("manager", "arbor manager"))
	arbor.AddCommand(cli.Commands(streams, cli.Environment{Release: clusterfacts.Release{Parts: manager.Describe, Answers: manager.Answers}})...)

	return arbor
}

// commands writes a page for each command to a folder, and an index.
func commands(dir string) error {
	if err := os.Setenv("HOME", home); err != nil {
		return fmt.Errorf("cannot set the home directory: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot clear the folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pages may be read
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	arbor := root()
	arbor.DisableAutoGenTag = true
	arbor.InitDefaultHelpCmd()
	if err := doc.GenMarkdownTreeCustom(arbor, dir, func(string) string { return header }, func(name string) string { return name }); err != nil {
		return fmt.Errorf("cannot write the pages of commands: %w", err)
	}
	var b strings.Builder
	b.WriteString(header + "# Commands\n\nEvery command and flag of `arbor`. [The command line](../command-line.md) explains output and exit codes. " +
		"`arbor up` has [a page of its own](../../start/control-plane.md#flags), and `arbor kubectl` is kubectl.\n\n| command | does |\n|---|---|\n")
	list(&b, arbor)

	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(b.String()), 0o644) //nolint:gosec // a page may be read
}

// list writes a row for each command below another one.
func list(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() || cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		fmt.Fprintf(b, "| [`%s`](%s.md) | %s |\n", cmd.CommandPath(), strings.ReplaceAll(cmd.CommandPath(), " ", "_"), cell(cmd.Short))
		list(b, cmd)
	}
}
