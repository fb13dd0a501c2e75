package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

func groupsOf(list lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return newGroups(s, cluster(list)) }
}

func TestGroups(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C")

	one, two, flat := object("default", "one", "x"), object("other", "two", "y"), object("default", "flat")
	all := holding(one, flat, object("default", "flat2"), two)

	tests := map[string]struct {
		reason string
		list   lister
		stdin  string
		args   []string
		want   result
	}{
		"Namespace": {
			reason: "the current namespace is drawn, trees apart from the others",
			list:   all,
			want:   result{Out: "default/one  queue q, min 2 pods\n`- x  min 1 pod\n\ndefault/flat  queue q, min 2 pods\ndefault/flat2  queue q, min 2 pods\n"},
		},
		"Name": {reason: "or one of it", list: all, args: []string{"flat"}, want: result{Out: "default/flat  queue q, min 2 pods\n"}},
		"All":  {reason: "a name may be looked for everywhere", list: all, args: []string{"two", "-A"}, want: result{Out: "other/two  queue q, min 2 pods\n`- y  min 1 pod\n"}},
		"None": {reason: "nothing there is said as kubectl does", list: holding(), want: result{ErrOut: "No pod groups found in default namespace.\n"}},
		"NoneAnywhere": {
			reason: "in all namespaces too", list: holding(), args: []string{"-A"},
			want: result{ErrOut: "No pod groups found in any namespace.\n"},
		},
		"NotFound": {
			reason: "a name that is not there is an error with a way out",
			list:   all, args: []string{"two", "-n", "default"},
			want: result{Code: ExitFound, Err: `pod group "two" was not found in default namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"NotFoundAnywhere": {
			reason: "and another one if it is nowhere",
			list:   all, args: []string{"three", "-A"},
			want: result{Code: ExitFound, Err: `pod group "three" was not found in any namespace: leave out the name to see what is there`},
		},
		"NotInstalled": {
			reason: "without the API there is nothing to see",
			list:   failing(errNotInstalled),
			want:   result{Code: ExitBlind, Err: "the PodGroup API (scheduling.run.ai/v2alpha2) is not installed in this cluster"},
		},
		"NoCluster": {reason: "nor without a cluster", list: failing(errors.New("no answer")), want: result{Code: ExitBlind, Err: "no answer"}},
		"Format":    {reason: "formats are known by name", args: []string{"-o", "dot"}, want: result{Code: ExitBlind, Err: `unknown output format "dot": use one of table, text, json, yaml`}},
		"TwoNames":  {reason: "one name at a time", args: []string{"a", "b"}, want: result{Code: ExitBlind, Err: "accepts at most 1 arg(s), received 2\nSee 'groups --help' for usage"}},
		"File": {
			reason: "a manifest is drawn without a cluster, whatever else it holds",
			stdin:  "kind: ConfigMap\n---\n" + head + "spec: {subGroups: [{name: x}]}", args: []string{"-f", "-"},
			want: result{Out: "ns/a\n`- x\n"},
		},
		"FileFilter": {
			reason: "name and namespace choose among the objects of a file",
			stdin:  head + "---\n" + strings.ReplaceAll(head, "name: a", "name: b") + "---\n" + strings.ReplaceAll(head, ", namespace: ns", ""),
			args:   []string{"a", "-n", "x", "-f", "-"},
			want:   result{Out: "a\n"},
		},
		"FileNotFound": {
			reason: "a name that is not in the files is an error",
			stdin:  head, args: []string{"b", "-n", "ns", "-f", "-"},
			want: result{Code: ExitFound, Err: `pod group "b" was not found in ns namespace of the given files: leave out the name to see what is there`},
		},
		"FileEmpty": {reason: "no groups in files are said too", stdin: "a: b", args: []string{"-f", "-"}, want: result{ErrOut: "No pod groups found in the given files.\n"}},
		"FileBad": {
			reason: "what can be read is drawn",
			stdin:  head + "---\n}", args: []string{"-f", "-"},
			want: result{Out: "ns/a\n", ErrOut: "<stdin>:5: error: invalid YAML: did not find expected node content\n", Code: ExitBlind},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, run(t, groupsOf(tc.list), tc.stdin, tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGroupsMachine(t *testing.T) {
	const want = `groups:
- children:
  - a
  - C
  minMember: 2
  name: g
  namespace: ns
  problems:
  - field: spec.subGroups[2].name
    fix: rename it to "c"
    message: subgroup name "C" must be lowercase
    reason: SubGroupNameNotLowercase
    value: C
  queue: q
  subGroups:
  - children:
    - b
    depth: 1
    minMember: 1
    name: a
    problems: []
  - children: []
    depth: 2
    minMember: 1
    name: b
    parent: a
    problems: []
  - children: []
    depth: 1
    minMember: 1
    name: C
    problems:
    - field: spec.subGroups[2].name
      fix: rename it to "c"
      message: subgroup name "C" must be lowercase
      reason: SubGroupNameNotLowercase
      value: C
  - children: []
    depth: 0
    minMember: 1
    name: d
    parent: c
    problems: []
  warnings: []
`

	list := holding(object("ns", "g", "a", "b<a", "C", "d<c"))

	r := run(t, groupsOf(list), "", "-A", "-o", "yaml")
	if diff := cmp.Diff(result{Out: want}, r); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	j := run(t, groupsOf(list), "", "-A", "-o", "json")
	if y, err := yaml.JSONToYAML([]byte(j.Out)); err != nil || string(y) != want {
		t.Errorf("JSON differs from YAML: %v\n%s", err, cmp.Diff(want, string(y)))
	}

	if e := run(t, groupsOf(holding()), "", "-A", "-o", "json"); e.Out != "{\n  \"groups\": []\n}\n" {
		t.Errorf("no groups are an empty list, got %q", e.Out)
	}
}

func TestInterrupt(t *testing.T) {
	stdin, silent := io.Pipe()
	defer silent.Close()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	for _, build := range []func(genericiooptions.IOStreams) *cobra.Command{NewLint, groupsOf(nil), NewPools} {
		cmd := build(genericiooptions.IOStreams{In: stdin, Out: io.Discard, ErrOut: io.Discard})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"-f", "-"})

		if err := cmd.ExecuteContext(ctx); err == nil || err.Error() != "interrupted: context canceled" {
			t.Errorf("%s: got %v, want an end without input", cmd.Name(), err)
		}
	}
}

func TestNoKubeconfig(t *testing.T) {
	refuse := func(*genericclioptions.ConfigFlags, io.Writer) (lister, error) {
		return nil, errors.New("cannot find a cluster")
	}
	want := result{Code: ExitBlind, Err: "cannot find a cluster"}

	for name, build := range map[string]func(genericiooptions.IOStreams) *cobra.Command{
		"audit":  func(s genericiooptions.IOStreams) *cobra.Command { return newAudit(s, refuse) },
		"groups": func(s genericiooptions.IOStreams) *cobra.Command { return newGroups(s, refuse) },
		"pools":  func(s genericiooptions.IOStreams) *cobra.Command { return newPools(s, refuse) },
	} {
		if diff := cmp.Diff(want, run(t, build, "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	if r := run(t, groupsOf(nil), "", "--kubeconfig", "/nonexistent"); r.Code != ExitBlind || !strings.HasPrefix(r.Err, "cannot read the kubeconfig") {
		t.Errorf("got %+v, want an error about the kubeconfig", r)
	}
}

// newGroupsCommand is the whole command, without a scheduler to ask.
func newGroupsCommand(s genericiooptions.IOStreams) *cobra.Command { return NewGroups(s, Scheduling{}) }
