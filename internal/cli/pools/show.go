package pools

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const poolsShowExamples = `  # Who has what of a pool
  arbor pools show core

  # All of it, or only what is free
  arbor pools show core --all
  arbor pools show core --free

  # A larger map
  arbor pools show core --width 160 --rows 64

  # Only the list, for a script
  arbor pools show core -o table --no-headers

  # From manifests, without a cluster
  arbor pools show core --from network/`

type poolsShowOptions struct {
	poolScope

	now    func() time.Time
	output output.Flags
	name   string

	rows             int
	taken, free, all bool
}

func newPoolsShow(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	return newPoolsShowAt(streams, connect, time.Now)
}

func newPoolsShowAt(streams genericiooptions.IOStreams, connect source.Connector, now func() time.Time) *cobra.Command {
	o := &poolsShowOptions{poolScope: poolScope{source.NewScope(streams, connect)}, now: now}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who has which addresses of a pool",
		Long: `Draw the addresses of a pool as a map, in which every character stands for an
equal slice, and list below it who has which block, with the free blocks between
them. Free blocks are the largest ones that the free space is made of.

Subnets and child pools that overlap others or lie outside of the pool are not
counted. They are listed apart, with the reason. Subnets that failed count as
absent.

-o table lists all blocks without the map, and -o wide adds the names of their objects.

Exit codes: 0 it is shown, 1 its CIDR is invalid, or with --exit-code it is exhausted or
has another error, 2 no such pool, or the cluster or a file could not be read.`,
		Example: poolsShowExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Tree, output.Table, output.Wide, output.Name)
	cmd.Flags().IntVar(&o.rows, "rows", render.DefaultRows, "rows of the map at most")
	cmd.Flags().BoolVar(&o.taken, "taken", false, "list only what is taken")
	cmd.Flags().BoolVar(&o.free, "free", false, "list only what is free")
	cmd.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("list everything, not only the first %d", render.MaxListed))
	o.output.AddWidth(cmd)
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, false, "the pool is exhausted or has another error")
	o.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))

	return command.AcceptAs(cmd, map[string]string{"show-all": "all"})
}

func (o *poolsShowOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	if o.rows < 1 {
		return command.Blind("--rows %d: it must be at least 1", o.rows)
	}
	if err := o.CheckWatch(o.output.Watch); err != nil {
		return err
	}

	return o.output.Run(ctx, &o.IOStreams, o.once)
}

func (o *poolsShowOptions) once(ctx context.Context) error {
	inv, end, err := o.inventory(ctx)
	if err != nil {
		return err
	}

	s, err := o.onePool(inv, o.name)
	if err != nil {
		return err
	}

	blocks := o.filter(ipam.BlocksOf(s))

	view := ipam.ContentsOf(s, blocks)
	if err := o.print(s, view); err != nil {
		return err
	}
	if end == nil {
		end = o.output.Found(view.Wrong())
	}

	return end
}

// filter leaves what is asked for.
func (o *poolsShowOptions) filter(all []ipam.BlockView) []ipam.BlockView {
	if o.taken == o.free {
		return all
	}

	return slices.DeleteFunc(all, func(b ipam.BlockView) bool { return (b.Kind == ipam.KindFree) != o.free })
}

func (o *poolsShowOptions) print(s *ipamplan.Pool, view ipam.PoolContentsView) error {
	if done, err := o.output.Print(o.Out, ipam.ContentsKind, view); done {
		return err
	}
	if o.output.Is(output.Table, output.Wide) {
		o.output.Table(o.Out, o.table(view.Blocks))

		return nil
	}

	return o.draw(s, view.Blocks)
}

// table has one row for each block, below headers.
func (o *poolsShowOptions) table(blocks []ipam.BlockView) [][]string {
	rows := [][]string{{"CIDR", render.ColumnKind, "OWNER", "CLAIM", "PHASE", "AGE"}}
	if o.output.Is(output.Wide) {
		rows[0] = append(rows[0], "NAME")
	}
	for _, b := range blocks {
		row := []string{b.CIDR, b.Kind, b.Holder(), b.Claim, string(b.Phase), render.Age(b.Created, o.now())}
		if o.output.Is(output.Wide) {
			row = append(row, b.Name)
		}
		rows = append(rows, row)
	}

	return rows
}

// draw draws the map and lists the blocks, as many as are asked for.
func (o *poolsShowOptions) draw(s *ipamplan.Pool, blocks []ipam.BlockView) error {
	y := render.StyleOf(o.Out, os.Getenv)
	w := bufio.NewWriter(o.Out)
	o.header(w, s, y)

	c := chartOf(s, o.output.Columns(o.Out, os.Getenv), o.rows)
	c.draw(w, y)

	shown, more := render.Limit(blocks, o.all)
	if len(shown) > 0 {
		_, _ = fmt.Fprintln(w)
		o.output.Table(w, o.table(shown))
	}

	if more > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: use --all, --taken or --free\n", y.Glyphs().More, show.Count(more, "more row"))
	}

	o.misfits(w, s, y)

	return w.Flush()
}

func (o *poolsShowOptions) header(w io.Writer, s *ipamplan.Pool, y render.Style) {
	ref := identity.Ref{Namespace: s.Namespace, Name: s.Name}
	_, _ = fmt.Fprintf(w, "%s  %s  %s\n", y.Paint(render.Bold, render.Clean(ref.Path())), s.All.Prefix(), level(y, s))

	for _, text := range y.Texts(ipam.NotesOf(s), facts(s, y.Glyphs()), o.output.Columns(o.Out, os.Getenv)) {
		_, _ = fmt.Fprintln(w, text)
	}

	_, _ = fmt.Fprintln(w)
}

// misfits lists what is not on the map.
func (o *poolsShowOptions) misfits(w io.Writer, s *ipamplan.Pool, y render.Style) {
	shown, more := render.Limit(s.Misfits, o.all)
	rows := [][]string{{"CIDR", render.ColumnKind, "NAME", "OWNER", "WHY"}}

	for _, m := range shown {
		b := ipam.BlockViewOf(m.Holder)
		rows = append(rows, []string{b.CIDR, b.Kind, b.Name, b.Owner, m.Why})
	}

	if len(shown) > 0 {
		_, _ = fmt.Fprintf(w, "\n%s\n", y.Paint(render.Red, "does not fit"))
		o.output.Table(w, rows)
	}

	if more > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: use --all\n", y.Glyphs().More, show.Count(more, "more row"))
	}

	if n := len(s.Failed); n > 0 {
		_, _ = fmt.Fprintf(w, "\n%s: %s\n", show.Verb(n, "Subnet", "failed and counts as absent", "failed and count as absent"), failedNames(s.Failed))
	}
}

func failedNames(all []*v1alpha1.Subnet) string {
	const most = 3

	var names []string
	for _, n := range all[:min(most, len(all))] {
		names = append(names, render.Clean(n.Name))
	}

	if more := len(all) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}

	return strings.Join(names, ", ")
}
