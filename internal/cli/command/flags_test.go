package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestDryRun writes the flag in all ways.
func TestDryRun(t *testing.T) {
	cases := map[string]struct {
		reason, flag string
		want         bool
		fails        string
	}{
		"Absent":  {reason: "Without it, things are changed."},
		"Alone":   {reason: "As before.", flag: "--dry-run", want: true},
		"Server":  {reason: "As for kubectl.", flag: "--dry-run=server", want: true},
		"True":    {reason: "As a boolean.", flag: "--dry-run=true", want: true},
		"None":    {reason: "As for kubectl.", flag: "--dry-run=none"},
		"False":   {reason: "As a boolean.", flag: "--dry-run=false"},
		"Client":  {reason: "The client cannot check it.", flag: "--dry-run=client", fails: "use --dry-run=server"},
		"Rubbish": {reason: "There is nothing else.", flag: "--dry-run=maybe", fails: "it must be server or none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got bool
			cmd := &cobra.Command{Use: "c"}
			AddDryRun(cmd.Flags(), &got, "check it")
			err := cmd.ParseFlags(strings.Fields(tc.flag))
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) || got != tc.want {
				t.Errorf("%s\n%t, %v", tc.reason, got, err)
			}
		})
	}
}
