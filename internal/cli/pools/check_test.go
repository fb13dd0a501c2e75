package pools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

func checkOf(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command { return newPoolsCheck(s, clitest.Cluster(list)) }
}

const (
	// broken has a Subnet in the same place, and one that nobody judges.
	broken = clitest.Sound + `---
{apiVersion: plexaubnet.io/v1alpha1, kind: Subnet, metadata: {name: b, namespace: net}, spec: {poolRef: lab, cidr: 10.0.0.0/25, clusterID: b}, status: {phase: Allocated}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: Subnet, metadata: {name: c, namespace: net, generation: 1}, spec: {poolRef: lab, cidr: 10.0.1.0/24, clusterID: c}}
`
	brokenTable = `KIND     NAMESPACE   NAME   REASON      FIELD          PROBLEM
Subnet   net         b      Overlap     spec.cidr      10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet a, and both are Allocated (see who uses these addresses, and delete the claim of the other)
Subnet   net         c      NotJudged   status.phase   it was not judged yet, so nobody may use it (see whether a manager runs with --controllers=subnets)
`
)

func TestPoolsCheck(t *testing.T) {
	elsewhere := clitest.SubnetPool("other", "lab", "10.0.0.0/33")

	tests := map[string]struct {
		reason string
		list   source.Lister
		files  map[string]string
		stdin  string
		args   []string
		want   clitest.Result
	}{
		"Fine":  {reason: "nothing wrong is said in one line", list: clitest.Holding(clitest.Objects(t, clitest.Sound)...), want: clitest.Result{ErrOut: "checked 1 pool, 1 subnet, 1 claim: nothing wrong\n"}},
		"Empty": {reason: "also about nothing", list: clitest.Holding(), want: clitest.Result{ErrOut: "checked 0 pools, 0 subnets, 0 claims: nothing wrong\n"}},
		"EmptyNamespace": {
			reason: "a namespace without pools may be the wrong one", list: clitest.Holding(clitest.NamespaceObject("other")), args: []string{"-n", "other"},
			want: clitest.Result{ErrOut: "No pools, Subnets or claims found in other namespace.\nchecked 0 pools, 0 subnets, 0 claims: nothing wrong\n"},
		},
		"Typo": {
			reason: "nothing is wrong in a namespace that does not exist", list: clitest.Holding(clitest.NamespaceObject("other")), args: []string{"-n", "typo"},
			want: clitest.Result{Code: command.ExitBlind, Err: `namespace "typo" was not found in the cluster: name another with -n, or look in all of them with -A`},
		},
		"NamespacesForbidden": {
			reason: "who may not list namespaces cannot know", args: []string{"-n", "typo"},
			list: func(_ context.Context, q source.Query) ([]map[string]any, error) {
				if q.Resource.Resource == "namespaces" {
					return nil, errors.New("forbidden")
				}

				return nil, nil
			},
			want: clitest.Result{ErrOut: "No pools, Subnets or claims found in typo namespace.\nchecked 0 pools, 0 subnets, 0 claims: nothing wrong\n"},
		},
		"Wrong": {
			reason: "every finding is a row",
			list:   clitest.Holding(clitest.Objects(t, broken)...),
			want:   clitest.Result{Out: brokenTable, ErrOut: "checked 1 pool, 3 subnets, 1 claim: 1 error, 1 warning\n", Code: command.ExitFound},
		},
		"Namespace":     {reason: "-n restricts it", list: clitest.Holding(append(clitest.Objects(t, clitest.Sound), elsewhere)...), args: []string{"-n", "net"}, want: clitest.Result{ErrOut: "checked 1 pool, 1 subnet, 1 claim: nothing wrong\n"}},
		"AllNamespaces": {reason: "-A does not", list: clitest.Holding(append(clitest.Objects(t, clitest.Sound), elsewhere)...), args: []string{"-A", "-n", "net"}, want: clitest.Result{Out: "KIND         NAMESPACE   NAME   REASON        FIELD       PROBLEM\nSubnetPool   other       lab    InvalidCIDR   spec.cidr   \"10.0.0.0/33\" is not a CIDR (write an address and a length, such as 10.0.0.0/16 or fd00::/48)\n", ErrOut: "checked 2 pools, 1 subnet, 1 claim: 1 error, 0 warnings\n", Code: command.ExitFound}},
		"Undecodable": {
			reason: "what cannot be read is a finding, and the rest of it counts",
			list:   clitest.Holding(clitest.Objects(t, strings.Replace(clitest.Sound, "cidr: 10.0.0.0/16", "cidr: 10.0.0.0/16, defaultBlockSize: many", 1))...),
			want: clitest.Result{
				Out:    "KIND         NAMESPACE   NAME   REASON        FIELD                   PROBLEM\nSubnetPool   net         lab    Undecodable   spec.defaultBlockSize   cannot decode: unrecognized type: int32\n",
				ErrOut: "checked 1 pool, 1 subnet, 1 claim: 1 error, 0 warnings\n", Code: command.ExitFound,
			},
		},
		"NotInstalled": {reason: "without the API there is nothing to see", list: clitest.Failing(source.ErrNotInstalled), want: clitest.Result{Code: command.ExitBlind, Err: "the SubnetPool API (plexaubnet.io/v1alpha1) is not installed in this cluster"}},
		"NoCluster":    {reason: "no answer is no verdict", list: clitest.Failing(errors.New("no answer")), want: clitest.Result{Code: command.ExitBlind, Err: "no answer"}},
		"Files": {
			reason: "files take the place of a cluster, which is not asked",
			list:   clitest.Failing(errors.New("no answer")), files: map[string]string{"a.yaml": broken, "b.yaml": clitest.PodGroupHead},
			args: []string{"-f", "."},
			want: clitest.Result{Out: brokenTable, ErrOut: "checked 1 pool, 3 subnets, 1 claim: 1 error, 1 warning\n", Code: command.ExitFound},
		},
		"Stdin": {reason: "so does standard input", stdin: clitest.Sound, args: []string{"-f", "-"}, want: clitest.Result{ErrOut: "checked 1 pool, 1 subnet, 1 claim: nothing wrong\n"}},
		"FilesNamespace": {
			reason: "what has no namespace may be meant for any, others are left out",
			stdin:  strings.ReplaceAll(clitest.Sound, ", namespace: net", "") + "---\n{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetPool, metadata: {name: x, namespace: other}, spec: {cidr: ten}}", args: []string{"-f", "-", "-n", "net"},
			want: clitest.Result{ErrOut: "checked 1 pool, 1 subnet, 1 claim: nothing wrong\n"},
		},
		"Unreadable": {
			reason: "a file that cannot be read leaves the verdict open",
			stdin:  clitest.Sound, args: []string{"-f", "nope.yaml", "-f", "-"},
			want: clitest.Result{ErrOut: "nope.yaml: error: cannot read: no such file or directory\n", Code: command.ExitBlind},
		},
		"UnreadableWrong": {
			reason: "findings in what can be read are listed",
			stdin:  broken, args: []string{"-f", "nope.yaml", "-f", "-"},
			want: clitest.Result{Out: brokenTable, ErrOut: "nope.yaml: error: cannot read: no such file or directory\nchecked 1 pool, 3 subnets, 1 claim: 1 error, 1 warning\n", Code: command.ExitBlind},
		},
		"UnreadableAlone": {
			reason: "if nothing can be read, only the error is printed", args: []string{"-f", "nope.yaml", "-n", "net"},
			want: clitest.Result{ErrOut: "nope.yaml: error: cannot read: no such file or directory\n", Code: command.ExitBlind},
		},
		"UnreadableMachine": {
			reason: "also with -o json", args: []string{"-f", "nope.yaml", "-o", "json"},
			want: clitest.Result{ErrOut: "nope.yaml: error: cannot read: no such file or directory\n", Code: command.ExitBlind},
		},
		"Format":    {reason: "formats are known by name", args: []string{"-o", "wide"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "wide": use one of table, name, json, yaml, jsonpath=TEMPLATE`}},
		"Arguments": {reason: "there are none", args: []string{"x"}, want: clitest.Result{Code: command.ExitBlind, Err: "unknown command \"x\" for \"check\"\nSee 'check --help' for usage"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Folder(t, tc.files)

			if diff := cmp.Diff(tc.want, clitest.Run(t, checkOf(tc.list), tc.stdin, tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}

	unjudged := strings.Replace(broken, "cidr: 10.0.0.0/25", "cidr: 10.0.2.0/25", 1)
	for args, want := range map[string]int{"-o text": 0, "--strict": command.ExitFound} {
		if r := clitest.Run(t, checkOf(clitest.Holding(clitest.Objects(t, unjudged)...)), "", strings.Fields(args)...); r.Code != want {
			t.Errorf("a warning exits with %d with %s, want %d: %s", r.Code, args, want, r.Out)
		}
	}
}

// What is wrong only between two lists is not reported: the cluster is at work.
func TestPoolsCheckTwice(t *testing.T) {
	tests := map[string]struct {
		reason string
		first  string
		second string
		want   string
		code   int
	}{
		"Passing":  {reason: "what is gone the second time never was", first: broken, second: clitest.Sound, want: "checked 1 pool, 1 subnet, 1 claim: nothing wrong\n"},
		"New":      {reason: "what is new the second time may pass as well", first: strings.Replace(clitest.Sound, "phase: Allocated", "phase: Pending", 1), second: broken, want: "checked 1 pool, 3 subnets, 1 claim: nothing wrong\n"},
		"Changing": {reason: "so may what changes: nothing is stuck", first: broken, second: strings.ReplaceAll(broken, "10.0.0.0/25", "10.0.0.128/25"), want: "checked 1 pool, 3 subnets, 1 claim: 0 errors, 1 warning\n"},
		"Lasting":  {reason: "what is there both times is wrong", first: broken, second: broken, want: "checked 1 pool, 3 subnets, 1 claim: 1 error, 1 warning\n", code: command.ExitFound},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lists := 0
			list := func(ctx context.Context, q source.Query) ([]map[string]any, error) {
				lists++
				if lists <= len(findings.EstateKinds) {
					return clitest.Holding(clitest.Objects(t, tc.first)...)(ctx, q)
				}

				return clitest.Holding(clitest.Objects(t, tc.second)...)(ctx, q)
			}

			if r := clitest.Run(t, checkOf(list), ""); r.ErrOut != tc.want || r.Code != tc.code {
				t.Errorf("%s\ngot  %d, %swant %d, %s", tc.reason, r.Code, r.ErrOut, tc.code, tc.want)
			}
		})
	}

	fails := 0
	list := func(ctx context.Context, q source.Query) ([]map[string]any, error) {
		if fails++; fails > len(findings.EstateKinds) {
			return nil, errors.New("no answer")
		}

		return clitest.Holding(clitest.Objects(t, broken)...)(ctx, q)
	}

	if r := clitest.Run(t, checkOf(list), ""); r.Code != command.ExitBlind || r.Err != "no answer" {
		t.Errorf("a second look that fails gives %+v, want no verdict", r)
	}
}

func TestPoolsCheckMachine(t *testing.T) {
	r := clitest.Run(t, checkOf(clitest.Holding(clitest.Objects(t, broken)...)), "", "-o", "json")

	var got ipam.CheckReport
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}

	ref := identity.Ref{APIVersion: "plexaubnet.io/v1alpha1", Kind: "Subnet", Namespace: "net", Name: "b"}
	want := ipam.CheckReport{
		Findings: []show.Finding{
			{
				Severity: show.SeverityError, Object: ref, Reason: "Overlap", Field: "spec.cidr", Value: "10.0.0.0/25",
				Message: "10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet a, and both are Allocated", Fix: "see who uses these addresses, and delete the claim of the other",
			},
			got.Findings[1],
		},
		Summary: ipam.CheckSummary{Pools: 1, Subnets: 3, Claims: 1, Errors: 1, Warnings: 1},
	}

	if diff := cmp.Diff(want, got); diff != "" || r.Code != command.ExitFound || r.ErrOut != "" {
		t.Errorf("exit %d, %q on stderr (-want +got):\n%s", r.Code, r.ErrOut, diff)
	}

	if r := clitest.Run(t, checkOf(clitest.Holding()), "", "-o", "yaml"); !strings.Contains(r.Out, "findings: []\n") {
		t.Errorf("no findings are an empty list, got %s", r.Out)
	}
}

func TestPoolsCheckHelp(t *testing.T) {
	cmd := checkOf(clitest.Holding())(genericiooptions.NewTestIOStreamsDiscard())
	if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, "arbor pools check") {
		t.Error("it lacks help or examples")
	}
}

// The recount of decide and the view that the controllers count with agree about
// random pools: what one counts, the other finds true.
func TestRecountAgreesWithView(t *testing.T) {
	wrong := 0

	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		e := randomEstate(r)
		counted := ipamcache.NewPools()
		put(counted, e)

		for i := range e.Pools {
			p := &e.Pools[i]
			p.Status = ipamrules.PoolStatus(p, figures(counted, p), metav1.Time{})
		}

		if f := statusFindings(e); len(f) > 0 {
			t.Fatalf("seed %d: the view counts what a recount denies: %+v", seed, f)
		}

		// And what the view counts otherwise is found, unless blocks overlap.
		if len(e.Subnets) > 0 {
			e.Subnets[0].Status.Phase = v1alpha1.SubnetFailed
			wrong += len(statusFindings(e))
		}
	}

	if wrong < 100 {
		t.Errorf("of 500 estates with a Subnet too many, %d were found out", wrong)
	}
}

func statusFindings(e ipamaudit.Inventory) []ipamaudit.Finding {
	var out []ipamaudit.Finding

	for _, f := range ipamaudit.Inspect(e) {
		if f.Reason == ipamaudit.ReasonStatusDiffers || f.Reason == ipamaudit.ReasonConditionDiffers {
			out = append(out, f)
		}
	}

	return out
}

// put records everything in ledgers, as the feed does.
func put(v *ipamcache.Pools, e ipamaudit.Inventory) {
	for i := range e.Pools {
		p := &e.Pools[i]
		size, _ := poolblocks.RangeOf(p)
		v.SetRange(ipamplan.KeyOf(p), size)

		if b, ok := poolblocks.DelegationOf(p); ok && p.ParentName() != "" {
			v.Put(types.NamespacedName{Namespace: p.Namespace, Name: p.ParentName()}, b)
		}
	}

	for i := range e.Subnets {
		s := &e.Subnets[i]
		if b, ok := poolblocks.BlockOf(s); ok {
			v.Put(types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.PoolRef}, b)
		}
	}
}

// figures are those that the status is made of.
func figures(v *ipamcache.Pools, p *v1alpha1.SubnetPool) ipamrules.PoolFigures {
	f := v.Figures(ipamplan.KeyOf(p), ipamrules.MaxListedBlocks)
	listed := map[string]string{}

	for _, b := range f.First {
		listed[b.Prefix.String()] = b.Owner
	}

	return ipamrules.PoolFigures{All: f.All, Own: f.Own, Delegated: f.Delegated, Listed: listed}
}

// randomEstate has pools of both families with children and Subnets, here and
// there one that is no prefix, lies outside, overlaps, or holds the block of a
// child.
func randomEstate(r *rand.Rand) ipamaudit.Inventory {
	var e ipamaudit.Inventory

	roots := []string{"10.0.0.0/16", "fd00::/48", "10.1.0.1/16", "ten", "10.2.0.0/24", "::ffff:10.0.0.0/104"}
	phases := []v1alpha1.SubnetPhase{v1alpha1.SubnetAllocated, v1alpha1.SubnetPending, "", v1alpha1.SubnetFailed}

	for i, root := range roots {
		name := fmt.Sprintf("p%d", i)
		e.Pools = append(e.Pools, randomPool(name, root, ""))

		for j := range r.IntN(300) {
			block := fmt.Sprintf("10.%d.%d.0/%d", i, r.IntN(256), 24+r.IntN(5))
			if strings.Contains(root, ":") {
				block = fmt.Sprintf("fd00:0:0:%x::/64", r.IntN(1<<16))
			}

			if r.IntN(20) == 0 {
				e.Pools = append(e.Pools, randomPool(fmt.Sprintf("%s-%d", name, j), block, name))
			}

			if r.IntN(20) != 0 {
				s := v1alpha1.Subnet{Spec: v1alpha1.SubnetSpec{PoolRef: name, CIDR: block, ClusterID: fmt.Sprintf("c%d", j)}}
				s.Namespace, s.Name, s.Status.Phase = "net", fmt.Sprintf("%s-%d", name, j), phases[r.IntN(len(phases))]
				e.Subnets = append(e.Subnets, s)
			}

			if r.IntN(40) == 0 {
				break // few, so that some pools have no overlap
			}
		}
	}

	return e
}

func randomPool(name, block, parent string) v1alpha1.SubnetPool {
	p := v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{CIDR: block, Parent: parent}}
	p.Namespace, p.Name, p.Generation = "net", name, 1

	return p
}
