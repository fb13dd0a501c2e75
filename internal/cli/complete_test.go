package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/source"
)

// TestCompleteNames presses the tab key.
func TestCompleteNames(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("contexts: [{name: c, context: {namespace: own}}]\ncurrent-context: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   []string
		fails  bool
		want   []string // what the cluster is asked for, and what the shell gets
	}{
		"Group":     {reason: "A name of the current namespace.", args: []string{"groups", "o"}, want: []string{"podgroups in own", "one", "other"}},
		"Prefix":    {reason: "Only those that begin like it.", args: []string{"groups", "ot"}, want: []string{"podgroups in own", "other"}},
		"Namespace": {reason: "Of another namespace.", args: []string{"pools", "show", "-n", "net", ""}, want: []string{"subnetpools in net", "one", "other"}},
		"All":       {reason: "Of all namespaces.", args: []string{"delivery", "-A", ""}, want: []string{"compositions in ", "one", "other"}},
		"Several":   {reason: "A name is given once.", args: []string{"delivery", "one", ""}, want: []string{"compositions in own", "other"}},
		"Single":    {reason: "A command that takes one name has it.", args: []string{"delivery", "history", "one", ""}},
		"Cluster":   {reason: "Synthesizers have no namespace.", args: []string{"delivery", "rollout", "resume", ""}, want: []string{"synthesizers in ", "one", "other"}},
		"Flag":      {reason: "A flag is completed, too.", args: []string{"pools", "plan", "--pool", ""}, want: []string{"subnetpools in own", "one", "other"}},
		"Spaces":    {reason: "So are namespaces.", args: []string{"pools", "-n", ""}, want: []string{"namespaces in ", "one", "other"}},
		"NoCluster": {reason: "Without an answer there is nothing.", args: []string{"pools", "show", ""}, fails: true, want: []string{"subnetpools in own"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			connect := func(*genericclioptions.ConfigFlags, io.Writer) (source.Lister, error) {
				return func(_ context.Context, q source.Query) ([]map[string]any, error) {
					got = append(got, q.Resource.Resource+" in "+q.Namespace)
					if tc.fails {
						return nil, errors.New("no answer")
					}

					return []map[string]any{{"metadata": map[string]any{"name": "other"}}, {"metadata": map[string]any{"name": "one"}}}, nil
				}, nil
			}
			streams := genericiooptions.NewTestIOStreamsDiscard()
			root := &cobra.Command{Use: "arbor"}
			root.AddCommand(groupsCommand(streams), poolsCommand(streams), deliveryCommand(streams))
			completeNames(root, connect)
			out := &bytes.Buffer{}
			root.SetOut(out)
			root.SetErr(io.Discard)
			t.Setenv("KUBECONFIG", kubeconfig)
			root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, tc.args...))
			if err := root.Execute(); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ":") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
