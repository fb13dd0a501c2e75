package command

import "regexp"

// hint matches the commands that texts of Arbor advise to run.
var hint = regexp.MustCompile(`\barbor (audit|compositions|doctor|fields|groups|lint|pools|uninstall|version)\b`)

// Typed returns a text with the commands in it as users type them, such as kubectl arbor groups. Texts of
// packages that do not know the program, such as views and conditions, name it arbor.
func Typed(text string) string { return typed(text, Program()) }

func typed(text, program string) string {
	if program == "arbor" {
		return text
	}

	return hint.ReplaceAllString(text, program+" $1")
}
