package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes of the commands.
const (
	// ExitFound is that of a command that worked, and found something wrong or something to change.
	ExitFound = 1
	// ExitBlind is that of a command that could not look: wrong usage, a name that does not exist, an
	// unreadable file, no cluster.
	ExitBlind = 2
)

// An ExitError ends the process with a code.
type ExitError struct {
	Code int
	// Err is what is left to print. It is nil when everything is printed.
	Err error
	// Missing is true if there is no object of the name that was given.
	Missing bool
}

// Error returns the text of Err, which may be empty.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}

	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Found returns the error of a command that found something and has printed it.
func Found() error { return &ExitError{Code: ExitFound} }

// Blind returns the error of a command that could not look.
func Blind(format string, args ...any) error {
	return &ExitError{Code: ExitBlind, Err: fmt.Errorf(format, args...)}
}

// NotFound returns the error of a command whose object, pool or namespace does not exist.
func NotFound(format string, args ...any) error {
	return &ExitError{Code: ExitBlind, Err: fmt.Errorf(format, args...), Missing: true}
}

// CheckUsage makes wrong flags and arguments of a command exit as ExitBlind.
func CheckUsage(cmd *cobra.Command, args cobra.PositionalArgs) {
	usage := func(c *cobra.Command, err error) error {
		if err == nil {
			return nil
		}

		return Blind("%w\nSee '%s --help' for usage", err, c.CommandPath())
	}

	cmd.SetFlagErrorFunc(usage)
	cmd.Args = func(c *cobra.Command, given []string) error { return usage(c, args(c, given)) }
}
