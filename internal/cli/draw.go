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

// glyphs are the characters that a tree is drawn with.
type glyphs struct {
	branch, last, bar, gap string
	bad, warn, more        string
}

var (
	unicodeGlyphs = glyphs{branch: "├─ ", last: "└─ ", bar: "│  ", gap: "   ", bad: "✗", warn: "!", more: "…"}
	asciiGlyphs   = glyphs{branch: "|- ", last: "`- ", bar: "|  ", gap: "   ", bad: "x", warn: "!", more: "..."}
)

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
	glyphs

	style  style
	depth  int
	forest *forest
}

// draw writes a PodGroup as a tree. depth is the number of levels of
// subgroups to draw, 0 for all.
func draw(out io.Writer, pg *v2alpha2.PodGroup, f *forest, depth int, s style) error {
	d := &drawer{glyphs: asciiGlyphs, style: s, depth: depth, forest: f}
	if s.unicode {
		d.glyphs = unicodeGlyphs
	}

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
	d.siblings(d.forest.tops, "", 1, emit)

	for _, i := range d.forest.loose {
		d.node(i, "", "", 1, emit)
	}
}

func (d *drawer) siblings(nodes []int, indent string, level int, emit func(row)) {
	for at, i := range nodes {
		if at == len(nodes)-1 {
			d.node(i, indent+d.last, indent+d.gap, level, emit)
		} else {
			d.node(i, indent+d.branch, indent+d.bar, level, emit)
		}
	}
}

func (d *drawer) node(i int, lead, indent string, level int, emit func(row)) {
	n := &d.forest.nodes[i]
	r := row{
		lead: lead, below: indent + d.gap, name: n.Name, notes: n.notes,
		detail: strings.Join(minimums(n.MinMember, n.MinSubGroup, len(n.children)), ", "),
	}

	if n.Name == "" {
		r.name = "(no name)"
	}

	if len(n.children) > 0 {
		r.below = indent + d.bar
	}

	emit(r)

	if d.depth > 0 && level >= d.depth && n.below > 0 {
		emit(row{lead: indent + d.last, name: fmt.Sprintf("%s %d more below", d.more, n.below)})

		return
	}

	d.siblings(n.children, indent, level+1, emit)
}

// worst is the mark of a row: that of its gravest note.
func (d *drawer) worst(r row) (string, Severity) {
	mark := ""

	for _, n := range r.notes {
		if n.severity == SeverityError {
			return d.bad + " ", SeverityError
		}

		mark = d.warn + " "
	}

	return mark, SeverityWarning
}

func (d *drawer) width(r row) int {
	mark, _ := d.worst(r)

	return utf8.RuneCountInString(r.lead + mark + clean(r.name))
}

func (d *drawer) write(w io.Writer, r row, c columns) {
	mark, severity := d.worst(r)
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
