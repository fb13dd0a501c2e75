package uninstall

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

func TestUninstall(t *testing.T) {
	object := func(name string, finalizers ...string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: name, ResourceVersion: "7", Finalizers: finalizers}}
	}
	pages := func() map[string][]metav1.PartialObjectMetadata {
		return map[string][]metav1.PartialObjectMetadata{
			v1alpha1.SubnetPoolKind: {object("core", "other", v1alpha1.Finalizer), object("lab", v1alpha1.Finalizer)},
			v1alpha1.SubnetKind:     {object("s")},
		}
	}
	protected := clitest.SubnetPool("net", "core", "10.0.0.0/16")
	(&unstructured.Unstructured{Object: protected}).SetFinalizers([]string{v1alpha1.Finalizer})
	table := func(failed string) string {
		return "KIND              OBJECTS   FINALIZERS   FAILED\nSubnetPool        2         2            " + failed + "\nSubnet            1         0            0\nSubnetClaim       0         0            0\nSubnetPoolClaim   0         0            0\n"
	}
	wrote := []string{`patch net/core {"metadata":{"finalizers":["other"],"resourceVersion":"7"}}`, `patch net/lab {"metadata":{"finalizers":[],"resourceVersion":"7"}}`}
	tests := map[string]struct {
		reason string
		more   []map[string]any
		fails  string
		args   []string
		want   clitest.Result
		wrote  []string
	}{
		"DryRun": {reason: "nothing is written unless it is asked for", args: []string{"--keep-objects"}, want: clitest.Result{Out: table("0"), ErrOut: "dry run: nothing was written; remove the manager and add --yes\n"}},
		"Write":  {reason: "only our finalizers are removed", args: []string{"--keep-objects", "--yes"}, want: clitest.Result{Out: table("0"), ErrOut: "no object has a finalizer of Arbor any more; the CRDs can be deleted\n"}, wrote: wrote},
		"Failed": {
			reason: "what fails does not stop the others", args: []string{"--keep-objects", "--yes"}, fails: "net/core",
			want:  clitest.Result{Out: table("1"), ErrOut: "SubnetPool net/core: the disk is full\n1 object could not be changed: run the command again\n", Code: command.ExitFound},
			wrote: append([]string{wrote[0]}, wrote...),
		},
		"NoLease": {
			reason: "a manager without a Lease adds them again", args: []string{"--keep-objects", "--yes"}, more: []map[string]any{protected},
			want:  clitest.Result{Code: command.ExitBlind, Err: "a manager runs without the Lease of the leader election: it has added the finalizer of pool net/core again; stop it and try again"},
			wrote: wrote[:1],
		},
		"Running": {
			reason: "a manager would add them again", args: []string{"--keep-objects", "--yes"}, more: []map[string]any{clitest.LeaseOf("a", time.Second)},
			want: clitest.Result{Code: command.ExitBlind, Err: "a manager runs: a holds Lease arbor-system/arbor-manager; scale its Deployment to 0, wait until the Lease is free, and try again"},
		},
		"Objects": {reason: "objects are kept", want: clitest.Result{Code: command.ExitBlind, Err: "only --keep-objects is offered: it removes finalizers, so that you can delete the CRDs; to remove the manager, use helm uninstall"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &clitest.Notebook{Fails: tc.fails, Metadata: pages()}
			build := func(s genericiooptions.IOStreams) *cobra.Command {
				return New(s, clitest.Cluster(clitest.Holding(tc.more...)), n.Connect)
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.wrote, n.Lines); diff != "" {
				t.Errorf("%s: it wrote (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
