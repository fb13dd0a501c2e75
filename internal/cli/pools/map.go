package pools

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
)

// A cell says what there is in one slice of a pool. It may be several things.
type cell uint8

const (
	cellFree cell = 1 << iota
	cellSubnet
	cellChild
)

// A chart is a pool cut into equal slices, as many as there is room for.
type chart struct {
	pool netip.Prefix
	// length is that of every slice.
	length int
	// perRow is how many slices stand in a row: a power of two, so that a row
	// is a block too.
	perRow int
	cells  []cell
}

// Slices are at most 2 to the maxSlices; at least 2 to the minSlices, if there
// are as many addresses.
const (
	maxSlices = 16
	minSlices = 4
)

// newChart cuts a pool into at most some rows that are not wider than a width,
// labels included. Slices are smaller than a pool's finest block only where
// there would be next to none.
func newChart(pool netip.Prefix, finest, width, rows int) *chart {
	c := &chart{pool: pool}
	length := min(max(finest, pool.Bits()+minSlices), pool.Bits()+maxSlices, pool.Addr().BitLen())

	for !c.fit(length, width, rows) && length > pool.Bits() {
		length--
	}

	c.cells = make([]cell, 1<<(c.length-pool.Bits()))

	return c
}

// fit cuts the pool into slices of a length, in rows that are as wide as they
// can be. It is false if there is no room for that.
func (c *chart) fit(length, width, rows int) bool {
	c.length, c.perRow = length, 1<<(length-c.pool.Bits())

	for n := 1; n <= rows && c.perRow > 0; n, c.perRow = 2*n, c.perRow/2 {
		if c.labelWidth(n)+len("  ")+c.perRow <= width {
			return true
		}
	}

	c.perRow = 1

	return false
}

func (c *chart) labelWidth(rows int) int {
	widest := 0
	for i := range rows {
		widest = max(widest, len(c.label(i)))
	}

	return widest
}

// label is the first address of a row.
func (c *chart) label(row int) string {
	raw := c.pool.Addr().AsSlice()
	for bit, at := c.length-1, row*c.perRow; bit >= c.pool.Bits(); bit, at = bit-1, at/2 {
		if at%2 == 1 {
			raw[bit/8] |= 0x80 >> (bit % 8)
		}
	}

	first, _ := netip.AddrFromSlice(raw) // it has the length of an address

	return first.String()
}

// slot is the index of the slice that an address is in.
func (c *chart) slot(a netip.Addr) int {
	raw, at := a.AsSlice(), 0
	for bit := c.pool.Bits(); bit < c.length; bit++ {
		at = at*2 + int(raw[bit/8]>>(7-bit%8)&1)
	}

	return at
}

// mark puts a block down.
func (c *chart) mark(block netip.Prefix, what cell) {
	from := c.slot(block.Addr())
	for i := range 1 << max(0, c.length-block.Bits()) {
		c.cells[from+i] |= what
	}
}

// A symbol is how a cell is shown. Colour only helps: every symbol has a shape
// of its own.
type symbol struct {
	unicode, ascii string
	colour         string
	means          string
}

var (
	symbolTaken  = symbol{"█", "#", render.Cyan, "taken"}
	symbolPartly = symbol{"▄", "+", render.Cyan, "partly taken"}
	symbolChild  = symbol{"═", "=", render.Magenta, "child pool"}
	symbolFree   = symbol{"·", ".", render.Dim, "free"}
)

func (c cell) symbol() symbol {
	switch {
	case c == cellFree:
		return symbolFree
	case c == cellChild:
		return symbolChild
	case c&cellFree == 0:
		return symbolTaken
	default:
		return symbolPartly
	}
}

func paintSymbol(s render.Style, y symbol, times int) string {
	if s.Unicode {
		return s.Paint(y.colour, strings.Repeat(y.unicode, times))
	}

	return s.Paint(y.colour, strings.Repeat(y.ascii, times))
}

// draw writes the rows, and below them what the symbols mean.
func (c *chart) draw(w io.Writer, s render.Style) {
	row, width := 0, c.labelWidth(len(c.cells)/c.perRow)

	for cells := range slices.Chunk(c.cells, c.perRow) {
		var line strings.Builder

		// One paint for all neighbours that look the same.
		for from := 0; from < len(cells); {
			y, to := cells[from].symbol(), from+1
			for to < len(cells) && cells[to].symbol() == y {
				to++
			}

			line.WriteString(paintSymbol(s, y, to-from))
			from = to
		}

		_, _ = fmt.Fprintf(w, "%-*s  %s\n", width, c.label(row), line.String())
		row++
	}

	var legend []string
	for _, y := range []symbol{symbolTaken, symbolPartly, symbolChild, symbolFree} {
		legend = append(legend, paintSymbol(s, y, 1)+" "+y.means)
	}

	_, _ = fmt.Fprintf(w, "\n%s; each is a /%d\n", strings.Join(legend, "  "), c.length)
}

// chartOf draws a pool on a map.
func chartOf(s *ipamplan.Pool, width, rows int) *chart {
	finest := 0
	if s.All.Len() == 0 {
		finest = s.DefaultLength()
	}

	for block := range s.All.Taken() {
		finest = max(finest, block.Bits())
	}

	c := newChart(s.All.Prefix(), finest, width, rows)

	for block := range s.All.Taken() {
		what := cellSubnet
		if s.Holders[block].Child != nil {
			what = cellChild
		}

		c.mark(block, what)
	}

	for block := range s.All.Free() {
		c.mark(block, cellFree)
	}

	return c
}
