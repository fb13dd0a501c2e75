package groups

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
)

func groupsOf(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return newGroups(s, clitest.Cluster(list)) }
}

func TestGroups(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C")

	one, two, flat := clitest.PodGroup("default", "one", "x"), clitest.PodGroup("other", "two", "y"), clitest.PodGroup("default", "flat")
	all := clitest.Holding(one, flat, clitest.PodGroup("default", "flat2"), two)

	tests := map[string]struct {
		reason string
		list   source.Lister
		stdin  string
		args   []string
		want   clitest.Result
	}{
		"Namespace": {
			reason: "the current namespace is drawn, trees apart from the others",
			list:   all,
			want:   clitest.Result{Out: "default/one  queue q, min 2 pods\n`- x  min 1 pod\n\ndefault/flat  queue q, min 2 pods\ndefault/flat2  queue q, min 2 pods\n"},
		},
		"Name": {reason: "or one of it", list: all, args: []string{"flat"}, want: clitest.Result{Out: "default/flat  queue q, min 2 pods\n"}},
		"All":  {reason: "a name may be looked for everywhere", list: all, args: []string{"two", "-A"}, want: clitest.Result{Out: "other/two  queue q, min 2 pods\n`- y  min 1 pod\n"}},
		"None": {reason: "nothing there is said as kubectl does", list: clitest.Holding(), want: clitest.Result{ErrOut: "No pod groups found in default namespace.\n"}},
		"NoneAnywhere": {
			reason: "in all namespaces too", list: clitest.Holding(), args: []string{"-A"},
			want: clitest.Result{ErrOut: "No pod groups found in any namespace.\n"},
		},
		"NotFound": {
			reason: "a name that is not there is an error with a way out",
			list:   all, args: []string{"two", "-n", "default"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pod group "two" was not found in default namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"NotFoundAnywhere": {
			reason: "and another one if it is nowhere",
			list:   all, args: []string{"three", "-A"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pod group "three" was not found in any namespace: leave out the name to see what is there`},
		},
		"NotInstalled": {
			reason: "without the API there is nothing to see",
			list:   clitest.Failing(source.ErrNotInstalled),
			want:   clitest.Result{Code: command.ExitBlind, Err: "the PodGroup API (scheduling.run.ai/v2alpha2) is not installed in this cluster"},
		},
		"NoCluster": {reason: "nor without a cluster", list: clitest.Failing(errors.New("no answer")), want: clitest.Result{Code: command.ExitBlind, Err: "no answer"}},
		"Format":    {reason: "formats are known by name", args: []string{"-o", "dot"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "dot": use one of tree, table, wide, name, json, yaml, jsonpath=TEMPLATE`}},
		"TwoNames":  {reason: "one name at a time", args: []string{"a", "b"}, want: clitest.Result{Code: command.ExitBlind, Err: "accepts at most 1 arg(s), received 2\nSee 'groups --help' for usage"}},
		"File": {
			reason: "a manifest is drawn without a cluster, whatever else it holds",
			stdin:  "kind: ConfigMap\n---\n" + clitest.PodGroupHead + "spec: {subGroups: [{name: x}]}", args: []string{"-f", "-"},
			want: clitest.Result{Out: "ns/a\n`- x\n"},
		},
		"FileFilter": {
			reason: "name and namespace choose among the objects of a file",
			stdin:  clitest.PodGroupHead + "---\n" + strings.ReplaceAll(clitest.PodGroupHead, "name: a", "name: b") + "---\n" + strings.ReplaceAll(clitest.PodGroupHead, ", namespace: ns", ""),
			args:   []string{"a", "-n", "x", "-f", "-"},
			want:   clitest.Result{Out: "a\n"},
		},
		"FileNotFound": {
			reason: "a name that is not in the files is an error",
			stdin:  clitest.PodGroupHead, args: []string{"b", "-n", "ns", "-f", "-"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pod group "b" was not found in ns namespace of the given files: leave out the name to see what is there`},
		},
		"FileEmpty": {reason: "no groups in files are said too", stdin: "a: b", args: []string{"-f", "-"}, want: clitest.Result{ErrOut: "No pod groups found in the given files.\n"}},
		"FileBad": {
			reason: "what can be read is drawn",
			stdin:  clitest.PodGroupHead + "---\n}", args: []string{"-f", "-"},
			want: clitest.Result{Out: "ns/a\n", ErrOut: "<stdin>:5: error: invalid YAML: did not find expected node content\n", Code: command.ExitBlind},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clitest.Run(t, groupsOf(tc.list), tc.stdin, tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGroupsMachine(t *testing.T) {
	const want = `apiVersion: cli.arbor.dev/v1
groups:
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
kind: PodGroupTrees
`

	list := clitest.Holding(clitest.PodGroup("ns", "g", "a", "b<a", "C", "d<c"))

	r := clitest.Run(t, groupsOf(list), "", "-A", "-o", "yaml")
	if diff := cmp.Diff(clitest.Result{Out: want}, r); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	j := clitest.Run(t, groupsOf(list), "", "-A", "-o", "json")
	if y, err := yaml.JSONToYAML([]byte(j.Out)); err != nil || string(y) != want {
		t.Errorf("JSON differs from YAML: %v\n%s", err, cmp.Diff(want, string(y)))
	}

	if e := clitest.Run(t, groupsOf(clitest.Holding()), "", "-A", "-o", "json"); e.Out != "{\n  \"apiVersion\": \"cli.arbor.dev/v1\",\n  \"kind\": \"PodGroupTrees\",\n  \"groups\": []\n}\n" {
		t.Errorf("no groups are an empty list, got %q", e.Out)
	}
}
