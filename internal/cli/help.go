package cli

import (
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

const (
	// flagsOfCobra is the section of cobra's template that has all flags of a command.
	flagsOfCobra = "{{if .HasAvailableLocalFlags}}\n\nFlags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}"
	// flagsInGroups has the flags of a command itself first.
	flagsInGroups = "{{with ownFlags .}}\n\nFlags:\n{{. | trimTrailingWhitespaces}}{{end}}{{with connectionFlags .}}\n\nConnection flags:\n{{. | trimTrailingWhitespaces}}{{end}}"
)

// GroupFlags makes the help of a command, and of all below it, show the flags that find and reach a cluster
// in their own group below those of the command, and in the style of these.
func GroupFlags(root *cobra.Command) {
	cobra.AddTemplateFunc("ownFlags", func(c *cobra.Command) string { return usages(c, false) })
	cobra.AddTemplateFunc("connectionFlags", func(c *cobra.Command) string { return usages(c, true) })

	grouped := strings.Replace(root.UsageTemplate(), flagsOfCobra, flagsInGroups, 1)
	root.SetUsageTemplate(grouped)
}

// usages describes the flags of a command: those for the connection, or the rest.
func usages(c *cobra.Command, connection bool) string {
	of, chosen := connectionFlags(), pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		known := of.Lookup(f.Name)
		shared := known != nil && known.Usage == f.Usage

		if isConnection := shared && f.Name != "namespace"; isConnection == connection {
			shown := *f
			if shared {
				shown.Usage = inOurStyle(f.Usage)
			}

			chosen.AddFlag(&shown)
		}
	})

	return chosen.FlagUsages()
}

// connectionFlags are those of kubectl.
func connectionFlags() *pflag.FlagSet {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(all)

	return all
}

// inOurStyle writes the description of a flag as ours are written: lower case, and without a full stop.
func inOurStyle(usage string) string {
	letters := []rune(strings.TrimSuffix(usage, "."))
	if len(letters) > 1 && unicode.IsLower(letters[1]) {
		letters[0] = unicode.ToLower(letters[0])
	}

	return string(letters)
}
