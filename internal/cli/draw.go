package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// maxColumn is where minimums stand at the latest; longer names push theirs
// out without dragging the others along.
const maxColumn = 60

// A row is one line of a tree before it is aligned.
type row struct {
	// lead is everything before the mark and below what stands before the
	// notes after the first.
	lead, below  string
	name, detail string
	notes        []note
}

// columns are the widths of what stands before the minimums, and of those.
type columns struct{ name, detail int }

func (c *columns) fit(name, detail int) {
	if name <= maxColumn {
		c.name = max(c.name, name)
	}

	c.detail = max(c.detail, detail)
}

// A drawer draws one forest.
type drawer struct {
	climber

	style  style
	forest *forest
}

// draw writes a PodGroup as a tree. depth is the number of levels of
// subgroups to draw, 0 for all.
func draw(out io.Writer, pg *v2alpha2.PodGroup, f *forest, depth int, s style) error {
	d := &drawer{climber: climber{glyphs: s.glyphs(), shape: f.shape, depth: depth}, style: s, forest: f}

	var c columns
	d.rows(func(r row) {
		if r.detail != "" || len(r.notes) > 0 {
			c.fit(d.width(r), len(r.detail))
		}
	})

	w := bufio.NewWriter(out)
	d.header(w, pg)
	d.rows(func(r row) { d.write(w, r, c) })

	return w.Flush()
}

func (d *drawer) header(w io.Writer, pg *v2alpha2.PodGroup) {
	ref := ObjectRef{Namespace: pg.Namespace, Name: pg.Name}

	var facts []string
	if pg.Spec.Queue != "" {
		facts = append(facts, "queue "+pg.Spec.Queue)
	}

	facts = append(facts, minimums(pg.Spec.MinMember, pg.Spec.MinSubGroup, len(d.forest.tops))...)

	title := clean(ref.path())
	if pg.Name == "" {
		title += "(no name)"
	}

	line := d.style.paint(bold, title)
	if len(facts) > 0 {
		line += "  " + clean(strings.Join(facts, ", "))
	}

	_, _ = fmt.Fprintln(w, line)

	for _, n := range d.forest.notes {
		_, _ = fmt.Fprintln(w, d.remark(n))
	}
}

// minimums says what must be placed.
func minimums(minMember, minSubGroup *int32, children int) []string {
	var out []string

	if minMember != nil {
		out = append(out, "min "+count(int(*minMember), "pod"))
	}

	if minSubGroup != nil {
		out = append(out, fmt.Sprintf("min %d of %s", *minSubGroup, count(children, "subgroup")))
	}

	return out
}

// rows hands out the lines in their order: the tree, then the loose parts.
func (d *drawer) rows(emit func(row)) {
	d.climb(func(p perch) { emit(d.row(p)) })
}

func (d *drawer) row(p perch) row {
	if p.more > 0 {
		return row{lead: p.lead, name: d.moreBelow(p)}
	}

	n := &d.forest.nodes[p.at]
	r := row{
		lead: p.lead, below: p.below, name: n.Name, notes: n.notes,
		detail: strings.Join(minimums(n.MinMember, n.MinSubGroup, len(n.children)), ", "),
	}

	if n.Name == "" {
		r.name = "(no name)"
	}

	return r
}

func (d *drawer) width(r row) int {
	mark, _ := d.worst(r.notes)

	return utf8.RuneCountInString(r.lead + mark + clean(r.name))
}

func (d *drawer) write(w io.Writer, r row, c columns) {
	mark, severity := d.worst(r.notes)
	line := r.lead + d.style.severity(severity, mark) + clean(r.name)
	rest := fmt.Sprintf("%-*s", c.detail, r.detail)

	for at, n := range r.notes {
		if at > 0 {
			rest += "\n" + r.below
		} else if c.detail > 0 {
			rest += "  "
		}

		rest += d.style.severity(n.severity, clean(n.text))
	}

	if rest = strings.TrimRight(rest, " "); rest != "" {
		line += strings.Repeat(" ", max(0, c.name-d.width(r))) + "  " + rest
	}

	_, _ = fmt.Fprintln(w, line)
}

func (d *drawer) remark(n note) string {
	mark := d.warn
	if n.severity == SeverityError {
		mark = d.bad
	}

	return d.style.severity(n.severity, mark+" "+clean(n.text))
}
