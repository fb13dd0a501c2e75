package pools

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const (
	barCells = 10
	// maxPoolColumn is where CIDRs stand at the latest. A longer name gets a
	// line of its own.
	maxPoolColumn = 40
	// minBeside is the room below which what there is to say about a pool
	// stands under it, and not beside it.
	minBeside = 40
	// maxSizes is how many sizes of free blocks are named.
	maxSizes = 6
)

// A poolDrawer draws the pools of one namespace.
type poolDrawer struct {
	render.Walker

	style render.Style
	tree  *ipam.Tree
	width int
	// name and cidr are the widths of columns.
	name, cidr int
}

// drawPools writes trees of pools, one namespace after the other.
func drawPools(out io.Writer, trees []*ipam.Tree, depth, width int, s render.Style) error {
	w := bufio.NewWriter(out)

	for i, t := range trees {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}

		d := &poolDrawer{Walker: render.Walker{Glyphs: s.Glyphs(), Tree: t.Tree, Depth: depth}, style: s, tree: t, width: width}
		d.measure()
		d.header(w)
		d.Walk(func(p render.Line) { d.write(w, p) })
	}

	return w.Flush()
}

// gauge is the width of the bar and the percentage behind it.
const gauge = barCells + len(" 100%")

// measure finds the widths of the columns.
func (d *poolDrawer) measure() {
	d.Walk(func(p render.Line) {
		if n := d.tree.Pools[p.At]; p.More == 0 && n.All != nil {
			d.cidr = max(d.cidr, len(n.Spec.CIDR))
		}
	})

	const least = 16

	most := max(least, min(maxPoolColumn, d.width-d.cidr-gauge-len("    ")))

	d.Walk(func(p render.Line) {
		if n := d.titleWidth(p); p.More == 0 && n <= most {
			d.name = max(d.name, n)
		}
	})
}

func (d *poolDrawer) header(w io.Writer) {
	pools, subnets, claims := 0, 0, 0

	d.tree.Each(func(n ipam.Node) {
		pools++
		subnets += n.Live()
		claims += len(n.Queue)
	})

	facts := []string{show.Count(pools, "pool"), show.Count(subnets, "Subnet")}
	if claims > 0 {
		facts = append(facts, waitingText(claims))
	}

	_, _ = fmt.Fprintln(w, d.style.Paint(render.Bold, namespaceText(d.tree.Namespace))+"  "+strings.Join(facts, ", "))
}

func waitingText(n int) string { return show.Verb(n, "claim", "waits", "wait") }

func (d *poolDrawer) titleWidth(p render.Line) int {
	n := d.tree.Pools[p.At]
	mark, _ := d.Worst(n.Notes)

	return utf8.RuneCountInString(p.Lead + mark + render.Clean(n.Name))
}

// write draws one pool: its name, its addresses and how full they are, and
// beside or under that what there is to say.
func (d *poolDrawer) write(w io.Writer, p render.Line) {
	if p.More > 0 {
		_, _ = fmt.Fprintln(w, p.Lead+d.MoreBelow(p))

		return
	}

	n := d.tree.Pools[p.At]
	mark, severity := d.Worst(n.Notes)
	line, at := p.Lead+d.style.Severity(severity, mark)+render.Clean(n.Name), d.titleWidth(p)

	if at > d.name {
		_, _ = fmt.Fprintln(w, line)
		line, at = p.Below, utf8.RuneCountInString(p.Below)
	}

	line += strings.Repeat(" ", max(0, d.name-at)+2) + d.gauge(n)
	column := d.name + d.cidr + gauge + len("      ")

	if n.All == nil && d.width-column >= minBeside {
		line += strings.Repeat(" ", max(0, d.cidr-utf8.RuneCountInString(render.Clean(n.Spec.CIDR))+gauge+2))
	}

	for i, text := range d.texts(n, p, column) {
		switch {
		case d.width-column < minBeside:
			_, _ = fmt.Fprintln(w, line)
			line = p.Below + text
		case i == 0:
			line += "  " + text
		default:
			_, _ = fmt.Fprintln(w, line)
			line = p.Below + strings.Repeat(" ", max(0, column-utf8.RuneCountInString(p.Below))) + text
		}
	}

	_, _ = fmt.Fprintln(w, line)
}

// texts are the lines of what there is to say about a pool, in the room that a
// column leaves.
func (d *poolDrawer) texts(n ipam.Node, p render.Line, column int) []string {
	room := d.width - column
	if room < minBeside {
		room = max(minBeside, d.width-utf8.RuneCountInString(p.Below))
	}

	facts := facts(n.Pool, d.Glyphs)
	if n.From != "" {
		facts = slices.Insert(facts, 0, "taken from "+render.Clean(n.From))
	}

	return d.style.Texts(n.Notes, facts, room)
}

// gauge is a pool's CIDR and how much of it is taken.
func (d *poolDrawer) gauge(n ipam.Node) string {
	if n.All == nil {
		return render.Clean(n.Spec.CIDR)
	}

	return fmt.Sprintf("%-*s  %s", d.cidr, n.Spec.CIDR, level(d.style, n.Pool))
}

// level is how much of a pool is taken, red if it is exhausted and yellow if it
// soon will be.
func level(s render.Style, p *ipamplan.Pool) string {
	text := meter(s.Glyphs(), p.All)

	switch {
	case p.Exhausted():
		return s.Paint(render.Red, text)
	case p.Full():
		return s.Paint(render.Yellow, text)
	default:
		return text
	}
}

// meter is a bar and a percentage. Neither says empty or full if it is not.
func meter(g render.Glyphs, p *cidr.Pool) string {
	filled := int(p.Utilization() * barCells)
	filled = max(filled, min(1, p.Len()))

	if !p.FreeAddresses().IsZero() {
		filled = min(filled, barCells-1)
	}

	return strings.Repeat(g.Full, filled) + strings.Repeat(g.Empty, barCells-filled) + fmt.Sprintf(" %4s", percentText(p))
}

func percentText(p *cidr.Pool) string {
	switch percent := int(p.Utilization() * 100); {
	case p.FreeAddresses().IsZero():
		return "100%"
	case percent == 0 && p.Len() > 0:
		return "<1%"
	default:
		return fmt.Sprintf("%d%%", min(percent, 99))
	}
}

// facts are what there is in a pool, in a few words each.
func facts(s *ipamplan.Pool, g render.Glyphs) []string {
	out := []string{show.Count(s.Live(), "Subnet")}
	if s.Delegated > 0 {
		out = append(out, show.Count(s.Delegated, "child pool"))
	}

	if len(s.Queue) > 0 {
		out = append(out, waitingText(len(s.Queue)))
	}

	out = append(out, string(s.Strategy()))
	if s.All == nil {
		return out
	}

	if f := s.All.Fragmentation(); f >= 0.01 {
		out = append(out, fmt.Sprintf("%d%% fragmented", int(f*100)))
	}

	return append(out, freeText(g, ipam.FreeSizes(s.All)))
}

// freeText names sizes in a short form: /17 /18 2×/20. Three or more that
// follow each other are one: /17…/24.
func freeText(g render.Glyphs, sizes []ipam.FreeSize) string {
	if len(sizes) == 0 {
		return "nothing free"
	}

	const run = 3

	text := "free"

	for shown := 0; len(sizes) > 0; shown++ {
		if shown == maxSizes {
			return text + fmt.Sprintf(" +%s", show.Count(len(sizes), "size"))
		}

		n := 1
		for n < len(sizes) && sizes[n].Count == 1 && sizes[0].Count == 1 && sizes[n].Length == sizes[0].Length+n {
			n++
		}

		switch {
		case n >= run:
			text += fmt.Sprintf(" /%d%s/%d", sizes[0].Length, g.More, sizes[n-1].Length)
		case sizes[0].Count == 1:
			text, n = text+fmt.Sprintf(" /%d", sizes[0].Length), 1
		default:
			text += fmt.Sprintf(" %d%s/%d", sizes[0].Count, g.Times, sizes[0].Length)
		}

		sizes = sizes[n:]
	}

	return text
}
