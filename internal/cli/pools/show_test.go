package pools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

// showOn is the command on the second of January.
func showOn(list source.Lister) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command {
		return newPoolsShowAt(s, clitest.Cluster(list), func() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) })
	}
}

const campus = `
pool p     10.0.0.0/20
pool child 10.0.8.0/22 parent=p
subnet p 10.0.0.0/23  a   claim=c
subnet p 10.0.2.0/24  b   phase=
subnet p 10.0.8.0/22  uid claim=kid
subnet p 10.0.12.0/26 d
`

func TestPoolsShow(t *testing.T) {
	tests := map[string]struct {
		reason string
		given  string
		args   []string
		want   string
	}{
		"All": {
			reason: "the slices are as fine as the blocks, and what is free stands between what is not",
			given:  campus, args: []string{"p"},
			want: `
network/p  10.0.0.0/20  ████░░░░░░  45%
3 Subnets, 1 child pool, Linear, 54% fragmented, free /22 /23 2×/24 /25 /26

10.0.0.0  ████████████····················════════════════█···············

█ taken  ▄ partly taken  ═ child pool  · free; each is a /26

CIDR             KIND         OWNER   CLAIM   PHASE       AGE
10.0.0.0/23      Subnet       a       c       Allocated   24h
10.0.2.0/24      Subnet       b               Pending     24h
10.0.3.0/24      free
10.0.4.0/22      free
10.0.8.0/22      child pool   child   kid
10.0.12.0/26     Subnet       d               Allocated   24h
10.0.12.64/26    free
10.0.12.128/25   free
10.0.13.0/24     free
10.0.14.0/23     free
`,
		},
		"Taken": {
			reason: "where there is no room for that, slices are partly taken",
			given:  campus, args: []string{"p", "--rows", "1", "--width", "40", "--taken"},
			want: `
network/p  10.0.0.0/20  ████░░░░░░  45%
3 Subnets, 1 child pool, Linear,
54% fragmented,
free /22 /23 2×/24 /25 /26

10.0.0.0  ███·····════▄···

█ taken  ▄ partly taken  ═ child pool  · free; each is a /24

CIDR           KIND         OWNER   CLAIM   PHASE       AGE
10.0.0.0/23    Subnet       a       c       Allocated   24h
10.0.2.0/24    Subnet       b               Pending     24h
10.0.8.0/22    child pool   child   kid
10.0.12.0/26   Subnet       d               Allocated   24h
`,
		},
		"Free": {
			reason: "or what is free",
			given:  "pool p 10.0.0.0/20\nsubnet p 10.0.0.0/23 a", args: []string{"p", "--free"},
			want: `
network/p  10.0.0.0/20  █░░░░░░░░░  12%
1 Subnet, Linear, 42% fragmented, free /21…/23

10.0.0.0  ██··············

█ taken  ▄ partly taken  ═ child pool  · free; each is a /24

CIDR          KIND   OWNER   CLAIM   PHASE   AGE
10.0.2.0/23   free
10.0.4.0/22   free
10.0.8.0/21   free
`,
		},
		"Empty": {
			reason: "an empty pool is cut into blocks of its default size",
			given:  "pool p 10.0.0.0/18", args: []string{"p"},
			want: `
network/p  10.0.0.0/18  ░░░░░░░░░░   0%
0 Subnets, Linear, free /18

10.0.0.0  ································································

█ taken  ▄ partly taken  ═ child pool  · free; each is a /24

CIDR          KIND   OWNER   CLAIM   PHASE   AGE
10.0.0.0/18   free
`,
		},
		"IPv6": {
			reason: "rows are shorter where addresses are longer",
			given:  "pool p 2001:db8::/32\npool c 2001:db8:8000::/33 parent=p\nsubnet p 2001:db8:1::/48 a\nsubnet p 2001:db8:1000::/36 b",
			args:   []string{"p", "--taken", "--rows", "4"},
			want: `
network/p  2001:db8::/32  █████░░░░░  56%
2 Subnets, 1 child pool, Linear, 42% fragmented, free /34 /35 /37…/48

2001:db8::       ▄·······████████················
2001:db8:4000::  ································
2001:db8:8000::  ════════════════════════════════
2001:db8:c000::  ════════════════════════════════

█ taken  ▄ partly taken  ═ child pool  · free; each is a /39

CIDR                 KIND         OWNER   CLAIM   PHASE       AGE
2001:db8:1::/48      Subnet       a               Allocated   24h
2001:db8:1000::/36   Subnet       b               Allocated   24h
2001:db8:8000::/33   child pool   c
`,
		},
		"Full": {
			reason: "a single address can be full, and then there is nothing to list as free",
			given:  "pool p 10.0.0.7/32\nsubnet p 10.0.0.7/32 a", args: []string{"p", "--free"},
			want: `
network/p  10.0.0.7/32  ██████████ 100%
exhausted: no /32 is left
1 Subnet, Linear, nothing free

10.0.0.7  █

█ taken  ▄ partly taken  ═ child pool  · free; each is a /32
`,
		},
		"Misfits": {
			reason: "what does not fit stands apart, with the reason",
			given: `
pool p 10.0.0.0/24
pool q 10.0.0.0/25 parent=p
pool r 10.0.0.0/26 parent=p
pool s 10.0.0.0/8  parent=p
subnet p 10.0.0.64/26  v
subnet p 10.0.0.128/27 w phase=Pending name=early
subnet p 10.0.0.128/26 x name=late
subnet p 10.0.1.0/26   y
subnet p fd00::/64     z
subnet p nonsense      w
subnet p 10.0.0.128/28 f phase=Failed name=f1
subnet p 10.0.0.128/28 f phase=Failed name=f2
subnet p 10.0.0.128/28 f phase=Failed name=f3
subnet p 10.0.0.128/28 f phase=Failed name=f4
`,
			args: []string{"p", "--taken"},
			want: `
network/p  10.0.0.0/24  ███████░░░  75%
exhausted: no /24 is left
7 blocks do not fit
6 Subnets, 1 child pool, Linear, free /26

10.0.0.0  ════════████····

█ taken  ▄ partly taken  ═ child pool  · free; each is a /28

CIDR            KIND         OWNER   CLAIM   PHASE       AGE
10.0.0.0/25     child pool   q
10.0.0.128/26   Subnet       x               Allocated   24h

does not fit
CIDR            KIND         NAME             OWNER   WHY
10.0.0.0/26     child pool   r                        it overlaps 10.0.0.0/25 of child pool q
10.0.0.0/8      child pool   s                        it is larger than the pool, 10.0.0.0/24
10.0.0.64/26    Subnet       p-10-0-0-64-26   v       it overlaps 10.0.0.0/25 of child pool q
10.0.1.0/26     Subnet       p-10-0-1-0-26    y       it is outside of the pool, 10.0.0.0/24
fd00::/64       Subnet       p-fd00---64      z       the pool is of the other family, 10.0.0.0/24
nonsense        Subnet       p-nonsense       w       it is not a CIDR
10.0.0.128/27   Subnet       early            w       it overlaps 10.0.0.128/26 of Subnet late

4 Subnets failed and count as absent: f1, f2, f3, 1 more
`,
		},
		"OneFailed": {
			reason: "one that failed is said too",
			given:  "pool p 10.0.0.0/28\nsubnet p 10.0.0.0/28 f phase=Failed name=f", args: []string{"p"},
			want: `
network/p  10.0.0.0/28  ░░░░░░░░░░   0%
0 Subnets, Linear, free /28

10.0.0.0  ················

█ taken  ▄ partly taken  ═ child pool  · free; each is a /32

CIDR          KIND   OWNER   CLAIM   PHASE   AGE
10.0.0.0/28   free

1 Subnet failed and counts as absent: f
`,
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Plain(t)

			got := clitest.Run(t, showOn(nil), clitest.Manifests(t, clitest.IPAM("network", tc.given)...), append(tc.args, "-f", "-")...)
			if diff := cmp.Diff(clitest.Result{Out: strings.TrimPrefix(tc.want, "\n")}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolsShowErrors(t *testing.T) {
	both := append(clitest.IPAM("a", "pool p 10.0.0.0/24"), clitest.IPAM("b", "pool p 10.0.0.0/24\npool bad 10.0.0.5/24")...)

	tests := map[string]struct {
		reason string
		list   source.Lister
		stdin  string
		args   []string
		want   clitest.Result
	}{
		"NoName": {reason: "a pool must be named", args: []string{}, want: clitest.Result{Code: command.ExitBlind, Err: "accepts 1 arg(s), received 0\nSee 'show --help' for usage"}},
		"Unknown": {
			reason: "by a name that is there",
			list:   clitest.Serving(both...), args: []string{"q", "-n", "a"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pool "q" was not found in a namespace: there is only p; look in another namespace with -n, or in all of them with -A`},
		},
		"Ambiguous": {
			reason: "and there once",
			list:   clitest.Serving(both...), args: []string{"p", "-A"},
			want: clitest.Result{Code: command.ExitBlind, Err: `pool "p" is in several namespaces: choose one of a, b with -n`},
		},
		"Invalid": {
			reason: "it must be a prefix",
			list:   clitest.Serving(both...), args: []string{"bad", "-n", "b"},
			want: clitest.Result{Code: command.ExitFound, Err: `cannot use pool "bad": ` + noCIDR("10.0.0.5/24")},
		},
		"Rows":      {reason: "a map has rows", args: []string{"p", "--rows", "0"}, want: clitest.Result{Code: command.ExitBlind, Err: "--rows 0: it must be at least 1"}},
		"Format":    {reason: "formats are known by name", args: []string{"p", "-o", "svg"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "svg": use one of tree, table, wide, name, json, yaml, jsonpath=TEMPLATE`}},
		"NoCluster": {reason: "there must be somewhere to look", list: clitest.Failing(errors.New("no answer")), args: []string{"p"}, want: clitest.Result{Code: command.ExitBlind, Err: "no answer"}},
		"FileBad": {
			reason: "a file that cannot be read in full is shown as far as it goes",
			stdin:  clitest.Manifests(t, clitest.IPAM("", "pool p 10.0.0.0/32")...) + "\n---\n}", args: []string{"p", "-f", "-"},
			want: clitest.Result{
				Out: `p  10.0.0.0/32  ..........   0%
0 Subnets, Linear, free /32

10.0.0.0  .

# taken  + partly taken  = child pool  . free; each is a /32

CIDR          KIND   OWNER   CLAIM   PHASE   AGE
10.0.0.0/32   free
`,
				ErrOut: "<stdin>:3: error: invalid YAML: did not find expected node content\n", Code: command.ExitBlind,
			},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Plain(t)
			t.Setenv("LC_ALL", "C")

			if diff := cmp.Diff(tc.want, clitest.Run(t, showOn(tc.list), tc.stdin, tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolsShowMachine(t *testing.T) {
	clitest.Plain(t)

	stdin := clitest.Manifests(t, clitest.IPAM("n", "pool p 10.0.0.0/24 defaultBlockSize=26\npool c 10.0.0.64/26 parent=p\nsubnet p 10.0.0.0/26 a claim=x\nsubnet p 10.1.0.0/26 b name=out\nsubnet p 10.0.0.0/26 f phase=Failed name=f")...)
	r := clitest.Run(t, showOn(nil), stdin, "p", "-f", "-", "-o", "json")

	var got ipam.PoolContentsView
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}

	created := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	want := ipam.PoolContentsView{
		PoolView: ipam.PoolView{
			Namespace: "n", Name: "p", CIDR: "10.0.0.0/24", Strategy: "Linear", Subnets: 2, ChildPools: 1,
			SpaceView: ipam.SpaceView{UtilizationPercent: 50, LargestFree: new(25), Free: []ipam.FreeSize{{Length: 25, Count: 1}}},
			Notes:     []show.NoteView{{Severity: show.SeverityError, Message: "1 block does not fit"}},
		},
		Blocks: []ipam.BlockView{
			{CIDR: "10.0.0.0/26", Kind: "Subnet", Name: "p-10-0-0-0-26", Owner: "a", Claim: "x", Phase: "Allocated", Created: &created},
			{CIDR: "10.0.0.64/26", Kind: "child pool", Name: "c"},
			{CIDR: "10.0.0.128/25", Kind: "free"},
		},
		DoesNotFit: []ipam.MisfitView{{
			BlockView: ipam.BlockView{CIDR: "10.1.0.0/26", Kind: "Subnet", Name: "out", Owner: "b", Phase: "Allocated", Created: &created},
			Why:       "it is outside of the pool, 10.0.0.0/24",
		}},
		Failed: []string{"f"},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	r = clitest.Run(t, showOn(nil), stdin, "p", "-f", "-", "-o", "yaml", "--free")
	if !strings.Contains(r.Out, "blocks:\n- cidr: 10.0.0.128/25\n  kind: free\nchild") {
		t.Errorf("filters count for programs too, got\n%s", r.Out)
	}
}

// TestPoolsShowLimit : a long table is cut short unless all of it is asked for,
// and programs always get all of it.
func TestPoolsShowLimit(t *testing.T) {
	objects := clitest.Crowd(500)
	for i := range 60 {
		objects = append(objects, clitest.Parcel("default", []string{"subnet", "p", "10.0.0.0/28", "x", fmt.Sprintf("name=z%02d", i)}))
	}

	for args, want := range map[string]struct {
		lines int
		text  string
	}{
		"p":         {129, "… 962 more rows: use --all, --taken or --free\n\ndoes not fit\n"},
		"p --taken": {129, "… 450 more rows: use --all, --taken or --free\n\ndoes not fit\n"},
		"p --free":  {129, "… 462 more rows: use --all, --taken or --free\n\ndoes not fit\n"},
		"p --all":   {1099, "it overlaps 10.0.0.0/28 of Subnet p-10-0-0-0-28\n"},
		"p -o json": {0, `"name": "z59"`},
	} {
		t.Run(args, func(t *testing.T) {
			clitest.Plain(t)

			r := clitest.Run(t, showOn(clitest.Serving(objects...)), "", strings.Fields(args)...)
			if n := len(clitest.Lines(r.Out)); want.lines > 0 && n != want.lines || !strings.Contains(r.Out, want.text) || r.Code != 0 {
				t.Errorf("%d lines, want %d with %q; exit %d, %s", n, want.lines, want.text, r.Code, r.Err)
			}
		})
	}
}

// TestPoolsShowMisfitCrowd : it does not take long either if nothing fits.
func TestPoolsShowMisfitCrowd(t *testing.T) {
	clitest.Plain(t)

	objects := clitest.IPAM("default", "pool p 10.0.0.0/8")
	for i := range 10_000 {
		objects = append(objects, clitest.Parcel("default", []string{"subnet", "p", "10.0.0.0/24", "x", fmt.Sprintf("name=s%04d", i)}))
	}

	if r := clitest.Run(t, showOn(clitest.Serving(objects...)), "", "p"); !strings.HasSuffix(r.Out, "it overlaps 10.0.0.0/24 of Subnet s0000\n… 9949 more rows: use --all\n") {
		t.Errorf("got\n%s", r.Out)
	}
}

// slow says what is in a slice by looking at all blocks.
func slow(p *cidr.Pool, slice netip.Prefix, child netip.Prefix) cell {
	var c cell

	for b := range p.Taken() {
		if b.Overlaps(slice) && b == child {
			c |= cellChild
		} else if b.Overlaps(slice) {
			c |= cellSubnet
		}
	}

	for b := range p.Free() {
		if b.Overlaps(slice) {
			c |= cellFree
		}
	}

	return c
}

// TestChart compares the map with what is obvious, on random pools and rooms,
// and looks whether it stays in the room.
func TestChart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))

	for range 300 {
		prefix := netip.MustParsePrefix([]string{"10.0.0.0/8", "10.1.0.0/16", "192.168.7.0/27", "10.0.0.1/32", "fd00::/32", "2001:db8:ffff::/48", "::/0"}[r.IntN(7)])

		p, err := cidr.New(prefix)
		if err != nil {
			t.Fatal(err)
		}

		s := &ipamplan.Pool{Holders: map[netip.Prefix]ipamplan.Holder{}}
		s.SubnetPool, s.All = &v1alpha1.SubnetPool{}, p

		var child netip.Prefix

		for i := range r.IntN(20) {
			length := min(prefix.Bits()+1+r.IntN(20), prefix.Addr().BitLen())
			if b, err := p.Allocate(length, cidr.Strategy(r.IntN(2))); err == nil && i == 3 {
				child, s.Holders[b] = b, ipamplan.Holder{Child: s.SubnetPool}
			}
		}

		width, rows := 50+r.IntN(100), 1+r.IntN(40)
		c := chartOf(s, width, rows)

		for i, got := range c.cells {
			at := netip.MustParseAddr((&chart{pool: prefix, length: c.length, perRow: 1}).label(i))
			if want := slow(p, netip.PrefixFrom(at, c.length), child); got != want {
				t.Fatalf("slice %d of /%d in %s: %b, want %b", i, c.length, prefix, got, want)
			}
		}

		var out bytes.Buffer
		c.draw(&out, render.Style{Unicode: true})

		drawn := clitest.Lines(out.String())
		if drawn = drawn[:len(drawn)-2]; len(drawn) > rows {
			t.Fatalf("%d rows for %s, want at most %d", len(drawn), prefix, rows)
		}

		for _, line := range drawn {
			if n := utf8.RuneCountInString(line); n > width {
				t.Fatalf("%d columns for %s, want at most %d:\n%s", n, prefix, width, out.String())
			}
		}
	}
}

func TestChartColour(t *testing.T) {
	c := &chart{pool: netip.MustParsePrefix("10.0.0.0/30"), length: 32, perRow: 4, cells: []cell{cellSubnet, cellSubnet | cellChild, cellFree | cellChild, cellChild}}

	var out bytes.Buffer
	c.draw(&out, render.Style{Colour: true})

	const want = "10.0.0.0  \x1b[36m##\x1b[0m\x1b[36m+\x1b[0m\x1b[35m=\x1b[0m\n\n" +
		"\x1b[36m#\x1b[0m taken  \x1b[36m+\x1b[0m partly taken  \x1b[35m=\x1b[0m child pool  \x1b[2m.\x1b[0m free; each is a /32\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("neighbours that look the same are painted at once (-want +got):\n%s", diff)
	}
}

// TestChartNarrow : where there is no room at all, something is drawn.
func TestChartNarrow(t *testing.T) {
	for _, room := range [][2]int{{1, 1}, {10, 1}, {11, 1}, {12, 100}} {
		if c := newChart(netip.MustParsePrefix("10.0.0.0/8"), 32, room[0], room[1]); len(c.cells) < 1 || len(c.cells)%c.perRow != 0 {
			t.Errorf("%v: %d slices in rows of %d", room, len(c.cells), c.perRow)
		}
	}
}
