package pools

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

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
		want   clitest.Result
		wrote  []string
	}{
		"DryRun": {
			reason: "nothing is written unless it is asked for", text: upgraded,
			want: clitest.Result{Out: migrateHeader + "net         core     lab     10.0.16.0/20   core-10-0-16-0-20   to create\n", ErrOut: "1 Subnet to create, 0 conflicts (dry run: nothing was written; stop the manager and add --yes)\n"},
		},
		"Write": {
			reason: "the Subnet is protected from its creation, and bound to the pool", text: upgraded, args: []string{"--yes"},
			want:  clitest.Result{Out: migrateHeader + "net         core     lab     10.0.16.0/20   core-10-0-16-0-20   created\n", ErrOut: "1 Subnet created, 0 conflicts, 0 failed\n"},
			wrote: []string{"create net/core-10-0-16-0-20 [ipam.plexaubnet.io/finalizer]", "status core-10-0-16-0-20 Allocated uid=uid-core-10-0-16-0-20 pool=u-lab"},
		},
		"Conflict": {
			reason: "what is taken stays taken", text: inTheWay, args: []string{"--yes"},
			want: clitest.Result{Out: "NAMESPACE   PARENT   CHILD   CIDR           SUBNET   RESULT\nnet         core     lab     10.0.16.0/20            conflict: Subnet x of pool core has 10.0.17.0/24\n", ErrOut: "0 Subnets created, 1 conflict, 0 failed\n", Code: command.ExitFound},
		},
		"Failed": {
			reason: "what cannot be written is reported", text: upgraded, args: []string{"--yes"}, fails: "create",
			want:  clitest.Result{Out: migrateHeader + "net         core     lab     10.0.16.0/20   core-10-0-16-0-20   failed: cannot create Subnet core-10-0-16-0-20: the disk is full\n", ErrOut: "0 Subnets created, 0 conflicts, 1 failed\n", Code: command.ExitFound},
			wrote: []string{"create net/core-10-0-16-0-20 [ipam.plexaubnet.io/finalizer]"},
		},
		"Running": {
			reason: "not while a manager leads", text: upgraded, args: []string{"--yes"}, more: []map[string]any{clitest.LeaseOf("a", time.Second)},
			want: clitest.Result{Code: command.ExitBlind, Err: "a manager runs: a holds Lease arbor-system/arbor-manager; scale its Deployment to 0, wait until the Lease is free, and try again"},
		},
		"Released": {
			reason: "a lease that was given back is free", text: clitest.Sound, args: []string{"--yes"}, more: []map[string]any{clitest.LeaseOf("", time.Second)},
			want: clitest.Result{ErrOut: "no child pool needs a backing Subnet\n"},
		},
		"Expired": {
			reason: "so is one that was not renewed", text: clitest.Sound, args: []string{"--yes"}, more: []map[string]any{clitest.LeaseOf("a", time.Minute)},
			want: clitest.Result{ErrOut: "no child pool needs a backing Subnet\n"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &clitest.Notebook{Fails: tc.fails}
			got := clitest.Run(t, poolsWriting(clitest.Holding(append(clitest.Objects(t, tc.text), tc.more...)...), n), "", append([]string{"migrate"}, tc.args...)...)

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.wrote, n.Lines); diff != "" {
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
		want   clitest.Result
		wrote  []string
	}{
		"Restored": {
			reason: "the annotation has the UID, and what waits is listed", args: []string{"core", "-n", "net"},
			want: clitest.Result{
				Out:    "NAMESPACE   CLAIM   RECORDED      PHASE     MESSAGE\nnet         team    10.0.0.0/24   Pending   taken\n",
				ErrOut: "pool net/core is restored: new claims get blocks of it\n1 claim waiting for a recorded block; remove the annotation ipam.plexaubnet.io/block to give one up\n",
			},
			wrote: []string{`patch net/core {"metadata":{"annotations":{"ipam.plexaubnet.io/pool-uid":"u-core"},"uid":"u-core"}}`},
		},
		"JSON": {
			reason: "scripts read it too", args: []string{"core", "-n", "net", "-o", "json"},
			want: clitest.Result{Out: `{
  "apiVersion": "cli.arbor.dev/v1",
  "kind": "PoolRestore",
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
		"Format": {reason: "not every format is known", args: []string{"core", "-o", "csv"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "csv": use one of table, json, yaml, jsonpath=TEMPLATE`}},
		"Not":    {reason: "a pool that was not restored is left alone", args: []string{"lab", "-n", "net"}, want: clitest.Result{ErrOut: "pool net/lab was not being restored\n"}},
		"Unknown": {
			reason: "a pool has a name", args: []string{"nope", "-n", "net"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pool "nope" was not found in net namespace: there is only core, lab; look in another namespace with -n, or in all of them with -A`},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &clitest.Notebook{}
			got := clitest.Run(t, poolsWriting(clitest.Holding(clitest.Objects(t, restoring)...), n), "", append([]string{"restored"}, tc.args...)...)

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.wrote, n.Lines); diff != "" {
				t.Errorf("%s: it wrote (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
