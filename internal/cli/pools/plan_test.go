package pools

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

func planOn(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return newPoolsPlan(s, clitest.Cluster(list)) }
}

const (
	lab     = "pool p 10.0.0.0/20\npool c 10.0.8.0/24 parent=p\nsubnet p 10.0.0.0/23 a\nsubnet p 10.0.4.0/24 b"
	crowded = "pool p 10.0.0.0/22\nclaim young p 24 at=2026-01-02T00:00:00Z\nclaim old p 23 at=2026-01-01T00:00:00Z"
)

func TestPoolsPlan(t *testing.T) {
	tests := map[string]struct {
		reason string
		given  string
		args   string
		want   clitest.Result
	}{
		"Linear": {
			reason: "the lowest addresses that are free are handed out",
			given:  lab, args: "--pool p --size 24 --count 3",
			want: clitest.Result{Out: `
network/p  10.0.0.0/20, Linear

BLOCK         SUBNET
10.0.2.0/24   p-10-0-2-0-24
10.0.3.0/24   p-10-0-3-0-24
10.0.5.0/24   p-10-0-5-0-24

                     BEFORE   AFTER
taken                25.0%    43.8%
fragmented           66.7%    55.6%
largest free block   /22      /22
free blocks of /24   12       9
`},
		},
		"Buddy": {
			reason: "or the smallest blocks that are large enough, if that is asked",
			given:  lab, args: "--pool p --size 25 --count 3 --strategy Buddy",
			want: clitest.Result{Out: `
network/p  10.0.0.0/20, Buddy

BLOCK           SUBNET
10.0.5.0/25     p-10-0-5-0-25
10.0.5.128/25   p-10-0-5-128-25
10.0.9.0/25     p-10-0-9-0-25

                     BEFORE   AFTER
taken                25.0%    34.4%
fragmented           66.7%    61.9%
largest free block   /22      /22
free blocks of /25   24       21
`},
		},
		"Defaults": {
			reason: "size and strategy are the pool's unless they are given",
			given:  "pool p 10.0.0.0/20 strategy=Buddy defaultBlockSize=21\nsubnet p 10.0.0.0/28 a", args: "--pool p",
			want: clitest.Result{Out: `
network/p  10.0.0.0/20, Buddy

BLOCK         SUBNET
10.0.8.0/21   p-10-0-8-0-21

                     BEFORE   AFTER
taken                0.4%     50.4%
fragmented           49.8%    49.6%
largest free block   /21      /22
free blocks of /21   1        0
`},
		},
		"IPv6": {
			reason: "counts are exact however large they are, and shares are never rounded to nothing or all",
			given:  "pool p ::/0 defaultBlockSize=64", args: "--pool p --count 2",
			want: clitest.Result{Out: `
network/p  ::/0, Linear

BLOCK          SUBNET
::/64          p----64
0:0:0:1::/64   p-0-0-0-1---64

                     BEFORE                 AFTER
taken                0%                     <0.1%
fragmented           0%                     50.0%
largest free block   /0                     /1
free blocks of /64   18446744073709551616   18446744073709551614
`},
		},
		"NearlyAll": {
			reason: "as here",
			given:  "pool p 10.0.0.0/8", args: "--pool p --requested 10.0.0.0/9,10.128.0.0/10,10.192.0.0/11,10.224.0.0/12,10.240.0.0/13,10.248.0.0/14,10.252.0.0/15,10.254.0.0/16,10.255.0.0/17,10.255.128.0/18,10.255.192.0/19,10.255.224.0/20 --all",
			want: clitest.Result{Out: `
network/p  10.0.0.0/8, Linear

BLOCK             SUBNET
10.0.0.0/9        p-10-0-0-0-9
10.128.0.0/10     p-10-128-0-0-10
10.192.0.0/11     p-10-192-0-0-11
10.224.0.0/12     p-10-224-0-0-12
10.240.0.0/13     p-10-240-0-0-13
10.248.0.0/14     p-10-248-0-0-14
10.252.0.0/15     p-10-252-0-0-15
10.254.0.0/16     p-10-254-0-0-16
10.255.0.0/17     p-10-255-0-0-17
10.255.128.0/18   p-10-255-128-0-18
10.255.192.0/19   p-10-255-192-0-19
10.255.224.0/20   p-10-255-224-0-20

                     BEFORE   AFTER
taken                0%       >99.9%
fragmented           0%       0%
largest free block   /8       /20
free blocks of /9    2        0
`},
		},
		"Requested": {
			reason: "a block that is taken is told with its holder, and the others are planned",
			given:  lab, args: "--pool p --requested 10.0.8.0/23 --requested 10.0.1.0/24,10.0.15.0/24,10.0.15.0/25 --count 2",
			want: clitest.Result{
				Out: `
network/p  10.0.0.0/20, Linear

BLOCK          SUBNET
10.0.15.0/24   p-10-0-15-0-24
10.0.2.0/24    p-10-0-2-0-24
10.0.3.0/24    p-10-0-3-0-24

                     BEFORE   AFTER
taken                25.0%    43.8%
fragmented           66.7%    77.8%
largest free block   /22      /23
free blocks of /24   12       9
`,
				Code: command.ExitFound,
				Err: `cannot hand out 10.0.8.0/23 of pool p: it overlaps 10.0.8.0/24 of child pool c; choose another block, or leave the choice to the pool with --size 23
cannot hand out 10.0.1.0/24 of pool p: it overlaps 10.0.0.0/23 of Subnet p-10-0-0-0-23; choose another block, or leave the choice to the pool with --size 24
cannot hand out 10.0.15.0/25 of pool p: it overlaps 10.0.15.0/24, which is planned before it; choose another block, or leave the choice to the pool with --size 25`,
			},
		},
		"Waiting": {
			reason: "claims that wait are served first, the oldest before the others",
			given:  crowded, args: "--pool p --size 24",
			want: clitest.Result{Out: `
network/p  10.0.0.0/22, Linear
2 claims wait and are served first

BLOCK         SUBNET
10.0.3.0/24   p-10-0-3-0-24

                     BEFORE   AFTER
taken                0%       100%
fragmented           0%       0%
largest free block   /22      none
free blocks of /24   4        0
`},
		},
		"NotWaiting": {
			reason: "unless they are left out",
			given:  crowded, args: "--pool p --size 24 --after-waiting=false",
			want: clitest.Result{Out: `
network/p  10.0.0.0/22, Linear
2 claims wait and would be served first; this is without them

BLOCK         SUBNET
10.0.0.0/24   p-10-0-0-0-24

                     BEFORE   AFTER
taken                0%       25.0%
fragmented           0%       33.3%
largest free block   /22      /23
free blocks of /24   4        3
`},
		},
		"WaitingInTheWay": {
			reason: "when they take the space that is missing, it is said",
			given:  crowded, args: "--pool p --size 24 --count 3",
			want: clitest.Result{
				Out: `
network/p  10.0.0.0/22, Linear
2 claims wait and are served first

BLOCK         SUBNET
10.0.3.0/24   p-10-0-3-0-24

                     BEFORE   AFTER
taken                0%       100%
fragmented           0%       0%
largest free block   /22      none
free blocks of /24   4        0
`,
				Code: command.ExitFound,
				Err:  "cannot hand out 3 blocks of /24 from pool p: only 1 would fit, and then every address is taken; 3 blocks of /26 would fit (--size 26); all would fit without the claims that wait (--after-waiting=false); release blocks, or use another pool",
			},
		},
		"SomeWait": {
			reason: "a claim that does not fit, that the pool refuses, or whose cluster has a block goes on waiting",
			given: `
pool p 10.0.0.0/22
subnet p 10.0.0.0/24 same claim=other
claim a p 22
claim b p 24 clusterID=same
claim c p 9
claim d p 24 clusterID=twice
claim e p 24 clusterID=twice
`,
			args: "--pool p --size 24",
			want: clitest.Result{Out: `
network/p  10.0.0.0/22, Linear
5 claims wait; 1 of them is served first

BLOCK         SUBNET
10.0.2.0/24   p-10-0-2-0-24

                     BEFORE   AFTER
taken                25.0%    75.0%
fragmented           33.3%    0%
largest free block   /23      /24
free blocks of /24   3        1
`},
		},
		"MoreWait": {
			reason: "also if several are served",
			given:  "pool p 10.0.0.0/22\nclaim a p 25\nclaim b p 25\nclaim c p 22", args: "--pool p --size 24",
			want: clitest.Result{Out: `
network/p  10.0.0.0/22, Linear
3 claims wait; 2 of them are served first

BLOCK         SUBNET
10.0.1.0/24   p-10-0-1-0-24

                     BEFORE   AFTER
taken                0%       50.0%
fragmented           0%       0%
largest free block   /22      /23
free blocks of /24   4        2
`},
		},
		"Full": {
			reason: "a full pool has nothing to offer",
			given:  "pool p 10.0.0.0/22\nsubnet p 10.0.0.0/22 x\nclaim a p 22", args: "--pool p --size 24",
			want: clitest.Result{
				Out: `
network/p  10.0.0.0/22, Linear
1 claim waits and cannot be served

                     BEFORE   AFTER
taken                100%     100%
fragmented           0%       0%
largest free block   none     ` + "none" + `
free blocks of /24   0        0
`,
				Code: command.ExitFound, Err: "cannot hand out 1 block of /24 from pool p: every address is taken; release blocks, or use another pool",
			},
		},
		"TooLarge": {
			reason: "what is too large says what is left",
			given:  "pool p 10.0.0.0/22\nsubnet p 10.0.0.0/24 x", args: "--pool p --size 22",
			want: clitest.Result{
				Out: `
network/p  10.0.0.0/22, Linear

                     BEFORE   AFTER
taken                25.0%    25.0%
fragmented           33.3%    33.3%
largest free block   /23      /23
free blocks of /22   0        0
`,
				Code: command.ExitFound, Err: "cannot hand out 1 block of /22 from pool p: the largest free block is a /23; 1 block of /23 would fit (--size 23); release blocks, or use another pool",
			},
		},
		"TooMany": {
			reason: "and what is too much how many fit",
			given:  "pool p 10.0.0.0/22\nsubnet p 10.0.0.0/24 x", args: "--pool p --size 23 --count 2",
			want: clitest.Result{
				Out: `
network/p  10.0.0.0/22, Linear

BLOCK         SUBNET
10.0.2.0/23   p-10-0-2-0-23

                     BEFORE   AFTER
taken                25.0%    75.0%
fragmented           33.3%    0%
largest free block   /23      /24
free blocks of /23   1        0
`,
				Code: command.ExitFound, Err: "cannot hand out 2 blocks of /23 from pool p: only 1 would fit, and the largest block left is then a /24; 2 blocks of /24 would fit (--size 24); release blocks, or use another pool",
			},
		},
		"NothingSmaller": {
			reason: "a size that the pool refuses is no help",
			given:  "pool p 10.0.0.0/24 maxBlockSize=25\nsubnet p 10.0.0.0/25 x", args: "--pool p --size 25 --count 2",
			want: clitest.Result{
				Out: `
network/p  10.0.0.0/24, Linear

BLOCK           SUBNET
10.0.0.128/25   p-10-0-0-128-25

                     BEFORE   AFTER
taken                50.0%    100%
fragmented           0%       0%
largest free block   /25      none
free blocks of /25   1        0
`,
				Code: command.ExitFound, Err: "cannot hand out 2 blocks of /25 from pool p: only 1 would fit, and then every address is taken; release blocks, or use another pool",
			},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Plain(t)

			tc.want.Out = strings.TrimPrefix(tc.want.Out, "\n")

			got := clitest.Run(t, planOn(nil), clitest.Manifests(t, clitest.IPAM("network", tc.given)...), append(strings.Fields(tc.args), "-f", "-")...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolsPlanErrors(t *testing.T) {
	objects := append(clitest.IPAM("a", "pool p 10.0.0.0/16 minBlockSize=20 maxBlockSize=28\npool old 10.1.0.0/16 gone=2026-01-01T00:00:00Z\npool bad x"), clitest.IPAM("b", "pool p 10.0.0.0/16")...)

	tests := map[string]struct {
		reason string
		list   source.Lister
		args   string
		want   clitest.Result
	}{
		"NoPool":      {"A pool must be named.", nil, "--size 24", clitest.Result{Code: command.ExitBlind, Err: "no pool to plan for: name one, as in 'arbor pools plan NAME'"}},
		"Two":         {"And only one.", nil, "p --pool q", clitest.Result{Code: command.ExitBlind, Err: `two pools, "p" and --pool "q": name one`}},
		"Argument":    {"It is named by an argument.", clitest.Failing(errors.New("no answer")), "p", clitest.Result{Code: command.ExitBlind, Err: "no answer"}},
		"NoCount":     {"Something must be asked for.", nil, "--pool p --count 0", clitest.Result{Code: command.ExitBlind, Err: "--count 0: it must be between 1 and 100000"}},
		"HugeCount":   {"But not everything.", nil, "--pool p --count 100001", clitest.Result{Code: command.ExitBlind, Err: "--count 100001: it must be between 1 and 100000"}},
		"Strategy":    {"Strategies are known by name.", nil, "--pool p --strategy best", clitest.Result{Code: command.ExitBlind, Err: `unknown strategy "best": use one of Linear, Buddy`}},
		"Format":      {"And so are formats.", nil, "--pool p -o csv", clitest.Result{Code: command.ExitBlind, Err: `unknown output format "csv": use one of table, json, yaml, jsonpath=TEMPLATE`}},
		"NoCluster":   {"There must be somewhere to look.", clitest.Failing(errors.New("no answer")), "--pool p", clitest.Result{Code: command.ExitBlind, Err: "no answer"}},
		"Unknown":     {"The pool must be there.", clitest.Serving(objects...), "--pool q -n b", clitest.Result{Code: command.ExitBlind, Err: `pool "q" was not found in b namespace: there is only p; look in another namespace with -n, or in all of them with -A`}},
		"Ambiguous":   {"Once.", clitest.Serving(objects...), "--pool p -A", clitest.Result{Code: command.ExitBlind, Err: `pool "p" is in several namespaces: choose one of a, b with -n`}},
		"Invalid":     {"It must be a prefix.", clitest.Serving(objects...), "--pool bad -A", clitest.Result{Code: command.ExitFound, Err: `cannot use pool "bad": ` + noCIDR("x")}},
		"Deleting":    {"It must stay.", clitest.Serving(objects...), "--pool old -A", clitest.Result{Code: command.ExitFound, Err: "pool old hands out nothing: it is being deleted"}},
		"TooLarge":    {"The pool's limits apply, in the claim's words.", clitest.Serving(objects...), "--pool p -n a --size 16", clitest.Result{Code: command.ExitFound, Err: "pool p hands out blocks from /20 to /28, not /16"}},
		"TooSmall":    {"Both of them.", clitest.Serving(objects...), "--pool p -n a --size 30", clitest.Result{Code: command.ExitFound, Err: "pool p hands out blocks from /20 to /28, not /30"}},
		"Negative":    {"And those of the family.", clitest.Serving(objects...), "--pool p -n b --size -1", clitest.Result{Code: command.ExitFound, Err: "pool p hands out blocks from /16 to /32, not /-1"}},
		"Outside":     {"A block must be one of the pool's.", clitest.Serving(objects...), "--pool p -n b --requested 10.1.0.0/24", clitest.Result{Code: command.ExitFound, Err: "10.1.0.0/24 is not inside of pool p, 10.0.0.0/16: ask for a block of that, or of another pool"}},
		"NoCIDR":      {"And one at all.", clitest.Serving(objects...), "--pool p -n b --requested x", clitest.Result{Code: command.ExitFound, Err: `requestedCIDR "x" is not a CIDR`}},
		"NotANumber":  {"Flags are checked.", nil, "--size x", clitest.Result{Code: command.ExitBlind, Err: "invalid argument \"x\" for \"--size\" flag: strconv.ParseInt: parsing \"x\": invalid syntax\nSee 'plan --help' for usage"}},
		"Unreachable": {"A kubeconfig must be readable.", nil, "--pool p --kubeconfig /nonexistent", clitest.Result{Code: command.ExitBlind, Err: "cannot read the kubeconfig: stat /nonexistent: no such file or directory"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Plain(t)

			if diff := cmp.Diff(tc.want, clitest.Run(t, planOn(tc.list), "", strings.Fields(tc.args)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolsPlanMachine(t *testing.T) {
	clitest.Plain(t)

	stdin := clitest.Manifests(t, clitest.IPAM("n", "pool p 10.0.0.0/24 defaultBlockSize=26\nclaim w p 25\nclaim x p 24")...)
	r := clitest.Run(t, planOn(nil), stdin, "--pool", "p", "--count", "3", "-f", "-", "-o", "json")

	var got ipam.PlanView
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}

	const problem = "cannot hand out 3 blocks of /26 from pool p: only 2 would fit, and then every address is taken; " +
		"3 blocks of /27 would fit (--size 27); all would fit without the claims that wait (--after-waiting=false); release blocks, or use another pool"

	want := ipam.PlanView{
		Namespace: "n", Pool: "p", CIDR: "10.0.0.0/24", Strategy: "Linear", Size: 26,
		Waiting: []ipamplan.Planned{
			{CIDR: "10.0.0.0/25", Subnet: "p-10-0-0-0-25", Claim: "w"},
			{Claim: "x", Why: "cannot allocate a /24 from 10.0.0.0/24: the largest free block is a /25; ask for that or less, release blocks, or use another pool"},
		},
		Blocks:   []ipamplan.Planned{{CIDR: "10.0.0.128/26", Subnet: "p-10-0-0-128-26"}, {CIDR: "10.0.0.192/26", Subnet: "p-10-0-0-192-26"}},
		Problems: []string{problem},
		Before:   ipam.PlanSpaceView{SpaceView: ipam.SpaceView{LargestFree: new(24), Free: []ipam.FreeSize{{Length: 24, Count: 1}}}, FreeOfSize: 4},
		After:    ipam.PlanSpaceView{SpaceView: ipam.SpaceView{UtilizationPercent: 100, Free: []ipam.FreeSize{}}},
	}

	if diff := cmp.Diff(want, got); diff != "" || r.Code != command.ExitFound || r.Err != problem {
		t.Errorf("exit %d, %s (-want +got):\n%s", r.Code, r.Err, diff)
	}

	r = clitest.Run(t, planOn(nil), clitest.Manifests(t, clitest.IPAM("n", "pool p 10.0.0.0/24")...)+"\n---\n}", "--pool", "p", "--size", "23", "-f", "-")
	if r.Code != command.ExitFound {
		t.Errorf("what the pool refuses counts more than a file that cannot be read, got %+v", r)
	}

	r = clitest.Run(t, planOn(nil), clitest.Manifests(t, clitest.IPAM("n", "pool p 10.0.0.0/24")...)+"\n---\n}", "--pool", "p", "--count", "2", "-f", "-")
	if r.Code != command.ExitBlind {
		t.Errorf("of a file that cannot be read nobody knows what fits, got %+v", r)
	}

	if r := clitest.Run(t, planOn(nil), clitest.Manifests(t, clitest.IPAM("n", "pool p 10.0.0.0/24")...), "--pool", "p", "-f", "-", "-o", "yaml"); !strings.Contains(r.Out, "fits: true\n") || !strings.Contains(r.Out, "problems: []\n") {
		t.Errorf("got %+v, want a plan that fits", r)
	}
}

// TestPoolsPlanLimit : a long plan is cut short unless all of it is asked for.
func TestPoolsPlanLimit(t *testing.T) {
	clitest.Plain(t)

	stdin := clitest.Manifests(t, clitest.IPAM("n", "pool p 10.0.0.0/8")...)
	if r := clitest.Run(t, planOn(nil), stdin, "--pool", "p", "--count", "60", "-f", "-"); !strings.Contains(r.Out, "p-10-0-49-0-24\n… 10 more rows: use --all\n") {
		t.Errorf("got\n%s", r.Out)
	}

	if r := clitest.Run(t, planOn(nil), stdin, "--pool", "p", "--count", "60", "-f", "-", "--all"); !strings.Contains(r.Out, "p-10-0-59-0-24\n\n") {
		t.Errorf("got\n%s", r.Out)
	}
}
