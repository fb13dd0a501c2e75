package pools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const poolsPlanExamples = `  # What would ten claims for a /24 get?
  arbor pools plan core --size 24 --count 10

  # Would the other strategy keep larger blocks whole?
  arbor pools plan core --size 24 --count 10 --strategy Buddy

  # Are these two still free?
  arbor pools plan core --requested 10.1.0.0/24,10.2.0.0/24

  # As if nobody waited
  arbor pools plan core --size 20 --after-waiting=false`

// maxPlanned keeps a typing error from planning for hours.
const maxPlanned = 100_000

type poolsPlanOptions struct {
	poolScope

	output       output.Flags
	pool         string
	size         int32
	count        int
	requested    []string
	strategy     string
	afterWaiting bool
	all          bool
	// sized is true if blocks of a size are asked for, and not only very ones.
	sized, sizeGiven bool
}

func newPoolsPlan(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &poolsPlanOptions{poolScope: poolScope{source.NewScope(streams, connect)}}
	cmd := &cobra.Command{
		Use:   "plan NAME",
		Short: "Show which blocks a pool would hand out",
		Long: `Show which blocks claims would get of a pool, the names of their Subnets, and
what that does to the pool. The same engine answers that serves claims, on a copy:
nothing is written.

Claims that wait are served first, the oldest before the others, as they would be;
--after-waiting=false leaves them out. The limits of the pool apply. Without --size
blocks have the pool's default size.

Exit codes: 0 everything fits, 1 it does not, with what would help, 2 no such pool, or
the cluster or a file could not be read. --exit-code=false turns 1 into 0.`,
		Example: poolsPlanExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if o.pool != "" && o.pool != args[0] {
					return command.Blind("two pools, %q and --pool %q: name one", args[0], o.pool)
				}
				o.pool = args[0]
			}
			o.sizeGiven = cmd.Flags().Changed("size")
			o.sized = o.sizeGiven || cmd.Flags().Changed("count") || len(o.requested) == 0

			return o.run(cmd.Context())
		},
	}

	fs := cmd.Flags()
	o.output.Add(cmd, output.Table)
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, true, "something does not fit")
	fs.StringVar(&o.pool, "pool", "", "the pool to take blocks from, if it is not the argument")
	fs.Int32Var(&o.size, "size", 0, "prefix length of the blocks (default that of the pool)")
	fs.IntVar(&o.count, "count", 1, "how many blocks of that size")
	fs.StringSliceVar(&o.requested, "requested", nil, "the very blocks that are wanted; may be repeated")
	fs.StringVar(&o.strategy, "strategy", "", "Linear or Buddy (default that of the pool)")
	fs.BoolVar(&o.afterWaiting, "after-waiting", true, "serve the claims that wait first")
	fs.BoolVar(&o.all, "all", false, fmt.Sprintf("list everything, not only the first %d", render.MaxListed))
	o.AddFlags(fs)
	command.CheckUsage(cmd, cobra.MaximumNArgs(1))

	return command.AcceptAs(cmd, map[string]string{"show-all": "all"})
}

// check finds wrong usage.
func (o *poolsPlanOptions) check() error {
	strategies := []string{"", string(v1alpha1.StrategyLinear), string(v1alpha1.StrategyBuddy)}

	switch {
	case o.pool == "":
		return command.Blind("no pool to plan for: name one, as in 'arbor pools plan NAME'")
	case o.count < 1 || o.count > maxPlanned:
		return command.Blind("--count %d: it must be between 1 and %d", o.count, maxPlanned)
	case !slices.Contains(strategies, o.strategy):
		return command.Blind("unknown strategy %q: use one of %s", o.strategy, strings.Join(strategies[1:], ", "))
	}

	if err := o.CheckWatch(o.output.Watch); err != nil {
		return err
	}

	return o.output.Check()
}

func (o *poolsPlanOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}

	return o.output.Run(ctx, &o.IOStreams, o.once)
}

func (o *poolsPlanOptions) once(ctx context.Context) error {
	inv, end, err := o.inventory(ctx)
	if err != nil {
		return err
	}

	s, err := o.onePool(inv, o.pool)
	if err != nil {
		return err
	}

	p, err := o.plan(s)
	if err != nil {
		return o.output.Problem(o.ErrOut, err)
	}

	done, err := o.output.Print(o.Out, ipam.PlanKind, ipam.PlanViewOf(p))
	if !done {
		err = o.print(p)
	}

	if err != nil {
		return err
	}

	if end == nil && len(p.Problems) > 0 {
		return o.output.Problem(o.ErrOut, errors.New(strings.Join(p.Problems, "\n")))
	}

	return end
}

// plan simulates what is asked for. The error is what the pool would never
// hand out.
func (o *poolsPlanOptions) plan(s *ipamplan.Pool) (*ipamplan.Plan, error) {
	p, err := ipamplan.NewPlan(s, v1alpha1.Strategy(o.strategy))
	if err != nil {
		return nil, err
	}

	p.Length = s.DefaultLength()
	if o.sizeGiven {
		p.Length = int(o.size)
	}

	if o.afterWaiting {
		p.ServeWaiting()
	}

	for _, r := range o.requested {
		if err := p.Request(r); err != nil {
			return nil, err
		}
	}

	if o.sized {
		err := p.Take(o.count)

		return p, err
	}

	// The figures are about what was asked for.
	if first, err := netip.ParsePrefix(o.requested[0]); err == nil {
		p.Length = first.Bits()
	}

	return p, nil
}

func (o *poolsPlanOptions) print(p *ipamplan.Plan) error {
	y := render.StyleOf(o.Out, os.Getenv)
	w := bufio.NewWriter(o.Out)
	ref := identity.Ref{Namespace: p.Stock.Namespace, Name: p.Stock.Name}

	_, _ = fmt.Fprintf(w, "%s  %s, %s\n", y.Paint(render.Bold, render.Clean(ref.Path())), p.Before().Prefix(), p.Strategy)

	if note := waitingNote(p, o.afterWaiting); note != "" {
		_, _ = fmt.Fprintln(w, y.Paint(render.Yellow, note))
	}

	if shown, more := render.Limit(p.Blocks, o.all); len(shown) > 0 {
		rows := [][]string{{"BLOCK", "SUBNET"}}
		for _, b := range shown {
			rows = append(rows, []string{b.CIDR, b.Subnet})
		}

		_, _ = fmt.Fprintln(w)
		o.output.Table(w, rows)

		if more > 0 {
			_, _ = fmt.Fprintf(w, "%s %s: use --all\n", y.Glyphs().More, show.Count(more, "more row"))
		}
	}

	_, _ = fmt.Fprintln(w)
	o.output.Table(w, planFigures(p))

	return w.Flush()
}

// planFigures are what the plan does to the pool.
func planFigures(p *ipamplan.Plan) [][]string {
	before, after := p.Before(), p.After()
	row := func(name string, text func(*cidr.Pool) string) []string {
		return []string{name, text(before), text(after)}
	}

	return [][]string{
		{"", "BEFORE", "AFTER"},
		row("taken", func(c *cidr.Pool) string {
			return exactPercent(c.Utilisation(), c.Len() == 0, c.FreeAddresses().IsZero())
		}),
		row("fragmented", func(c *cidr.Pool) string {
			f := c.Fragmentation()

			return exactPercent(f, f == 0, false)
		}),
		row("largest free block", func(c *cidr.Pool) string {
			if largest, ok := c.Largest(); ok {
				return fmt.Sprintf("/%d", largest)
			}

			return "none"
		}),
		row(fmt.Sprintf("free blocks of /%d", p.Length), func(c *cidr.Pool) string { return c.FreeCount(p.Length).String() }),
	}
}

// exactPercent has a digit behind the point, and says nothing or all only of
// nothing and all.
func exactPercent(share float64, nothing, everything bool) string {
	switch text := fmt.Sprintf("%.1f%%", share*100); {
	case nothing:
		return "0%"
	case everything:
		return "100%"
	case text == "0.0%":
		return "<0.1%"
	case text == "100.0%":
		return ">99.9%"
	default:
		return text
	}
}

// waitingNote says what the claims that wait mean for the plan.
func waitingNote(p *ipamplan.Plan, included bool) string {
	n := len(p.Stock.Queue)

	switch served := p.Served(); {
	case n == 0:
		return ""
	case !included:
		return waitingText(n) + " and would be served first; this is without them"
	case served == 0:
		return waitingText(n) + " and cannot be served"
	case served == n:
		return show.Verb(n, "claim", "waits and is served first", "wait and are served first")
	case served == 1:
		return waitingText(n) + "; 1 of them is served first"
	default:
		return fmt.Sprintf("%s; %d of them are served first", waitingText(n), served)
	}
}
