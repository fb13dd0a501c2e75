package pools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
)

const exportedYAML = `---
apiVersion: plexaubnet.io/v1alpha1
kind: SubnetPool
metadata:
  annotations:
    ipam.plexaubnet.io/pool-uid: u-1
  name: lab
  namespace: net
spec:
  cidr: 10.0.0.0/16
---
apiVersion: plexaubnet.io/v1alpha1
kind: Subnet
metadata:
  name: a
  namespace: net
spec:
  cidr: 10.0.0.0/24
  claimRef:
    name: team
  clusterID: a
  poolRef: lab
---
apiVersion: plexaubnet.io/v1alpha1
kind: SubnetClaim
metadata:
  annotations:
    ipam.plexaubnet.io/block: lab/10.0.0.0/24
  name: team
  namespace: net
spec:
  blockSize: 24
  clusterID: a
  poolRef: lab
`

// stored is sound with what a cluster adds to it.
var storedEstate = strings.NewReplacer("name: lab, namespace: net", "name: lab, namespace: net, uid: u-1, resourceVersion: '7', finalizers: [ipam.plexaubnet.io/finalizer]",
	"name: a, namespace: net", "name: a, namespace: net, uid: u-2, ownerReferences: [{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetClaim, name: team, uid: u-3}]").Replace(clitest.Sound)

func TestPoolsExport(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   clitest.Result
	}{
		"YAML": {reason: "objects have what people write, and the block of each claim", args: []string{"-n", "net"}, want: clitest.Result{Out: exportedYAML}},
		"CSV":  {reason: "pools come first", args: []string{"-n", "net", "-o", "csv"}, want: clitest.Result{Out: "namespace,pool,cidr,clusterID,claim,parent\nnet,lab,10.0.0.0/16,,,\nnet,lab,10.0.0.0/24,a,team,\n"}},
		"NetBox": {
			reason: "pools are containers", args: []string{"-A", "-o", "netbox"},
			want: clitest.Result{Out: "prefix,status,description\n10.0.0.0/16,container,namespace=net pool=lab\n10.0.0.0/24,active,namespace=net pool=lab clusterID=a claim=team\n"},
		},
		"AWS": {
			reason: "as AWS prints it", args: []string{"-A", "-o", "aws"},
			want: clitest.Result{Out: `{
  "IpamPoolCidrs": [
    {
      "Cidr": "10.0.0.0/16",
      "State": "provisioned"
    }
  ],
  "IpamPoolAllocations": [
    {
      "Cidr": "10.0.0.0/24",
      "Description": "claim=team",
      "ResourceId": "a",
      "ResourceType": "custom"
    }
  ]
}
`},
		},
		"Nothing":    {reason: "an empty namespace has nothing", args: []string{"-n", "other"}, want: clitest.Result{ErrOut: "No pools, Subnets or claims found in other namespace.\n"}},
		"NothingCSV": {reason: "the header is there for programs", args: []string{"-n", "other", "-o", "csv"}, want: clitest.Result{Out: "namespace,pool,cidr,clusterID,claim,parent\n", ErrOut: "No pools, Subnets or claims found in other namespace.\n"}},
		"Typo":       {reason: "an empty backup of a namespace that does not exist looks like a backup", args: []string{"-n", "typo"}, want: clitest.Result{Code: command.ExitBlind, Err: `namespace "typo" was not found in the cluster: name another with -n, or look in all of them with -A`}},
		"Format":     {reason: "formats are known by name", args: []string{"-o", "xml"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "xml": use one of yaml, json, csv, netbox, aws`}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := clitest.Run(t, poolsWriting(clitest.Holding(append(clitest.Objects(t, storedEstate), clitest.NamespaceObject("other"))...), nil), "", append([]string{"export"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

const importHeader = "KIND          NAMESPACE   NAME   CIDR          RESULT\n"

func TestPoolsImport(t *testing.T) {
	const (
		rows    = "namespace,pool,cidr,clusterID,claim\nnet,lab,10.0.0.0/16,,\nnet,lab,10.0.0.0/24,a,team\n"
		foreign = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n---\n{apiVersion: plexaubnet.io/v1, kind: Other, metadata: {name: y}}\n"
		empty   = "cannot import -: it has no pools, Subnets or claims: expected SubnetPools, Subnets, SubnetClaims or SubnetPoolClaims of plexaubnet.io"
		planned = importHeader + "SubnetPool    net         lab    10.0.0.0/16   to create\nSubnetClaim   net         team   10.0.0.0/24   to create\n"
	)

	created := strings.ReplaceAll(planned, "to create", "created")
	tests := map[string]struct {
		reason string
		have   string
		stdin  string
		fails  string
		args   []string
		want   clitest.Result
		wrote  []string
	}{
		"DryRun": {reason: "a dry run changes nothing", stdin: rows, args: []string{"--dry-run"}, want: clitest.Result{Out: planned, ErrOut: "2 objects to create, 0 unchanged, 0 conflicts (dry run: nothing was written)\n"}},
		"CSV":    {reason: "a claim asks for its very block", stdin: rows, want: clitest.Result{Out: created, ErrOut: "2 objects created, 0 unchanged, 0 conflicts, 0 failed\n"}, wrote: []string{"create net/lab []", "create net/team []"}},
		"Again":  {reason: "twice is once", stdin: rows, have: clitest.Sound, want: clitest.Result{ErrOut: "0 objects created, 2 unchanged, 0 conflicts, 0 failed\n"}},
		"Backup": {
			reason: "Subnets come before the claims that take them", stdin: storedEstate,
			want: clitest.Result{
				Out:    importHeader + "SubnetPool    net         lab    10.0.0.0/16   created\nSubnet        net         a      10.0.0.0/24   created\nSubnetClaim   net         team   10.0.0.0/24   created\n",
				ErrOut: "3 objects created, 0 unchanged, 0 conflicts, 0 failed\n",
			},
			wrote: []string{"create net/lab []", "create net/a []", "create net/team []"},
		},
		"Conflict": {
			reason: "all or nothing", have: clitest.Sound, stdin: rows + "net,lab,10.0.0.0/25,b,\nnet,lab,10.0.1.0/24,c,c\n",
			want: clitest.Result{
				Out:    "KIND          NAMESPACE   NAME              CIDR          RESULT\nSubnet        net         lab-10-0-0-0-25   10.0.0.0/25   conflict: 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet a\nSubnetClaim   net         c                 10.0.1.0/24   to create\n",
				ErrOut: "1 object to create, 2 unchanged, 1 conflict: nothing was written; fix them, or leave them out with --skip-conflicts\n", Code: command.ExitFound,
			},
		},
		"Skip": {
			reason: "unless what does not fit is left out", have: clitest.Sound, stdin: rows + "net,lab,10.0.0.0/25,b,\nnet,lab,10.0.1.0/24,c,c\n", args: []string{"--skip-conflicts"},
			want: clitest.Result{
				Out:    "KIND          NAMESPACE   NAME              CIDR          RESULT\nSubnet        net         lab-10-0-0-0-25   10.0.0.0/25   conflict: 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet a\nSubnetClaim   net         c                 10.0.1.0/24   created\n",
				ErrOut: "1 object created, 2 unchanged, 1 conflict, 0 failed\n",
			},
			wrote: []string{"create net/c []"},
		},
		"SkipDryRun": {
			reason: "a dry run with --skip-conflicts does not advise to add it", have: clitest.Sound, stdin: rows + "net,lab,10.0.0.0/25,b,\n", args: []string{"--skip-conflicts", "--dry-run"},
			want: clitest.Result{
				Out:    "KIND     NAMESPACE   NAME              CIDR          RESULT\nSubnet   net         lab-10-0-0-0-25   10.0.0.0/25   conflict: 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet a\n",
				ErrOut: "0 objects to create, 2 unchanged, 1 conflict (dry run: nothing was written)\n",
			},
		},
		"SkipClaim": {
			reason: "a claim for the block of a Subnet is left out, and the Subnet is not", args: []string{"--skip-conflicts"},
			stdin: "namespace,pool,cidr,clusterID,claim\nnet,lab,10.0.0.0/16,,\nnet,lab,10.0.0.0/24,a,\nnet,lab,10.0.0.0/24,b,c\n",
			want: clitest.Result{
				Out:    "KIND          NAMESPACE   NAME              CIDR          RESULT\nSubnetPool    net         lab               10.0.0.0/16   created\nSubnet        net         lab-10-0-0-0-24   10.0.0.0/24   created\nSubnetClaim   net         c                 10.0.0.0/24   conflict: 10.0.0.0/24 overlaps 10.0.0.0/24 of Subnet lab-10-0-0-0-24\n",
				ErrOut: "2 objects created, 0 unchanged, 1 conflict, 0 failed\n",
			},
			wrote: []string{"create net/lab []", "create net/lab-10-0-0-0-24 []"},
		},
		"Foreign": {
			reason: "objects of other kinds are counted", stdin: foreign + "---\n" + clitest.Sound, have: clitest.Sound,
			want: clitest.Result{ErrOut: "ignored 2 objects of other kinds\n0 objects created, 3 unchanged, 0 conflicts, 0 failed\n"},
		},
		"OnlyForeign":  {reason: "a file must have something to import", stdin: foreign, want: clitest.Result{Code: command.ExitBlind, ErrOut: "ignored 2 objects of other kinds\n", Err: empty}},
		"Empty":        {reason: "an empty file is a mistake", want: clitest.Result{Code: command.ExitBlind, Err: empty}},
		"Comments":     {reason: "comments are not objects", stdin: "# pools\n---\n# none\n", want: clitest.Result{Code: command.ExitBlind, Err: empty}},
		"EmptyJSON":    {reason: "an empty list too", stdin: `{"apiVersion": "v1", "kind": "List", "items": []}`, want: clitest.Result{Code: command.ExitBlind, Err: empty}},
		"HeaderOnly":   {reason: "a header is not a row", stdin: "pool,cidr,clusterID\n", want: clitest.Result{Code: command.ExitBlind, Err: "cannot import -: it has no pools, Subnets or claims: expected rows below the header pool,cidr,clusterID"}},
		"NetBoxHeader": {reason: "nor is one of NetBox", stdin: "prefix,status\n", want: clitest.Result{Code: command.ExitBlind, Err: "cannot import -: it has no pools, Subnets or claims: expected rows below the header prefix,status"}},
		"AWSEmpty":     {reason: "AWS has empty lists", stdin: `{"IpamPoolCidrs": []}`, want: clitest.Result{Code: command.ExitBlind, Err: "cannot import -: it has no pools, Subnets or claims: expected elements in IpamPoolCidrs or IpamPoolAllocations"}},
		"Failed": {
			reason: "what fails does not stop the others", stdin: rows, fails: "net/lab",
			want:  clitest.Result{Out: strings.Replace(created, "created", "failed: the disk is full", 1), ErrOut: "1 object created, 0 unchanged, 0 conflicts, 1 failed\n", Code: command.ExitFound},
			wrote: []string{"create net/lab []", "create net/team []"},
		},
		"NetBox": {
			reason: "blocks go to the pool around them", have: clitest.Sound, stdin: "prefix,status\n10.0.9.0/24,active\n", args: []string{"-n", "net"},
			want:  clitest.Result{Out: "KIND     NAMESPACE   NAME              CIDR          RESULT\nSubnet   net         lab-10-0-9-0-24   10.0.9.0/24   created\n", ErrOut: "1 object created, 0 unchanged, 0 conflicts, 0 failed\n"},
			wrote: []string{"create net/lab-10-0-9-0-24 []"},
		},
		"Syntax":  {reason: "an error says where", stdin: "namespace,pool,cidr,clusterID\nnet,lab,ten,\n", want: clitest.Result{Code: command.ExitBlind, Err: `cannot import -: line 2: cidr "ten": it is not a CIDR; write an address and a length, such as 10.0.0.0/24 or fd00::/64`}},
		"Unknown": {reason: "formats are known by name", args: []string{"--format", "xml"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown format "xml": use one of yaml, json, csv, netbox, aws`}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			n := &clitest.Notebook{Fails: tc.fails}
			got := clitest.Run(t, poolsWriting(clitest.Holding(clitest.Objects(t, tc.have)...), n), tc.stdin, append([]string{"import", "-f", "-"}, tc.args...)...)

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.wrote, n.Lines); diff != "" {
				t.Errorf("%s: it wrote (-want +got):\n%s", tc.reason, diff)
			}
		})
	}

	if got := clitest.Run(t, poolsWriting(clitest.Holding(), nil), "", "import"); got.Code != command.ExitBlind || !strings.Contains(got.Err, "name a file with -f") {
		t.Errorf("got %+v, want a file to be asked for", got)
	}
}

// A cluster with claims that wait is exported and imported without conflicts, and the claims
// that have a block are created before those that wait.
func TestPoolsTransferWaiting(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")

	source := storedEstate + `---
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetClaim, metadata: {name: cluster, namespace: net}, spec: {poolRef: lab, clusterID: a, blockSize: 24}, status: {phase: Pending}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetClaim, metadata: {name: block, namespace: net}, spec: {poolRef: lab, clusterID: b, requestedCIDR: 10.0.0.0/25}, status: {phase: Pending}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetClaim, metadata: {name: full, namespace: net}, spec: {poolRef: lab, clusterID: c, blockSize: 16}, status: {phase: Pending}}
`
	for _, format := range []string{render.FormatYAML, render.FormatJSON} {
		exported := clitest.Run(t, poolsWriting(clitest.Holding(clitest.Objects(t, source)...), nil), "", "export", "-n", "net", "-o", format)
		n := &clitest.Notebook{}
		got := clitest.Run(t, poolsWriting(clitest.Holding(), n), exported.Out, "import", "-f", "-")
		want := clitest.Result{
			Out: `KIND          NAMESPACE   NAME      CIDR          RESULT
SubnetPool    net         lab       10.0.0.0/16   created
Subnet        net         a         10.0.0.0/24   created
SubnetClaim   net         team      10.0.0.0/24   created
SubnetClaim   net         block     10.0.0.0/25   created: waits because 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet a
SubnetClaim   net         cluster                 created: waits because SubnetClaim team has the block of cluster a in pool lab
SubnetClaim   net         full                    created
`,
			ErrOut: "6 objects created, 0 unchanged, 0 conflicts, 0 failed\n",
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}

		if diff := cmp.Diff([]string{"create net/lab []", "create net/a []", "create net/team []", "create net/block []", "create net/cluster []", "create net/full []"}, n.Lines); diff != "" {
			t.Errorf("%s: it wrote (-want +got):\n%s", format, diff)
		}
	}
}

// poolsWriting is the command on objects in memory.
func poolsWriting(list source.Lister, n *clitest.Notebook) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return New(s, clitest.Cluster(list), n.Connect) }
}
