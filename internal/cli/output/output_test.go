package output

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/identity"
)

type view struct {
	Items []string `json:"items"`
}

func (v view) Refs() []identity.Ref {
	var out []identity.Ref
	for _, name := range v.Items {
		out = append(out, identity.Ref{APIVersion: "scheduling.run.ai/v2alpha2", Kind: "PodGroup", Namespace: "ns", Name: name})
	}

	return out
}

// parse returns the flags that arguments set.
func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	f, cmd := &Flags{}, &cobra.Command{Use: "c"}
	f.Add(cmd, Tree, Table, Name)
	f.AddWatch(cmd)
	f.AddExitCode(cmd, false, "something is wrong")
	f.AddSelector(cmd, "objects")
	f.AddWidth(cmd)
	f.AddDepth(cmd, "levels")
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}

	return f
}

// TestPrint prints a view in all formats.
func TestPrint(t *testing.T) {
	cases := map[string]struct {
		reason, format string
		view           any
		want, fails    string
		people         bool
	}{
		"Default":     {reason: "People read a drawing.", format: "tree", people: true},
		"Former":      {reason: "The former name of the default stays accepted.", format: "text", people: true},
		"Table":       {reason: "People read a table.", format: "table", people: true},
		"JSON":        {reason: "A document has a version and a kind before its keys.", format: "json", want: "{\n  \"apiVersion\": \"cli.arbor.dev/v1\",\n  \"kind\": \"Things\",\n  \"items\": [\n    \"a\",\n    \"b\"\n  ]\n}\n"},
		"Empty":       {reason: "A document without keys has them too.", format: "json", view: struct{}{}, want: "{\n  \"apiVersion\": \"cli.arbor.dev/v1\",\n  \"kind\": \"Things\"\n}\n"},
		"YAML":        {reason: "As JSON.", format: "yaml", want: "apiVersion: cli.arbor.dev/v1\nitems:\n- a\n- b\nkind: Things\n"},
		"Name":        {reason: "As kubectl prints names.", format: "name", want: "podgroup.scheduling.run.ai/a\npodgroup.scheduling.run.ai/b\n"},
		"JSONPath":    {reason: "A template of the document.", format: "jsonpath={.items[1]} {.kind}", want: "b Things\n"},
		"BadPath":     {reason: "A template may be wrong.", format: "jsonpath={.items", fails: "cannot use -o jsonpath={.items: "},
		"NoPath":      {reason: "A template may be missing.", format: "jsonpath", fails: "cannot use -o jsonpath: "},
		"Unknown":     {reason: "Other formats are rejected.", format: "xml", fails: `unknown output format "xml": use one of tree, table, name, json, yaml, jsonpath=TEMPLATE`},
		"List":        {reason: "A list has no place for a version.", format: "json", view: []string{}, fails: "it is not an object"},
		"Unencodable": {reason: "Not everything is JSON.", format: "yaml", view: func() {}, fails: "cannot write yaml: "},
		"Unnamed":     {reason: "Not every view has names.", format: "name", view: 1, fails: "cannot name the objects of a int"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.view == nil {
				tc.view = view{Items: []string{"a", "b"}}
			}
			var out bytes.Buffer
			f := parse(t, "-o", tc.format)
			err, done := f.Check(), !tc.people
			if err == nil {
				done, err = f.Print(&out, "Things", tc.view)
			}
			if done == tc.people || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s\ngot %t, %v", tc.reason, done, err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFlags reads the flags that are about more than the format.
func TestFlags(t *testing.T) {
	var out bytes.Buffer
	f := parse(t, "--no-headers", "-l", "a=b", "--width", "33", "--exit-code")
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	if f.Table(&out, [][]string{{"LONG", "HEADER"}, {"x", "y"}}); out.String() != "x   y\n" {
		t.Errorf("got %q, want only what is below the headers", out.String())
	}
	if f.Table(&out, [][]string{{"HEADER"}}); out.String() != "x   y\n" {
		t.Errorf("got %q, want nothing more for an empty table", out.String())
	}
	if !f.Selects() || !f.Matches(map[string]string{"a": "b"}) || f.Matches(map[string]string{"a": "c"}) || f.Matches(nil) {
		t.Error("only objects with the label are asked for")
	}
	if got := f.Columns(&out, func(string) string { return "" }); got != 33 {
		t.Errorf("got %d columns, want those of the flag", got)
	}
	if got := parse(t).Columns(&out, func(string) string { return "50" }); got != 50 {
		t.Errorf("got %d columns, want those of the environment", got)
	}
	if exit, ok := errors.AsType[*command.ExitError](f.Found(true)); !ok || exit.Code != command.ExitFound {
		t.Error("what is found exits with 1 if that is asked for")
	}
	if f.Found(false) != nil || parse(t).Found(true) != nil {
		t.Error("nothing is found, or it is not asked for")
	}
	if err := parse(t, "-l", "a=(").Check(); err == nil || !strings.HasPrefix(err.Error(), `invalid selector "a=(": `) {
		t.Errorf("got %v, want an error about the selector", err)
	}
}

// TestWatch runs a command whose output changes.
func TestWatch(t *testing.T) {
	found, fails := command.Found(), command.Blind("no answer")
	cases := map[string]struct {
		reason string
		texts  []string
		errs   []error
		args   []string
		want   frame
		fails  bool
	}{
		"Once":    {reason: "Without the flag it runs once.", texts: []string{"a"}, want: frame{out: "a"}},
		"Result":  {reason: "Without the flag its end is that of the command.", texts: []string{"a"}, errs: []error{found}, want: frame{out: "a"}, fails: true},
		"Changes": {reason: "What is the same is not printed again.", args: []string{"-w"}, texts: []string{"a\n", "a\n", "b\n", "b\n"}, want: frame{out: "a\n\nb\n"}},
		"Found":   {reason: "That something is found does not end it.", args: []string{"-w"}, texts: []string{"a\n", "b\n"}, errs: []error{found, found}, want: frame{out: "a\n\nb\n"}},
		"First":   {reason: "It ends if it cannot begin.", args: []string{"-w"}, texts: []string{"", "b"}, errs: []error{fails}, fails: true},
		"Later":   {reason: "A cluster may come back.", args: []string{"-w"}, texts: []string{"a\n", "", "", "b\n"}, errs: []error{nil, fails, fails}, want: frame{out: "a\n\n\nb\n", errOut: "Error: no answer\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			streams := genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			once := func(context.Context) error {
				if n == len(tc.texts) {
					cancel()

					return ctx.Err()
				}
				_, _ = streams.Out.Write([]byte(tc.texts[n]))
				var err error
				if n < len(tc.errs) {
					err = tc.errs[n]
				}
				n++

				return err
			}
			f := parse(t, tc.args...)
			ticks := make(chan time.Time)
			go func() {
				for ctx.Err() == nil {
					select {
					case ticks <- time.Time{}:
					case <-ctx.Done():
					}
				}
			}()
			var err error
			if f.Watch {
				err = f.repeat(ctx, &streams, once, ticks)
			} else {
				err = f.Run(ctx, &streams, once)
			}
			if (err != nil) != tc.fails {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, frame{out.String(), errOut.String()}, cmp.AllowUnexported(frame{})); diff != "" || streams.Out != &out {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
