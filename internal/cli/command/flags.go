package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// AcceptAs makes a command accept other names for its flags, by the other name: one idea can be typed
// with the same word for every command.
func AcceptAs(cmd *cobra.Command, names map[string]string) *cobra.Command {
	for other, name := range names {
		if cmd.Flags().Lookup(name) == nil {
			panic(fmt.Sprintf("%s has no flag --%s that --%s could stand for", cmd.Name(), name, other))
		}
	}
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if is, ok := names[name]; ok {
			name = is
		}

		return pflag.NormalizedName(name)
	})

	return cmd
}

// AddWidth adds the flag for the width of a drawing.
func AddWidth(cmd *cobra.Command, width *int) {
	cmd.Flags().IntVar(width, "width", 0, "columns to draw in, 0 for those of the terminal")
}

// A dryRun is a flag that is written as for kubectl, --dry-run=server, or as --dry-run alone.
type dryRun bool

const dryRunServer = "server"

// AddDryRun adds the flag.
func AddDryRun(fs *pflag.FlagSet, to *bool, usage string) {
	fs.Var((*dryRun)(to), "dry-run", usage+": server or none")
	fs.Lookup("dry-run").NoOptDefVal = dryRunServer
}

// String returns the value as it is written.
func (d *dryRun) String() string {
	if *d {
		return dryRunServer
	}

	return "none"
}

// Set reads a value.
func (d *dryRun) Set(text string) error {
	switch text {
	case dryRunServer, "true":
		*d = true
	case "none", "false":
		*d = false
	case "client":
		return fmt.Errorf("only the server can check it: use --dry-run=%s", dryRunServer)
	default:
		return fmt.Errorf("it must be %s or none", dryRunServer)
	}

	return nil
}

// Type is shown in the help.
func (d *dryRun) Type() string { return "mode" }

// AsShow turns a command that draws everything, or what it is given by name, into the subcommand show
// of that command.
func AsShow(cmd *cobra.Command, names string) *cobra.Command {
	cmd.Use, cmd.Aliases = "show "+names, nil
	cmd.Short = "Show by name"
	check := cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Blind("no name is given: name what to show, or leave out show to see everything\nSee '%s --help' for usage", c.CommandPath())
		}

		return check(c, args)
	}

	return cmd
}
