package pools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

var longName = strings.Repeat("a-long-name-", 8) + "end"

func TestPools(t *testing.T) {
	tests := map[string]struct {
		reason string
		given  string
		args   []string
		want   string
	}{
		"Narrow": {
			reason: "at 80 columns what there is to say stands under a pool",
			given:  clitest.Pools,
			want: `
network  5 pools, 9 Subnets, 2 claims wait
├─ core              10.0.0.0/8    █░░░░░░░░░  13%
│  │  2 Subnets, 2 child pools, Linear, 42% fragmented,
│  │  free /9 2×/11 /12…/15 /17
│  ├─ east           10.0.0.0/12   █░░░░░░░░░  <1%
│  │  │  0 Subnets, 1 child pool, Buddy, 49% fragmented, free /13…/20
│  │  └─ ✗ east-lab  10.0.0.0/20   ██████████ 100%
│  │        exhausted: no /24 is left
│  │        2 Subnets, 2 claims wait, Linear, nothing free
│  └─ ! west         10.16.0.0/12  █████████░  93%
│        nearly full
│        4 Subnets, Linear, free /16
└─ edge              fd00:10::/32  █░░░░░░░░░  <1%
      1 Subnet, Linear, 49% fragmented, free /33…/64
`,
		},
		"Wide": {
			reason: "at 120 it stands beside it",
			given:  clitest.Pools, args: []string{"--width", "120"},
			want: `
network  5 pools, 9 Subnets, 2 claims wait
├─ core              10.0.0.0/8    █░░░░░░░░░  13%  2 Subnets, 2 child pools, Linear, 42% fragmented,
│  │                                                free /9 2×/11 /12…/15 /17
│  ├─ east           10.0.0.0/12   █░░░░░░░░░  <1%  0 Subnets, 1 child pool, Buddy, 49% fragmented, free /13…/20
│  │  └─ ✗ east-lab  10.0.0.0/20   ██████████ 100%  exhausted: no /24 is left
│  │                                                2 Subnets, 2 claims wait, Linear, nothing free
│  └─ ! west         10.16.0.0/12  █████████░  93%  nearly full
│                                                   4 Subnets, Linear, free /16
└─ edge              fd00:10::/32  █░░░░░░░░░  <1%  1 Subnet, Linear, 49% fragmented, free /33…/64
`,
		},
		"Name": {
			reason: "a name narrows it to that pool and what was taken from it",
			given:  clitest.Pools, args: []string{"east", "--width", "120"},
			want: `
network  2 pools, 2 Subnets, 2 claims wait
└─ east           10.0.0.0/12  █░░░░░░░░░  <1%  taken from core, 0 Subnets, 1 child pool, Buddy, 49% fragmented,
   │                                            free /13…/20
   └─ ✗ east-lab  10.0.0.0/20  ██████████ 100%  exhausted: no /24 is left
                                                2 Subnets, 2 claims wait, Linear, nothing free
`,
		},
		"Depth": {
			reason: "what is too deep is counted",
			given:  clitest.Pools, args: []string{"--depth", "1", "--width", "120"},
			want: `
network  5 pools, 9 Subnets, 2 claims wait
├─ core  10.0.0.0/8    █░░░░░░░░░  13%  2 Subnets, 2 child pools, Linear, 42% fragmented, free /9 2×/11 /12…/15 /17
│  └─ … 3 more below
└─ edge  fd00:10::/32  █░░░░░░░░░  <1%  1 Subnet, Linear, 49% fragmented, free /33…/64
`,
		},
		"Empty": {
			reason: "a pool may have nothing in it",
			given:  "pool lab 10.0.0.0/16",
			want: `
network  1 pool, 0 Subnets
└─ lab  10.0.0.0/16  ░░░░░░░░░░   0%  0 Subnets, Linear, free /16
`,
		},
		"Fragmented": {
			reason: "many sizes are cut short",
			given: `
pool p 10.0.0.0/16 defaultBlockSize=28
subnet p 10.0.0.0/28 a
subnet p 10.0.0.64/26 b
subnet p 10.0.0.144/28 c
subnet p 10.0.0.200/32 d
subnet p 10.0.2.0/24 e
subnet p 10.0.64.0/30 f
subnet p 10.0.80.0/22 g
`,
			args: []string{"--width", "120"},
			want: `
network  1 pool, 7 Subnets
└─ p  10.0.0.0/16  █░░░░░░░░░   2%  7 Subnets, Linear, 48% fragmented, free /17 2×/19 /20 3×/21 3×/22 /23 +9 sizes
`,
		},
		"MissingParent": {
			reason: "a parent that is not there leaves a pool in the air, and what was taken from it with it",
			given:  "pool lab 10.0.0.0/16 parent=gone\npool sub 10.0.0.0/24 parent=lab\npool root 10.0.0.0/16",
			want: `
network  3 pools, 0 Subnets
└─ root  10.0.0.0/16  ░░░░░░░░░░   0%  0 Subnets, Linear, free /16
! lab    10.0.0.0/16  █░░░░░░░░░  <1%  its parent "gone" was not found
│                                      0 Subnets, 1 child pool, Linear,
│                                      49% fragmented, free /17…/24
└─ sub   10.0.0.0/24  ░░░░░░░░░░   0%  0 Subnets, Linear, free /24
`,
		},
		"Cycle": {
			reason: "a cycle is cut at its first member",
			given: `
pool a 10.0.0.0/16 parent=c
pool b 10.0.0.0/17 parent=a
pool c 10.0.0.0/18 parent=b
pool leaf 10.0.128.0/20 parent=a
pool self 10.1.0.0/16 parent=self
`,
			want: `
network  5 pools, 0 Subnets
✗ a        10.0.0.0/16    █████░░░░░  56%
│  it is taken from itself: a -> c -> b -> a
│  0 Subnets, 2 child pools, Linear, 42% fragmented, free /18…/20
├─ b       10.0.0.0/17    █████░░░░░  50%
│  │  0 Subnets, 1 child pool, Linear, free /18
│  └─ ✗ c  10.0.0.0/18    ░░░░░░░░░░   0%
│        1 block does not fit
│        0 Subnets, Linear, free /18
└─ leaf    10.0.128.0/20  ░░░░░░░░░░   0%
      0 Subnets, Linear, free /20
✗ self     10.1.0.0/16    ██████████ 100%
   it is taken from itself: self -> self
   exhausted: no /24 is left
   0 Subnets, 1 child pool, Linear, nothing free
`,
		},
		"CycleName": {
			reason: "one of a cycle can be asked for",
			given:  "pool a 10.0.0.0/16 parent=b\npool b 10.0.0.0/17 parent=a", args: []string{"b"},
			want: `
network  1 pool, 0 Subnets
✗ b  10.0.0.0/17  ░░░░░░░░░░   0%  1 block does not fit
                                   taken from a, 0 Subnets, Linear, free /17
`,
		},
		"LongNames": {
			reason: "a name that is too long has a line of its own and moves nothing; nor does a long address",
			given:  "pool " + longName + " 10.0.0.0/16\npool short 10.1.0.0/16\npool v6 2001:db8:1234:5678:9abc:def0:1234:0/112\nsubnet " + longName + " 10.0.0.0/17 x",
			want: `
network  3 pools, 1 Subnet
├─ ` + longName + `
│         10.0.0.0/16                              █████░░░░░  50%
│     1 Subnet, Linear, free /17
├─ short  10.1.0.0/16                              ░░░░░░░░░░   0%
│     0 Subnets, Linear, free /16
└─ v6     2001:db8:1234:5678:9abc:def0:1234:0/112  ░░░░░░░░░░   0%
      0 Subnets, Linear, free /112
`,
		},
		"LongNamesWide": {
			reason: "also where what there is to say stands beside it",
			given:  "pool " + longName + " 10.0.0.0/16\npool short 10.0.0.0/17 parent=" + longName, args: []string{"--width", "120"},
			want: `
network  2 pools, 0 Subnets
└─ ` + longName + `
   │         10.0.0.0/16  █████░░░░░  50%  0 Subnets, 1 child pool, Linear, free /17
   └─ short  10.0.0.0/17  ░░░░░░░░░░   0%  0 Subnets, Linear, free /17
`,
		},
		"Invalid": {
			reason: "a pool that is no prefix is shown with the controller's words",
			given:  "pool p 10.0.0.5/24\npool q nonsense\npool r 10.0.0.0/16\npool s x parent=r\nsubnet p 10.0.0.0/28 a", args: []string{"--width", "200"},
			want: `
network  4 pools, 1 Subnet
├─ ✗ p     10.0.0.5/24                   ` + noCIDR("10.0.0.5/24") + `
│                                        1 Subnet, Linear
├─ ✗ q     nonsense                      ` + noCIDR("nonsense") + `
│                                        0 Subnets, Linear
└─ r       10.0.0.0/16  ░░░░░░░░░░   0%  0 Subnets, Linear, free /16
   └─ ✗ s  x                             ` + noCIDR("x") + `
                                         0 Subnets, Linear
`,
		},
		"InvalidNarrow": {
			reason: "at 80 columns too",
			given:  "pool a-rather-long-name-of-a-pool nonsense\npool r 10.0.0.0/16",
			want: `
network  2 pools, 0 Subnets
├─ ✗ a-rather-long-name-of-a-pool  nonsense
│     ` + strings.Join(render.Wrap(strings.Fields(noCIDR("nonsense")), " ", 74), "\n│     ") + `
│     0 Subnets, Linear
└─ r                               10.0.0.0/16  ░░░░░░░░░░   0%
      0 Subnets, Linear, free /16
`,
		},
		"Misfits": {
			reason: "what overlaps or lies outside is not counted, and what failed counts as absent",
			given: `
pool p 10.0.0.0/24 defaultBlockSize=26
subnet p 10.0.0.0/26 pending phase=Pending
subnet p 10.0.0.0/25 first
subnet p 10.1.0.0/26 outside
subnet p 10.0.0.128/26 failed phase=Failed
`,
			want: `
network  1 pool, 3 Subnets
└─ ✗ p  10.0.0.0/24  █████░░░░░  50%  2 blocks do not fit
                                      3 Subnets, Linear, free /25
`,
		},
		"Claimed": {
			reason: "a child pool and the Subnet that holds its block are one thing; a claim for a pool waits like others",
			given: `
pool p 10.0.0.0/16
pool child 10.0.0.0/20 parent=p
subnet p 10.0.0.0/20 uid claim=child
claim child p 20 phase=Bound
poolclaim child p 20 phase=Bound
poolclaim other p 20
`,
			args: []string{"p", "--depth", "1", "--width", "120"},
			want: `
network  2 pools, 0 Subnets, 1 claim waits
└─ p  10.0.0.0/16  █░░░░░░░░░   6%  0 Subnets, 1 child pool, 1 claim waits, Linear, 46% fragmented, free /17…/20
   └─ … 1 more below
`,
		},
		"Claims": {
			reason: "claims wait that have no block, may have one, and stay; what names a pool that is not there counts nowhere",
			given: `
pool p 10.0.0.0/16
subnet p 10.0.0.0/24 served claim=served
claim served  p 24
claim bound   p 24 phase=Bound
claim error   p 24 phase=Error
claim leaving p 24 gone=2026-01-01T00:00:00Z
claim waiting p 24 phase=Pending
claim lost    nowhere 24
subnet nowhere 10.0.0.0/24 lost
`,
			args: []string{"--width", "120"},
			want: `
network  1 pool, 1 Subnet, 1 claim waits
└─ p  10.0.0.0/16  █░░░░░░░░░  <1%  1 Subnet, 1 claim waits, Linear, 49% fragmented, free /17…/24
`,
		},
		"Deleting": {
			reason: "a pool on its way out says so",
			given:  "pool p 10.0.0.0/16 gone=2026-01-01T00:00:00Z",
			want: `
network  1 pool, 0 Subnets
└─ ! p  10.0.0.0/16  ░░░░░░░░░░   0%  it is being deleted
                                      0 Subnets, Linear, free /16
`,
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Plain(t)

			got := clitest.Run(t, poolsOf(nil), clitest.Manifests(t, clitest.IPAM("network", tc.given)...), append(tc.args, "-f", "-")...)
			if diff := cmp.Diff(clitest.Result{Out: strings.TrimPrefix(tc.want, "\n")}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolsPlaces(t *testing.T) {
	one := clitest.IPAM("default", "pool one 10.0.0.0/24\nsubnet one 10.0.0.0/24 a")
	two := clitest.IPAM("other", "pool two 10.0.0.0/25\npool three 10.0.1.0/24")
	nowhere := clitest.IPAM("", "pool lab 10.0.0.0/25 defaultBlockSize=26\nsubnet lab 10.0.0.0/26 a")

	const oneDrawn = "default  1 pool, 1 Subnet\n`- x one  10.0.0.0/24  ########## 100%  exhausted: no /24 is left\n" +
		"                                        status is behind\n                                        1 Subnet, Linear, nothing free\n"

	tests := map[string]struct {
		reason string
		list   source.Lister
		stdin  string
		args   []string
		want   clitest.Result
	}{
		"Namespace": {reason: "the current namespace is drawn", list: clitest.Serving(append(one, two...)...), want: clitest.Result{Out: oneDrawn}},
		"All": {
			reason: "namespaces stand apart",
			list:   clitest.Serving(append(one, two...)...), args: []string{"-A", "--width", "100"},
			want: clitest.Result{Out: oneDrawn + "\n" + `other  2 pools, 0 Subnets
|- ! three  10.0.1.0/24  ..........   0%  status is behind
|                                         0 Subnets, Linear, free /24
` + "`" + `- ! two    10.0.0.0/25  ..........   0%  status is behind
                                          0 Subnets, Linear, free /25
`},
		},
		"None":         {reason: "nothing there is said as kubectl does", list: clitest.Serving(clitest.NamespaceObject("default")), want: clitest.Result{ErrOut: "No pools found in default namespace.\n"}},
		"NoneAnywhere": {reason: "in all namespaces too", list: clitest.Serving(), args: []string{"-A"}, want: clitest.Result{ErrOut: "No pools found in any namespace.\n"}},
		"NoNamespace": {
			reason: "a namespace that does not exist is an error, as in check and export", list: clitest.Serving(clitest.NamespaceObject("default")), args: []string{"-n", "typo", "-o", "json"},
			want: clitest.Result{Code: command.ExitBlind, Err: `namespace "typo" was not found in the cluster: name another with -n, or look in all of them with -A`},
		},
		"NotFound": {
			reason: "a name that is not there is an error that names what is",
			list:   clitest.Serving(append(one, two...)...), args: []string{"two"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pool "two" was not found in default namespace: there is only one; look in another namespace with -n, or in all of them with -A`},
		},
		"NotFoundAmongMany": {
			reason: "or the first of them",
			list:   clitest.Serving(clitest.IPAM("default", "pool a 10.0.0.0/24\npool b 10.0.1.0/24\npool c 10.0.2.0/24\npool d 10.0.3.0/24\npool e 10.0.4.0/24\npool f 10.0.5.0/24")...), args: []string{"x", "-A"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pool "x" was not found in any namespace: there are a, b, c, d, e and 1 more; leave out the name to see what is there`},
		},
		"NotFoundInNothing": {
			reason: "or nothing",
			list:   clitest.Serving(), args: []string{"x"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pool "x" was not found in default namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"NotInstalled": {
			reason: "without the API there is a way to go on",
			list:   clitest.Failing(source.ErrNotInstalled),
			want:   clitest.Result{Code: command.ExitBlind, Err: "the SubnetPoolClaim API (plexaubnet.io/v1alpha1) is not installed in this cluster: install Arbor there with subnets.enabled in the chart, or --controllers=subnets of the manager, or read manifests with -f"},
		},
		"NoCluster": {reason: "nor without a cluster", list: clitest.Failing(errors.New("no answer")), want: clitest.Result{Code: command.ExitBlind, Err: "no answer"}},
		"Undecodable": {
			reason: "what a cluster says is trusted or refused",
			list:   clitest.Serving(clitest.IPAM("default", "pool p 10.0.0.0/24 maxBlockSize=x")...),
			want:   clitest.Result{Code: command.ExitBlind, Err: "cannot use SubnetPool default/p: cannot decode: unrecognized type: int32"},
		},
		"Format":   {reason: "formats are known by name", args: []string{"-o", "dot"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "dot": use one of tree, table, wide, name, json, yaml, jsonpath=TEMPLATE`}},
		"TwoNames": {reason: "one name at a time", args: []string{"a", "b"}, want: clitest.Result{Code: command.ExitBlind, Err: "accepts at most 1 arg(s), received 2\nSee 'pools --help' for usage"}},
		"Flag":     {reason: "flags are checked", args: []string{"--wide"}, want: clitest.Result{Code: command.ExitBlind, Err: "unknown flag: --wide\nSee 'pools --help' for usage"}},
		"File": {
			reason: "a manifest without a namespace belongs together",
			stdin:  clitest.Manifests(t, nowhere...), args: []string{"-f", "-"},
			want: clitest.Result{Out: "(no namespace)  1 pool, 1 Subnet\n`- lab  10.0.0.0/25  #####.....  50%  1 Subnet, Linear, free /26\n"},
		},
		"FileNamespace": {
			reason: "and may be meant for any",
			stdin:  clitest.Manifests(t, append(nowhere, one...)...), args: []string{"-f", "-", "-n", "ns"},
			want: clitest.Result{Out: "ns  1 pool, 1 Subnet\n`- lab  10.0.0.0/25  #####.....  50%  1 Subnet, Linear, free /26\n"},
		},
		"FileTwice": {
			reason: "of two with one name the last counts, and other kinds do not",
			stdin:  clitest.Manifests(t, append(clitest.IPAM("", "pool lab 10.9.0.0/16\nthing x y"), append(nowhere, clitest.PodGroup("", "group"))...)...), args: []string{"-f", "-"},
			want: clitest.Result{Out: "(no namespace)  1 pool, 1 Subnet\n`- lab  10.0.0.0/25  #####.....  50%  1 Subnet, Linear, free /26\n"},
		},
		"FileEmpty": {reason: "no pools in files are said too", stdin: "a: b", args: []string{"-f", "-", "-n", "ns"}, want: clitest.Result{ErrOut: "No pools found in ns namespace of the given files.\n"}},
		"FileBad": {
			reason: "what can be read is drawn",
			stdin:  clitest.Manifests(t, nowhere...) + "\n---\n}", args: []string{"-f", "-"},
			want: clitest.Result{
				Out:    "(no namespace)  1 pool, 1 Subnet\n`- lab  10.0.0.0/25  #####.....  50%  1 Subnet, Linear, free /26\n",
				ErrOut: "<stdin>:3: error: invalid YAML: did not find expected node content\n", Code: command.ExitBlind,
			},
		},
		"FileUndecodable": {
			reason: "and so it is if one object cannot be used",
			stdin:  clitest.Manifests(t, append(nowhere, clitest.IPAM("", "pool p 10.0.0.0/24 maxBlockSize=x")...)...), args: []string{"-f", "-"},
			want: clitest.Result{
				Out:    "(no namespace)  1 pool, 1 Subnet\n`- lab  10.0.0.0/25  #####.....  50%  1 Subnet, Linear, free /26\n",
				ErrOut: "<stdin>:1: error: SubnetPool p: cannot decode: unrecognized type: int32\n", Code: command.ExitBlind,
			},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Plain(t)
			t.Setenv("LC_ALL", "C")

			if diff := cmp.Diff(tc.want, clitest.Run(t, poolsOf(tc.list), tc.stdin, tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPoolsInstalledInPart : each kind says for itself that it is not there.
func TestPoolsInstalledInPart(t *testing.T) {
	clitest.Plain(t)

	for _, kind := range []string{"SubnetPool", "Subnet", "SubnetClaim", "SubnetPoolClaim"} {
		r := clitest.Run(t, poolsOf(func(_ context.Context, q source.Query) ([]map[string]any, error) {
			if strings.EqualFold(q.Resource.Resource, kind+"s") {
				return nil, source.ErrNotInstalled
			}

			return nil, nil
		}), "")
		if r.Code != command.ExitBlind || !strings.HasPrefix(r.Err, "the "+kind+" API (plexaubnet.io/v1alpha1) is not installed") {
			t.Errorf("%s: got %+v", kind, r)
		}
	}
}

func TestPoolsColour(t *testing.T) {
	draw := func(text string) string {
		a := ipamplan.NewObjects()
		for _, o := range clitest.IPAM("n", text) {
			if err := source.Collect(a, o, ""); err != nil {
				t.Fatal(err)
			}
		}

		var out bytes.Buffer
		if err := drawPools(&out, ipam.TreesOf(ipamplan.NewInventory(a, true), (&output.Flags{}).Matches), 0, 200, render.Style{Colour: true}); err != nil {
			t.Fatal(err)
		}

		return out.String()
	}

	tests := map[string]struct{ reason, given, want string }{
		"Exhausted": {
			"An exhausted pool is red.", "pool p 10.0.0.0/24\nsubnet p 10.0.0.0/24 a",
			"\x1b[1mn\x1b[0m  1 pool, 1 Subnet\n`- \x1b[31mx \x1b[0mp  10.0.0.0/24  \x1b[31m########## 100%\x1b[0m  \x1b[31mexhausted: no /24 is left\x1b[0m\n" +
				strings.Repeat(" ", 38) + "1 Subnet, Linear, nothing free\n",
		},
		"NearlyFull": {
			"One that is nearly full is yellow.", "pool p 10.0.0.0/28 defaultBlockSize=32\nsubnet p 10.0.0.0/29 a\nsubnet p 10.0.0.8/30 a\nsubnet p 10.0.0.12/31 a\nsubnet p 10.0.0.14/32 a",
			"\x1b[1mn\x1b[0m  1 pool, 4 Subnets\n`- \x1b[33m! \x1b[0mp  10.0.0.0/28  \x1b[33m#########.  93%\x1b[0m  \x1b[33mnearly full\x1b[0m\n" +
				strings.Repeat(" ", 38) + "4 Subnets, Linear, free /32\n",
		},
		"Names": {
			"Names cannot bring their own colours.", "pool \x1b[31mp \x1b[31m",
			"\x1b[1mn\x1b[0m  1 pool, 0 Subnets\n`- \x1b[31mx \x1b[0m\\x1b[31mp  \\x1b[31m           " +
				"\x1b[31m" + noCIDR("\x1b[31m") + "\x1b[0m\n" + strings.Repeat(" ", 35) + "0 Subnets, Linear\n",
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, draw(tc.given)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPoolsStatus : a status that the controller wrote is not behind, and one
// that says something else is.
func TestPoolsStatus(t *testing.T) {
	objects := clitest.IPAM("default", `
pool p 10.0.0.0/16
pool child 10.0.0.0/20 parent=p
subnet p 10.0.0.0/20 uid claim=child
subnet p 10.0.16.0/24 a
`)

	for _, o := range objects {
		if ref := identity.RefOf(o); ref.Kind == "SubnetPool" && ref.Name == "p" {
			o["metadata"].(map[string]any)["uid"] = "u"
			o["status"] = map[string]any{"cidr": "10.0.0.0/16", "uid": "u"}
		}
	}

	a := ipamplan.NewObjects()
	for _, o := range objects {
		if err := source.Collect(a, o, ""); err != nil {
			t.Fatal(err)
		}
	}

	written := func(t *testing.T, change func(status map[string]any)) source.Lister {
		t.Helper()

		for _, s := range ipamplan.NewInventory(a, false).Pools {
			want := s.Count()

			status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
			if err != nil {
				t.Fatal(err)
			}

			for _, o := range objects {
				if ref := identity.RefOf(o); ref.Kind == "SubnetPool" && ref.Name == s.Name {
					if s.Name == "p" {
						status["cidr"], status["uid"] = "10.0.0.0/16", "u"
						change(status)
					}

					o["status"] = status
				}
			}
		}

		return clitest.Serving(objects...)
	}

	tests := map[string]struct {
		reason string
		change func(status map[string]any)
		want   bool
	}{
		"Same":       {"What is written is what is counted.", func(map[string]any) {}, false},
		"Count":      {"A Subnet too few.", func(s map[string]any) { s["allocatedCount"] = int64(0) }, true},
		"Twin":       {"A child pool and the Subnet that holds its block count once, as delegated.", func(s map[string]any) { s["allocatedCount"] = int64(2) }, true},
		"Listed":     {"Another cluster has a block.", func(s map[string]any) { s["allocatedCIDRs"].(map[string]any)["10.0.16.0/24"] = "b" }, true},
		"Generation": {"It speaks of another spec.", func(s map[string]any) { s["observedGeneration"] = int64(7) }, true},
		"Conditions": {"Conditions are looked at by others.", func(s map[string]any) { delete(s, "conditions") }, false},
		"Used":       {"Other addresses are taken.", func(s map[string]any) { s["utilizationPercent"] = int64(50) }, true},
		"Fragmented": {"The free space is cut otherwise.", func(s map[string]any) { s["fragmentationPercent"] = int64(1) }, true},
		"Sizes":      {"Other blocks are free.", func(s map[string]any) { s["allocatableCountBySize"].(map[string]any)["24"] = int64(1) }, true},
		"Open":       {"It has the range of another pool.", func(s map[string]any) { s["uid"] = "v" }, true},
		"None":       {"Nothing was written yet.", func(s map[string]any) { clear(s) }, true},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Plain(t)

			r := clitest.Run(t, poolsOf(written(t, tc.change)), "")
			if got := strings.Contains(r.Out, "status is behind"); got != tc.want {
				t.Errorf("%s It is behind: %t, want %t\n%s", tc.reason, got, tc.want, r.Out)
			}
		})
	}
}

func TestPoolsMachine(t *testing.T) {
	const want = `apiVersion: cli.arbor.dev/v1
kind: PoolTrees
pools:
- childPools: 1
  children:
  - lab
  cidr: 10.0.0.0/16
  depth: 1
  exhausted: false
  fragmentationPercent: 49
  free:
  - count: 1
    length: 17
  - count: 1
    length: 18
  - count: 1
    length: 19
  - count: 1
    length: 20
  - count: 1
    length: 21
  - count: 1
    length: 22
  - count: 1
    length: 23
  - count: 1
    length: 24
  largestFree: 17
  name: core
  namespace: ns
  notes: []
  statusBehind: false
  strategy: Linear
  subnets: 0
  utilizationPercent: 0
  waitingClaims: 0
- childPools: 0
  children: []
  cidr: 10.0.0.0/24
  depth: 2
  exhausted: true
  fragmentationPercent: 0
  free: []
  name: lab
  namespace: ns
  notes:
  - message: 'exhausted: no /24 is left'
    severity: error
  parent: core
  statusBehind: false
  strategy: Buddy
  subnets: 1
  utilizationPercent: 100
  waitingClaims: 1
`

	clitest.Plain(t)

	stdin := clitest.Manifests(t, clitest.IPAM("ns", "pool core 10.0.0.0/16\npool lab 10.0.0.0/24 parent=core strategy=Buddy\nsubnet lab 10.0.0.0/24 a\nclaim b lab 24")...)

	if diff := cmp.Diff(clitest.Result{Out: want}, clitest.Run(t, poolsOf(nil), stdin, "-f", "-", "-o", "yaml")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	j := clitest.Run(t, poolsOf(nil), stdin, "-f", "-", "-o", "json")
	if y, err := yaml.JSONToYAML([]byte(j.Out)); err != nil || string(y) != want {
		t.Errorf("JSON differs from YAML: %v\n%s", err, cmp.Diff(want, string(y)))
	}

	if e := clitest.Run(t, poolsOf(clitest.Serving()), "", "-A", "-o", "json"); e.Out != "{\n  \"apiVersion\": \"cli.arbor.dev/v1\",\n  \"kind\": \"PoolTrees\",\n  \"pools\": []\n}\n" {
		t.Errorf("no pools are an empty list, got %q", e.Out)
	}

	var bad ipam.PoolsView

	r := clitest.Run(t, poolsOf(nil), clitest.Manifests(t, clitest.IPAM("ns", "pool p x")...), "-f", "-", "-o", "json")
	if err := json.Unmarshal([]byte(r.Out), &bad); err != nil || len(bad.Pools) != 1 || bad.Pools[0].LargestFree != nil || bad.Pools[0].Free == nil {
		t.Errorf("a pool that is no prefix has empty figures, got %s, %v", r.Out, err)
	}
}

// TestPoolsFit : no line is wider than it may be, at any width that people use.
func TestPoolsFit(t *testing.T) {
	clitest.Plain(t)

	stdin := clitest.Manifests(t, clitest.IPAM("network", clitest.Pools)...)

	for width := 64; width <= 200; width++ {
		for _, line := range clitest.Lines(clitest.Run(t, poolsOf(nil), stdin, "-f", "-", "--width", strconv.Itoa(width)).Out) {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%d columns in %d: %s", n, width, line)
			}
		}
	}
}

// TestPoolsDeep draws a chain that is far too deep, and a ring.
func TestPoolsDeep(t *testing.T) {
	clitest.Plain(t)

	const n = 2000

	var chain strings.Builder

	for i := range n {
		fmt.Fprintf(&chain, "pool p%04d 10.0.0.0/24 parent=p%04d\n", i, (i+n-1)%n)
	}

	ring := chain.String()

	for name, given := range map[string]string{"Chain": strings.Replace(ring, "parent=p1999", "", 1), "Ring": ring} {
		r := clitest.Run(t, poolsOf(nil), clitest.Manifests(t, clitest.IPAM("n", given)...), "-f", "-")
		if out := clitest.Lines(r.Out); !strings.HasSuffix(out[len(out)-1], fmt.Sprintf("… %d more below", n-render.DefaultDepth)) {
			t.Errorf("%s ends with %q", name, out[len(out)-1])
		}
	}
}

// TestPoolsCrowd : what is done per Subnet does not depend on how many there
// are, or this would not end.
func TestPoolsCrowd(t *testing.T) {
	clitest.Plain(t)

	commands := poolsOf(clitest.Serving(clitest.Crowd(50_000)...))

	const tree = `default  1 pool, 50000 Subnets
└─ ! p  10.0.0.0/8  █░░░░░░░░░   4%  status is behind
                                     50000 Subnets, Linear, 47% fragmented, free /9…/11 /14…/17 /20 /22 /23 50000×/28
`

	for args, want := range map[string]string{
		"--width 120":                            tree,
		"show p":                                 "… 99960 more rows: use --all, --taken or --free\n",
		"plan --pool p --size 28 --count 100000": "10.0.0.16/28",
	} {
		if r := clitest.Run(t, commands, "", strings.Fields(args)...); !strings.Contains(r.Out, want) || r.Code != 0 {
			t.Errorf("%s: exit %d, %s, want %q in\n%.2000s", args, r.Code, r.Err, want, r.Out)
		}
	}
}

// poolsOf is the command with everything below it, on objects in memory.
func poolsOf(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return New(s, clitest.Cluster(list), nil) }
}

// noCIDR is what the controller says of a CIDR that is none.
func noCIDR(text string) string {
	return (&ipamplan.Pool{SubnetPool: &v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{CIDR: text}}}).Unusable()
}
