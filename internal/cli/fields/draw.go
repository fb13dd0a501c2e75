package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// A mark says at a glance who owns a field.
type mark string

const (
	markSole    mark = " "
	markCoOwned mark = "+"
	markSplit   mark = "~"
	markUnowned mark = "-"
	markSelf    mark = "."
	markMissing mark = "?"
)

// legend explains marks, in this order.
var legend = []struct {
	mark mark
	text string
}{
	{markCoOwned, "co-owned"},
	{markSplit, "split: parts belong to others than the rest"},
	{markUnowned, "nobody's"},
	{markSelf, "the field itself, not all that is in it"},
	{markMissing, "held, but not in the object"},
}

// A leaf is one line of the drawing before it is aligned.
type leaf struct {
	lead, name, value string
	mark              mark
	// owners are indexes of entries.
	owners []int
	node   *fields.Node
}

// ownersDrawer draws one object.
type ownersDrawer struct {
	render.Walker
	*owners.Tree

	style render.Style
	width int
	// seen are the marks that were drawn.
	seen map[mark]bool
	// column is where marks stand.
	column int
}

// drawOwners draws objects, with an empty line between them, and explains the
// marks.
func drawOwners(w io.Writer, all []*owners.Tree, depth, width int, s render.Style) {
	seen := map[mark]bool{}

	for i, c := range all {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}

		d := &ownersDrawer{
			Walker: render.Walker{Glyphs: s.Glyphs(), Tree: c.Tree, Depth: depth},
			Tree:   c, style: s, width: width, seen: seen,
		}
		d.draw(w)
	}

	var texts []string

	for _, l := range legend {
		if seen[l.mark] {
			texts = append(texts, string(l.mark)+" "+l.text)
		}
	}

	if len(texts) > 0 {
		_, _ = fmt.Fprintf(w, "\n%s\n", strings.Join(render.Wrap(texts, "   ", width), "\n"))
	}
}

func (d *ownersDrawer) draw(w io.Writer) {
	_, _ = fmt.Fprintf(w, "%s  %s\n", d.style.Paint(render.Bold, render.Clean(d.String())), render.Clean(d.APIVersion))

	for _, text := range d.style.Texts(d.Notes, nil, d.width) {
		_, _ = fmt.Fprintln(w, text)
	}

	if len(d.Managers) > 0 {
		_, _ = fmt.Fprintln(w)
		d.header(w)
	}

	_, _ = fmt.Fprintln(w)

	var leaves []leaf

	d.Walk(func(p render.Line) { leaves = append(leaves, d.leaf(p)) })
	d.align(leaves)

	for _, l := range leaves {
		d.write(w, l)
	}
}

// header lists the managers, each in its colour.
func (d *ownersDrawer) header(w io.Writer) {
	rows := [][]string{{"MANAGER", "OPERATION", "VERSION", "FIELDS", "TIME"}}
	for i, e := range d.Managers {
		rows = append(rows, []string{d.Labels[i], string(e.Operation), e.APIVersion, strconv.Itoa(owners.FieldCount(e)), e.Time})
	}

	var table bytes.Buffer

	render.WriteTable(&table, rows)

	for i, line := range strings.SplitAfter(table.String(), "\n") {
		if i > 0 && i < len(rows) {
			name := render.Clean(d.Labels[i-1])
			line = d.style.Paint(managerColour(d.Object, i-1), name) + strings.TrimPrefix(line, name)
		}

		_, _ = fmt.Fprint(w, line)
	}
}

// palette leaves out red and yellow, which mean that something is wrong.
var palette = []string{render.Cyan, "32", render.Magenta, "34", "96", "92", "95", "94"}

// managerColour is the same for all entries of one manager.
func managerColour(o *owners.Object, entry int) string {
	var names []string
	for _, e := range o.Managers[:entry+1] {
		if !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}

	return palette[slices.Index(names, o.Managers[entry].Manager)%len(palette)]
}

func (d *ownersDrawer) leaf(p render.Line) leaf {
	if p.More > 0 {
		return leaf{lead: p.Lead, name: d.MoreBelow(p), mark: markSole}
	}

	n := d.Fields[p.At]
	l := leaf{lead: p.Lead, name: stepText(n.Element), node: n}

	if d.Scoped && d.Tree.Nodes[p.At].Depth == 1 {
		l.name = render.Clean(fields.FormatPath(n.Path()))
	}

	if v, ok := d.Value(n); ok {
		l.value = valueText(v)
	}

	l.mark, l.owners = judge(n)
	d.seen[l.mark] = true

	return l
}

// judge says how a node is marked, and who is named beside it. Near the top
// nearly everything is split. There, only those are named who hold the field
// itself: an item of a list is what is worth a look.
func judge(n *fields.Node) (m mark, owners []int) {
	switch {
	case !n.Live:
		return markMissing, n.Holders
	case n.State == fields.Sole:
		return markSole, n.Owners
	case n.State == fields.CoOwned:
		return markCoOwned, n.Owners
	case n.State == fields.Unowned:
		return markUnowned, nil
	case n.Element.FieldName == nil:
		return markSplit, n.Owners
	case len(n.Holders) > 0:
		return markSelf, n.Holders
	default:
		return markSole, nil
	}
}

// align finds the column of marks: behind the longest field, but so that what
// stands behind it has room.
func (d *ownersDrawer) align(leaves []leaf) {
	need, owners := 0, 0

	for _, l := range leaves {
		if l.mark != markSole || len(l.owners) > 0 {
			need = max(need, utf8.RuneCountInString(l.text(l.value)))
			owners = max(owners, utf8.RuneCountInString(strings.Join(d.Names(l.owners), ", ")))
		}
	}

	const gaps = 4 // two before the mark, itself, and one behind it

	d.column = min(need, max(d.width-owners-gaps, d.width/2))
}

// text is a line up to its mark.
func (l leaf) text(value string) string {
	if value == "" {
		return l.lead + l.name
	}

	return l.lead + l.name + ": " + value
}

func (d *ownersDrawer) write(w io.Writer, l leaf) {
	const leastValue = 8

	before := utf8.RuneCountInString(l.text(""))
	value := ""

	if l.value != "" {
		value = shorten(l.value, max(leastValue, d.column-before-2), d.More)
	}

	pad := strings.Repeat(" ", max(0, d.column-utf8.RuneCountInString(l.text(value))))
	line := l.lead + d.paintField(l, strings.TrimPrefix(l.text(value), l.lead)) + pad + "  " + d.paintMark(l.mark) + " " + d.paintOwners(l)
	_, _ = fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// paintField colours a field like its manager, if it has one.
func (d *ownersDrawer) paintField(l leaf, text string) string {
	switch {
	case l.node == nil, l.mark == markUnowned, l.mark == markMissing:
		return d.style.Paint(render.Dim, text)
	case l.mark == markSole && len(l.owners) == 1:
		return d.style.Paint(managerColour(d.Object, l.owners[0]), text)
	default:
		return text
	}
}

func (d *ownersDrawer) paintMark(m mark) string {
	switch m {
	case markCoOwned, markSplit, markMissing:
		return d.style.Paint(render.Yellow, string(m))
	case markUnowned, markSelf:
		return d.style.Paint(render.Dim, string(m))
	default:
		return string(m)
	}
}

func (d *ownersDrawer) paintOwners(l leaf) string {
	if l.mark == markUnowned {
		return d.style.Paint(render.Dim, "nobody")
	}

	names := d.Names(l.owners)
	for i, at := range l.owners {
		names[i] = d.style.Paint(managerColour(d.Object, at), render.Clean(names[i]))
	}

	return strings.Join(names, ", ")
}

// valueText is a value in one line. A text that could be taken for something
// else is quoted.
func valueText(v any) string {
	if text, ok := v.(string); ok && text != "" && !json.Valid([]byte(text)) {
		return render.Clean(text)
	}

	data, err := json.Marshal(v)
	if err != nil {
		return "(cannot be shown)"
	}

	return render.Clean(string(data))
}

// shorten leaves as much of a text as there is room for.
func shorten(text string, room int, more string) string {
	all := []rune(text)
	if len(all) <= room {
		return text
	}

	return string(all[:max(0, room-len([]rune(more)))]) + more
}

// stepText is the last step of a path: the name of a field, or what an item is
// known by.
func stepText(pe fieldpath.PathElement) string {
	if pe.FieldName != nil {
		return render.Clean(*pe.FieldName)
	}

	return render.Clean(fields.FormatPath(fieldpath.Path{pe}))
}
