package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/arbor-control/arbor/internal/cli/command"
)

// typo is how many letters of a command may be wrong, or in the wrong place.
const typo = 2

// RejectUnknown makes a command and all commands below it reject words that are not a command, with a
// suggestion and ExitBlind. cobra prints the help of a command that only has subcommands, and succeeds.
func RejectUnknown(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		RejectUnknown(sub)
	}
	cmd.SuggestionsMinimumDistance = typo
	switch {
	case !cmd.HasSubCommands():
	case cmd.Runnable():
		suggest(cmd)
	default:
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}

			return unknownCommand(c, args[0])
		}
		cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
			if words := c.Flags().Args(); len(words) > 0 {
				return unknownCommand(c, words[0]) // the flag is for the command that was meant
			}

			return command.Blind("%w\nSee '%s --help' for usage", err, c.CommandPath())
		})
	}
}

// suggest adds subcommands to what a command reports that takes a name or a subcommand, and found
// nothing of that name.
func suggest(cmd *cobra.Command) {
	run, check := cmd.RunE, cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err != nil && len(args) > 0 && len(c.SuggestionsFor(args[0])) > 0 {
			return unknownCommand(c, args[0])
		}

		return err
	}
	cmd.RunE = func(c *cobra.Command, args []string) error {
		err := run(c, args)
		exit, ok := errors.AsType[*command.ExitError](err)
		if !ok || exit.Err == nil || !exit.Missing && exit.Code != command.ExitFound || len(args) != 1 {
			return err
		}
		if meant := c.SuggestionsFor(args[0]); len(meant) > 0 {
			exit.Err = fmt.Errorf("%w; if you meant a command: %s", exit.Err, commands(c, meant))
		}

		return exit
	}
}

func unknownCommand(c *cobra.Command, word string) error {
	text := fmt.Sprintf("unknown command %q for %q", word, c.CommandPath())
	if meant := c.SuggestionsFor(word); len(meant) > 0 {
		text += ": did you mean " + commands(c, meant) + "?"
	}

	return command.Blind("%s\nSee '%s --help' for usage", text, c.CommandPath())
}

// commands lists subcommands as they are typed.
func commands(c *cobra.Command, names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf("'%s %s'", c.CommandPath(), name)
	}

	return strings.Join(all, " or ")
}
