package groups

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/grouptree"
)

// A row is one line of a tree before it is aligned.
type row struct {
	// lead is everything before the mark and below what stands before the
	// notes after the first.
	lead, below  string
	name, detail string
	notes        []show.NoteView
}

// A drawer draws one tree.
type drawer struct {
	render.Walker

	style render.Style
	tree  *grouptree.Tree
}

// draw writes a PodGroup as a tree. depth is the number of levels of
// subgroups to draw, 0 for all.
func draw(out io.Writer, pg *v2alpha2.PodGroup, f *grouptree.Tree, depth int, s render.Style) error {
	d := &drawer{Walker: render.Walker{Glyphs: s.Glyphs(), Tree: f.Tree, Depth: depth}, style: s, tree: f}

	var c render.Columns
	d.rows(func(r row) {
		if r.detail != "" || len(r.notes) > 0 {
			c.Fit(d.width(r), len(r.detail))
		}
	})

	w := bufio.NewWriter(out)
	d.header(w, pg)
	d.rows(func(r row) { d.write(w, r, c) })

	return w.Flush()
}

func (d *drawer) header(w io.Writer, pg *v2alpha2.PodGroup) {
	ref := identity.Ref{Namespace: pg.Namespace, Name: pg.Name}

	var facts []string
	if pg.Spec.Queue != "" {
		facts = append(facts, "queue "+pg.Spec.Queue)
	}

	facts = append(facts, minimums(pg.Spec.MinMember, pg.Spec.MinSubGroup, len(d.tree.Tops))...)

	title := render.Clean(ref.Path())
	if pg.Name == "" {
		title += "(no name)"
	}

	line := d.style.Paint(render.Bold, title)
	if len(facts) > 0 {
		line += "  " + render.Clean(strings.Join(facts, ", "))
	}

	_, _ = fmt.Fprintln(w, line)

	for _, n := range d.tree.Notes {
		_, _ = fmt.Fprintln(w, d.remark(n))
	}
}

// minimums says what must be placed.
func minimums(minMember, minSubGroup *int32, children int) []string {
	var out []string

	if minMember != nil {
		out = append(out, "min "+show.Count(int(*minMember), "pod"))
	}

	if minSubGroup != nil {
		out = append(out, fmt.Sprintf("min %d of %s", *minSubGroup, show.Count(children, "subgroup")))
	}

	return out
}

// rows hands out the lines in their order: the tree, then the loose parts.
func (d *drawer) rows(emit func(row)) {
	d.Walk(func(p render.Line) { emit(d.row(p)) })
}

func (d *drawer) row(p render.Line) row {
	if p.More > 0 {
		return row{lead: p.Lead, name: d.MoreBelow(p)}
	}

	n := &d.tree.SubGroups[p.At]
	r := row{
		lead: p.Lead, below: p.Below, name: n.Name, notes: n.Notes,
		detail: strings.Join(minimums(n.MinMember, n.MinSubGroup, len(n.Children)), ", "),
	}

	if n.Name == "" {
		r.name = "(no name)"
	}

	return r
}

func (d *drawer) width(r row) int {
	mark, _ := d.Worst(r.notes)

	return utf8.RuneCountInString(r.lead + mark + render.Clean(r.name))
}

func (d *drawer) write(w io.Writer, r row, c render.Columns) {
	mark, severity := d.Worst(r.notes)
	line := r.lead + d.style.Severity(severity, mark) + render.Clean(r.name)
	rest := fmt.Sprintf("%-*s", c.Detail, r.detail)

	for at, n := range r.notes {
		if at > 0 {
			rest += "\n" + r.below
		} else if c.Detail > 0 {
			rest += "  "
		}

		rest += d.style.Severity(n.Severity, render.Clean(n.Message))
	}

	if rest = strings.TrimRight(rest, " "); rest != "" {
		line += strings.Repeat(" ", max(0, c.Name-d.width(r))) + "  " + rest
	}

	_, _ = fmt.Fprintln(w, line)
}

func (d *drawer) remark(n show.NoteView) string {
	mark := d.Warn
	if n.Severity == show.SeverityError {
		mark = d.Bad
	}

	return d.style.Severity(n.Severity, mark+" "+render.Clean(n.Message))
}
