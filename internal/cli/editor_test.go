package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A notebook is an editor that notes what it is asked for.
type notebook struct {
	lines []string
	fails string // part of the lines that fail
	pages map[string][]metav1.PartialObjectMetadata
}

func (n *notebook) note(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	n.lines = append(n.lines, line)

	if n.fails != "" && strings.Contains(line, n.fails) {
		return errors.New("the disk is full")
	}

	return nil
}

func (n *notebook) Create(_ context.Context, o client.Object) error {
	o.SetUID("uid-" + types.UID(o.GetName()))

	return n.note("create %s/%s %v", o.GetNamespace(), o.GetName(), o.GetFinalizers())
}

func (n *notebook) UpdateStatus(_ context.Context, o client.Object) error {
	s, ok := o.(*v1alpha1.Subnet)
	if !ok {
		return n.note("status of a %T", o)
	}

	return n.note("status %s %s uid=%s pool=%s", s.Name, s.Status.Phase, s.Status.UID, s.Status.PoolUID)
}

func (n *notebook) Patch(_ context.Context, o client.Object, p client.Patch) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}

	return n.note("patch %s/%s %s", o.GetNamespace(), o.GetName(), data)
}

func (n *notebook) Pages(_ context.Context, kind string, visit func([]metav1.PartialObjectMetadata) error) error {
	for i := range n.pages[kind] {
		if err := visit(n.pages[kind][i : i+1]); err != nil {
			return err
		}
	}

	return nil
}

func (n *notebook) connect(*genericclioptions.ConfigFlags) (editor, error) { return n, nil }

// poolsWriting is the command on objects in memory.
func poolsWriting(list lister, n *notebook) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return buildPools(s, cluster(list), n.connect) }
}

// leaseOf is the lease of a manager that was renewed some time ago.
func leaseOf(holder string, ago time.Duration) map[string]any {
	return map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"namespace": "arbor-system", "name": "arbor-manager"},
		"spec": map[string]any{
			"holderIdentity": holder, "leaseDurationSeconds": int64(15),
			"renewTime": time.Now().Add(-ago).UTC().Format(metav1.RFC3339Micro),
		},
	}
}

const upgraded = `
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetPool, metadata: {name: core, namespace: net, uid: u-core, generation: 1}, spec: {cidr: 10.0.0.0/16}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetPool, metadata: {name: lab, namespace: net, uid: u-lab, generation: 1}, spec: {cidr: 10.0.16.0/20, parent: core}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: Subnet, metadata: {name: s, namespace: net, uid: u-s}, spec: {poolRef: lab, cidr: 10.0.16.0/24, clusterID: a}, status: {phase: Allocated}}
`

const migrateHeader = "NAMESPACE   PARENT   CHILD   CIDR           SUBNET              RESULT\n"

func TestPoolsMigrate(t *testing.T) {
	inTheWay := upgraded + "---\n{apiVersion: plexaubnet.io/v1alpha1, kind: Subnet, metadata: {name: x, namespace: net}, spec: {poolRef: core, cidr: 10.0.17.0/24, clusterID: x}, status: {phase: Allocated}}\n"
	tests := map[string]struct {
		reason string
		text   string
		more   []map[string]any
		fails  string
		args   []string
		want   result
		wrote  []string
	}{
		"DryRun": {
			reason: "nothing is written unless it is asked for", text: upgraded,
			want: result{Out: migrateHeader + "net         core     lab     10.0.16.0/20   core-10-0-16-0-20   to create\n", ErrOut: "1 Subnet to create, 0 conflicts (dry run: nothing was written; stop the manager and add --yes)\n"},
		},
		"Write": {
			reason: "the Subnet is protected from its creation, and bound to the pool", text: upgraded, args: []string{"--yes"},
			want:  result{Out: migrateHeader + "net         core     lab     10.0.16.0/20   core-10-0-16-0-20   created\n", ErrOut: "1 Subnet created, 0 conflicts, 0 failed\n"},
			wrote: []string{"create net/core-10-0-16-0-20 [ipam.plexaubnet.io/finalizer]", "status core-10-0-16-0-20 Allocated uid=uid-core-10-0-16-0-20 pool=u-lab"},
		},
		"Conflict": {
			reason: "what is taken stays taken", text: inTheWay, args: []string{"--yes"},
			want: result{Out: "NAMESPACE   PARENT   CHILD   CIDR           SUBNET   RESULT\nnet         core     lab     10.0.16.0/20            conflict: Subnet x of pool core has 10.0.17.0/24\n", ErrOut: "0 Subnets created, 1 conflict, 0 failed\n", Code: ExitFound},
		},
		"Failed": {
			reason: "what cannot be written is reported", text: upgraded, args: []string{"--yes"}, fails: "create",
			want:  result{Out: migrateHeader + "net         core     lab     10.0.16.0/20   core-10-0-16-0-20   failed: cannot create Subnet core-10-0-16-0-20: the disk is full\n", ErrOut: "0 Subnets created, 0 conflicts, 1 failed\n", Code: ExitFound},
			wrote: []string{"create net/core-10-0-16-0-20 [ipam.plexaubnet.io/finalizer]"},
		},
		"Running": {
			reason: "not while a manager leads", text: upgraded, args: []string{"--yes"}, more: []map[string]any{leaseOf("a", time.Second)},
			want: result{Code: ExitBlind, Err: "a manager runs: a holds Lease arbor-system/arbor-manager; scale its Deployment to 0, wait until the Lease is free, and try again"},
		},
		"Released": {
			reason: "a lease that was given back is free", text: sound, args: []string{"--yes"}, more: []map[string]any{leaseOf("", time.Second)},
			want: result{ErrOut: "no child pool needs a backing Subnet\n"},
		},
		"Expired": {
			reason: "so is one that was not renewed", text: sound, args: []string{"--yes"}, more: []map[string]any{leaseOf("a", time.Minute)},
			want: result{ErrOut: "no child pool needs a backing Subnet\n"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &notebook{fails: tc.fails}
			got := run(t, poolsWriting(holding(append(objects(t, tc.text), tc.more...)...), n), "", append([]string{"migrate"}, tc.args...)...)

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.wrote, n.lines); diff != "" {
				t.Errorf("%s: it wrote (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolsRestored(t *testing.T) {
	restoring := strings.Replace(upgraded, "uid: u-core", "uid: u-core, annotations: {ipam.plexaubnet.io/pool-uid: old}", 1) + `---
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetClaim, metadata: {name: team, namespace: net, annotations: {ipam.plexaubnet.io/block: core/10.0.0.0/24}}, spec: {poolRef: core, clusterID: a, blockSize: 24}, status: {phase: Pending, message: taken}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetClaim, metadata: {name: done, namespace: net, annotations: {ipam.plexaubnet.io/block: core/10.0.1.0/24}}, spec: {poolRef: core, clusterID: b, blockSize: 24}, status: {phase: Bound}}
`
	tests := map[string]struct {
		reason string
		args   []string
		want   result
		wrote  []string
	}{
		"Restored": {
			reason: "the annotation has the UID, and what waits is listed", args: []string{"core", "-n", "net"},
			want: result{
				Out:    "NAMESPACE   CLAIM   RECORDED      PHASE     MESSAGE\nnet         team    10.0.0.0/24   Pending   taken\n",
				ErrOut: "pool net/core is restored: new claims get blocks of it\n1 claim waiting for a recorded block; remove the annotation ipam.plexaubnet.io/block to give one up\n",
			},
			wrote: []string{`patch net/core {"metadata":{"annotations":{"ipam.plexaubnet.io/pool-uid":"u-core"},"uid":"u-core"}}`},
		},
		"JSON": {
			reason: "scripts read it too", args: []string{"core", "-n", "net", "-o", "json"},
			want: result{Out: `{
  "namespace": "net",
  "name": "core",
  "ended": true,
  "waiting": [
    {
      "namespace": "net",
      "name": "team",
      "cidr": "10.0.0.0/24",
      "phase": "Pending",
      "message": "taken"
    }
  ]
}
`},
			wrote: []string{`patch net/core {"metadata":{"annotations":{"ipam.plexaubnet.io/pool-uid":"u-core"},"uid":"u-core"}}`},
		},
		"Format": {reason: "not every format is known", args: []string{"core", "-o", "csv"}, want: result{Code: ExitBlind, Err: `unknown output format "csv": use one of table, text, json, yaml`}},
		"Not":    {reason: "a pool that was not restored is left alone", args: []string{"lab", "-n", "net"}, want: result{ErrOut: "pool net/lab was not being restored\n"}},
		"Unknown": {
			reason: "a pool has a name", args: []string{"nope", "-n", "net"},
			want: result{Code: ExitFound, Err: `pool "nope" was not found in net namespace: there is only core, lab; look in another namespace with -n, or in all of them with -A`},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &notebook{}
			got := run(t, poolsWriting(holding(objects(t, restoring)...), n), "", append([]string{"restored"}, tc.args...)...)

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.wrote, n.lines); diff != "" {
				t.Errorf("%s: it wrote (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

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
	protected := poolObject("net", "core", "10.0.0.0/16")
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
		want   result
		wrote  []string
	}{
		"DryRun": {reason: "nothing is written unless it is asked for", args: []string{"--keep-objects"}, want: result{Out: table("0"), ErrOut: "dry run: nothing was written; remove the manager and add --yes\n"}},
		"Write":  {reason: "only our finalizers are removed", args: []string{"--keep-objects", "--yes"}, want: result{Out: table("0"), ErrOut: "no object has a finalizer of Arbor any more; the CRDs can be deleted\n"}, wrote: wrote},
		"Failed": {
			reason: "what fails does not stop the others", args: []string{"--keep-objects", "--yes"}, fails: "net/core",
			want:  result{Out: table("1"), ErrOut: "SubnetPool net/core: the disk is full\n1 object could not be changed: run the command again\n", Code: ExitFound},
			wrote: append([]string{wrote[0]}, wrote...),
		},
		"NoLease": {
			reason: "a manager without a Lease adds them again", args: []string{"--keep-objects", "--yes"}, more: []map[string]any{protected},
			want:  result{Code: ExitBlind, Err: "a manager runs without the Lease of the leader election: it has added the finalizer of pool net/core again; stop it and try again"},
			wrote: wrote[:1],
		},
		"Running": {
			reason: "a manager would add them again", args: []string{"--keep-objects", "--yes"}, more: []map[string]any{leaseOf("a", time.Second)},
			want: result{Code: ExitBlind, Err: "a manager runs: a holds Lease arbor-system/arbor-manager; scale its Deployment to 0, wait until the Lease is free, and try again"},
		},
		"Objects": {reason: "objects are kept", want: result{Code: ExitBlind, Err: "only --keep-objects is offered: it removes finalizers, so that you can delete the CRDs; to remove the manager, use helm uninstall"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &notebook{fails: tc.fails, pages: pages()}
			build := func(s genericiooptions.IOStreams) *cobra.Command {
				return newUninstall(s, cluster(holding(tc.more...)), n.connect)
			}

			if diff := cmp.Diff(tc.want, run(t, build, "", tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.wrote, n.lines); diff != "" {
				t.Errorf("%s: it wrote (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
