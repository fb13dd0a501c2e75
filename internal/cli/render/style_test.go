package render

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/show"
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
			if got := StyleOf(&bytes.Buffer{}, env(tc.env...)); got.Unicode != tc.want || got.Colour {
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

	if StyleOf(f, env()).Colour {
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
		if got := StyleOf(f, env(tc.env...)).Colour; got != tc.want {
			t.Errorf("%v: colour %t, want %t", tc.env, got, tc.want)
		}
	}

	if got := WidthOf(f, env()); got != defaultWidth {
		t.Errorf("a terminal that does not know its size has %d columns, want %d", got, defaultWidth)
	}
}

func TestColours(t *testing.T) {
	l := show.Located{File: "a.yaml", Line: 3, Finding: show.Finding{Severity: show.SeverityWarning, Message: "m"}}
	if got, want := FindingLine(l, Style{Colour: true}), "\x1b[1ma.yaml:3:\x1b[0m \x1b[33mwarning:\x1b[0m m"; got != want {
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
		if got := Clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer

	ticks, n := make(chan time.Time), 0
	stop := redraw(&out, ticks, func() string {
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
	redraw(&out, ticks, func() string { return "x" })()
	Progress(&out, func() string { return "x" })()

	if out.Len() > 0 {
		t.Errorf("a quick step says nothing, got %q", out.String())
	}
}

func TestWidth(t *testing.T) {
	for columns, want := range map[string]int{"": 80, "0": 80, "x": 80, "132": 132} {
		if got := WidthOf(&bytes.Buffer{}, env("COLUMNS="+columns)); got != want {
			t.Errorf("COLUMNS=%q: %d columns, want %d", columns, got, want)
		}
	}
}
