package cli

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
)

const poolsShowExamples = `  # Who has what of a pool
  arbor pools show core

  # All of it, or only what is free
  arbor pools show core --all
  arbor pools show core --free

  # A larger map
  arbor pools show core --width 160 --rows 64

  # From manifests, without a cluster
  arbor pools show core -f network/`

const (
	defaultRows = 16
	// maxListed is how many rows of a table are shown unless all are asked for.
	maxListed = 50
)

type poolsShowOptions struct {
	scope

	now    func() time.Time
	format string
	name   string

	width, rows      int
	taken, free, all bool
}

func newPoolsShow(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	return newPoolsShowAt(streams, connect, time.Now)
}

func newPoolsShowAt(streams genericiooptions.IOStreams, connect connector, now func() time.Time) *cobra.Command {
	o := &poolsShowOptions{scope: newScope(streams, connect), now: now}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who has which addresses of a pool",
		Long: `Draw the addresses of a pool as a map, in which every character stands for an
equal slice, and list below it who has which block, with the free blocks between
them. Free blocks are the largest ones that the free space is made of.

Subnets and child pools that overlap others or lie outside of the pool are not
counted. They are listed apart, with the reason. Subnets that failed count as
absent.

Exit codes: 0 it was shown, 1 no such pool, or one whose CIDR is none, 2 it could
not look.`,
		Example: poolsShowExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]

			return o.run(cmd.Context())
		},
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: table (map and table), json or yaml")
	cmd.Flags().IntVar(&o.rows, "rows", defaultRows, "rows of the map at most")
	cmd.Flags().BoolVar(&o.taken, "taken", false, "list only what is taken")
	cmd.Flags().BoolVar(&o.free, "free", false, "list only what is free")
	cmd.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("list everything, not only the first %d", maxListed))
	addWidth(cmd, &o.width)
	o.addFlags(cmd.Flags())
	checkUsage(cmd, cobra.ExactArgs(1))

	return acceptAs(cmd, map[string]string{"show-all": "all"})
}

func (o *poolsShowOptions) run(ctx context.Context) error {
	if err := checkFormat(o.format, formatTable, formatText, formatJSON, formatYAML); err != nil {
		return err
	}

	if o.rows < 1 {
		return blind("--rows %d: it must be at least 1", o.rows)
	}

	inv, end, err := o.inventory(ctx)
	if err != nil {
		return err
	}

	s, err := o.onePool(inv, o.name)
	if err != nil {
		return err
	}

	blocks := o.filter(s.blocks())

	done, err := printMachine(o.Out, o.format, contentsOf(s, blocks))
	if !done {
		err = o.print(s, blocks)
	}

	if err != nil {
		return err
	}

	return end
}

// filter leaves what is asked for.
func (o *poolsShowOptions) filter(all []BlockView) []BlockView {
	if o.taken == o.free {
		return all
	}

	return slices.DeleteFunc(all, func(b BlockView) bool { return (b.Kind == kindFree) != o.free })
}

func (o *poolsShowOptions) print(s *stock, blocks []BlockView) error {
	y := styleOf(o.Out, os.Getenv)
	w := bufio.NewWriter(o.Out)
	o.header(w, s, y)

	c := s.chart(o.columns(o.width), o.rows)
	c.draw(w, y)

	rows := [][]string{{"CIDR", columnKind, "OWNER", "CLAIM", "PHASE", "AGE"}}
	shown, more := limit(blocks, o.all)

	for _, b := range shown {
		rows = append(rows, []string{b.CIDR, b.Kind, b.owner(), b.Claim, string(b.Phase), age(b.Created, o.now())})
	}

	if len(shown) > 0 {
		_, _ = fmt.Fprintln(w)
		writeTable(w, rows)
	}

	if more > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: use --all, --taken or --free\n", y.glyphs().more, count(more, "more row"))
	}

	o.misfits(w, s, y)

	return w.Flush()
}

func (o *poolsShowOptions) header(w io.Writer, s *stock, y style) {
	ref := ObjectRef{Namespace: s.Namespace, Name: s.Name}
	_, _ = fmt.Fprintf(w, "%s  %s  %s\n", y.paint(bold, clean(ref.path())), s.All.Prefix(), y.level(s))

	for _, text := range y.texts(s.notes(), s.facts(y.glyphs()), o.columns(o.width)) {
		_, _ = fmt.Fprintln(w, text)
	}

	_, _ = fmt.Fprintln(w)
}

// limit returns the first rows, and how many more there are.
func limit[T any](all []T, every bool) (shown []T, more int) {
	if every || len(all) <= maxListed {
		return all, 0
	}

	return all[:maxListed], len(all) - maxListed
}

// misfits lists what is not on the map.
func (o *poolsShowOptions) misfits(w io.Writer, s *stock, y style) {
	shown, more := limit(s.misfits, o.all)
	rows := [][]string{{"CIDR", columnKind, "NAME", "OWNER", "WHY"}}

	for _, m := range shown {
		b := m.view()
		rows = append(rows, []string{b.CIDR, b.Kind, b.Name, b.Owner, m.why})
	}

	if len(shown) > 0 {
		_, _ = fmt.Fprintf(w, "\n%s\n", y.paint(red, "does not fit"))
		writeTable(w, rows)
	}

	if more > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: use --all\n", y.glyphs().more, count(more, "more row"))
	}

	if n := len(s.failed); n > 0 {
		_, _ = fmt.Fprintf(w, "\n%s: %s\n", verb(n, "Subnet", "failed and counts as absent", "failed and count as absent"), failedNames(s.failed))
	}
}

func failedNames(all []*v1alpha1.Subnet) string {
	const most = 3

	var names []string
	for _, n := range all[:min(most, len(all))] {
		names = append(names, clean(n.Name))
	}

	if more := len(all) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}

	return strings.Join(names, ", ")
}
