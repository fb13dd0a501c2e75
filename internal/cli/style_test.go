package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v
			}
		}

		return ""
	}
}

func TestLocale(t *testing.T) {
	tests := map[string]struct {
		reason string
		env    []string
		want   bool
	}{
		"None":     {reason: "no locale is the plain one", want: false},
		"Lang":     {reason: "LANG counts", env: []string{"LANG=en_US.UTF-8"}, want: true},
		"Spelling": {reason: "in any spelling", env: []string{"LANG=C.utf8"}, want: true},
		"Override": {reason: "LC_ALL counts more", env: []string{"LC_ALL=C", "LANG=en_US.UTF-8"}, want: false},
		"Ctype":    {reason: "and LC_CTYPE more than LANG", env: []string{"LC_CTYPE=de_DE.UTF-8", "LANG=C"}, want: true},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := styleOf(&bytes.Buffer{}, env(tc.env...)); got.unicode != tc.want || got.colour {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

func TestNoColourOffTerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	if styleOf(f, env()).colour {
		t.Error("a file is not a terminal")
	}
}

func TestColourOnTerminal(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no terminal to be had: ", err)
	}
	defer f.Close()

	for _, tc := range []struct {
		env  []string
		want bool
	}{
		{nil, true},
		{[]string{"NO_COLOR=1"}, false},
		{[]string{"TERM=dumb"}, false},
	} {
		if got := styleOf(f, env(tc.env...)).colour; got != tc.want {
			t.Errorf("%v: colour %t, want %t", tc.env, got, tc.want)
		}
	}

	if got := widthOf(f, env()); got != defaultWidth {
		t.Errorf("a terminal that does not know its size has %d columns, want %d", got, defaultWidth)
	}
}

func TestColours(t *testing.T) {
	l := Located{File: "a.yaml", Line: 3, Finding: Finding{Severity: SeverityWarning, Message: "m"}}
	if got, want := l.line(style{colour: true}), "\x1b[1ma.yaml:3:\x1b[0m \x1b[33mwarning:\x1b[0m m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":         "plain",
		"héllo 世界":      "héllo 世界",
		"a\nb\x1b[0m":   `a\nb\x1b[0m`,
		"\u202eevil":    `\u202eevil`,
		"\xff'\"\\\x00": `\ufffd'"\` + `\x00`,
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer

	ticks, n := make(chan time.Time), 0
	stop := show(&out, ticks, func() string {
		n++

		return fmt.Sprintf("%d so far", n)
	})

	ticks <- time.Time{}
	ticks <- time.Time{}
	stop()

	if diff := cmp.Diff("\r\x1b[K1 so far\r\x1b[K2 so far\r\x1b[K", out.String()); diff != "" {
		t.Errorf("each line replaces the last, and none is left (-want +got):\n%s", diff)
	}

	out.Reset()
	show(&out, ticks, func() string { return "x" })()
	progress(&out, func() string { return "x" })()

	if out.Len() > 0 {
		t.Errorf("a quick step says nothing, got %q", out.String())
	}
}

func TestExitError(t *testing.T) {
	inner := errors.New("x")
	if e := (&ExitError{Code: 2, Err: inner}); e.Error() != "x" || !errors.Is(e, inner) {
		t.Errorf("got %v, want the error inside", e)
	}
}

// TestHelp keeps every command explained by examples that name it.
func TestHelp(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	pools := NewPools(streams)

	for _, cmd := range append(pools.Commands(), NewLint(streams), NewAudit(streams), NewGroups(streams, Scheduling{}), pools) {
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, "arbor "+cmd.CommandPath()) {
			t.Errorf("%s lacks help or examples", cmd.CommandPath())
		}

		if cmd.Flags().Lookup("output") == nil {
			t.Errorf("%s lacks -o", cmd.CommandPath())
		}
	}
}

// brokenWriter is a pipe that nobody reads any more.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		build func(genericiooptions.IOStreams) *cobra.Command
		args  []string
	}{
		"Lint":       {build: NewLint, args: []string{"-f", "-"}},
		"LintJSON":   {build: NewLint, args: []string{"-f", "-", "-o", "json"}},
		"Audit":      {build: auditOf(holding(object("a", "b", "X")))},
		"AuditSkips": {build: auditOf(failing(errNotInstalled))},
		"Groups":     {build: newGroupsCommand, args: []string{"-f", "-"}},
		"Pools":      {build: poolsOf(serving(estate("n", network)...)), args: []string{"-A"}},
		"PoolsNone":  {build: poolsOf(serving()), args: []string{"-A"}},
		"PoolsJSON":  {build: poolsOf(serving()), args: []string{"-A", "-o", "json"}},
		"Show":       {build: showOn(serving(estate("n", network)...)), args: []string{"-A", "core"}},
		"Plan":       {build: planOn(serving(estate("n", network)...)), args: []string{"-A", "--pool", "core"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := tc.build(genericiooptions.IOStreams{In: strings.NewReader(head + "spec: {subGroups: [{name: A}]}"), Out: brokenWriter{}, ErrOut: brokenWriter{}})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{}, tc.args...))

			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "broken pipe") {
				t.Errorf("got %v, want the error of the pipe", err)
			}
		})
	}
}
