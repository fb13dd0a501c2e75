package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// NameProgram writes the commands in the help of a command, and of all below it, as users of another name of
// the program type them, such as kubectl arbor.
func NameProgram(root *cobra.Command, program string) {
	if program == root.Name() {
		return
	}
	var names []string
	for _, cmd := range root.Commands() {
		names = append(names, regexp.QuoteMeta(cmd.Name()))
	}
	typed := regexp.MustCompile(`\b` + root.Name() + ` (` + strings.Join(names, "|") + `)\b`)
	rename(root, typed, program+" $1")
}

func rename(cmd *cobra.Command, typed *regexp.Regexp, as string) {
	cmd.Long, cmd.Example = typed.ReplaceAllString(cmd.Long, as), typed.ReplaceAllString(cmd.Example, as)
	for _, sub := range cmd.Commands() {
		rename(sub, typed, as)
	}
}
