package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/arbor-control/arbor/internal/cli/command"
)

// TestRejectUnknown types commands that do not exist.
func TestRejectUnknown(t *testing.T) {
	missing := &command.ExitError{Code: command.ExitFound, Err: errors.New(`group "fti" was not found`)}
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		text   string // of the error
	}{
		"Root":     {"A word that is like no command.", []string{"frobnicate"}, command.ExitBlind, `unknown command "frobnicate" for "arbor"` + "\nSee 'arbor --help' for usage"},
		"RootTypo": {"A typo.", []string{"filds"}, command.ExitBlind, `for "arbor": did you mean 'arbor fields'?`},
		"Noun":     {"A noun with commands only printed its help, and succeeded.", []string{"fields", "undoo"}, command.ExitBlind, `unknown command "undoo" for "arbor fields": did you mean 'arbor fields undo'?`},
		"Flag":     {"The flag is for the command that was meant.", []string{"fields", "und", "--last"}, command.ExitBlind, `unknown command "und" for "arbor fields": did you mean 'arbor fields undo'?`},
		"OnlyFlag": {"Without a word it is the flag that is wrong.", []string{"fields", "--lst"}, command.ExitBlind, "unknown flag: --lst\nSee 'arbor fields --help' for usage"},
		"Name":     {"It may be a name.", []string{"groups", "fti"}, command.ExitFound, `group "fti" was not found; if you meant a command: 'arbor groups fit'`},
		"NameArgs": {"With another word it cannot be a name.", []string{"groups", "fti", "x"}, command.ExitBlind, `unknown command "fti" for "arbor groups": did you mean 'arbor groups fit'?`},
		"Args":     {"Two names are two names.", []string{"groups", "a", "b"}, command.ExitBlind, "accepts at most 1 arg(s), received 2"},
		"Help":     {"A noun alone prints its help.", []string{"fields"}, 0, ""},
		"Right":    {"A command that exists.", []string{"fields", "undo", "--last"}, 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root, fields := &cobra.Command{Use: "arbor", SilenceErrors: true, SilenceUsage: true}, &cobra.Command{Use: "fields"}
			undo := &cobra.Command{Use: "undo", RunE: func(*cobra.Command, []string) error { return nil }}
			undo.Flags().Bool("last", false, "")
			groups := &cobra.Command{Use: "groups [NAME]", RunE: func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return missing
				}

				return nil
			}}
			command.CheckUsage(groups, cobra.MaximumNArgs(1))
			groups.AddCommand(&cobra.Command{Use: "fit", RunE: undo.RunE})
			fields.AddCommand(undo)
			root.AddCommand(fields, groups)
			RejectUnknown(root)
			root.SetArgs(tc.args)
			root.SetOut(&bytes.Buffer{})
			missing.Err = errors.New(`group "fti" was not found`)
			err := root.Execute()
			code, text := 0, ""
			if exit, ok := errors.AsType[*command.ExitError](err); ok {
				code, text = exit.Code, exit.Error()
			} else if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if code != tc.code || !strings.Contains(text, tc.text) || (tc.text == "") != (text == "") {
				t.Errorf("%s\ncode %d, %q; want %d, %q", tc.reason, code, text, tc.code, tc.text)
			}
		})
	}
}
