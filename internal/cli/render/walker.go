package render

import (
	"fmt"

	"github.com/arbor-control/arbor/internal/show"
)

// Glyphs are the characters that drawings are made of.
type Glyphs struct {
	branch, last, bar, gap string
	Bad, Warn, More        string
	Full, Empty, Times     string
	Good, Going            string
}

var (
	unicodeGlyphs = Glyphs{
		branch: "├─ ", last: "└─ ", bar: "│  ", gap: "   ", Bad: "✗", Warn: "!", More: "…",
		Full: "█", Empty: "░", Times: "×", Good: "✔", Going: "−",
	}
	asciiGlyphs = Glyphs{
		branch: "|- ", last: "`- ", bar: "|  ", gap: "   ", Bad: "x", Warn: "!", More: "...",
		Full: "#", Empty: ".", Times: "x", Good: "+", Going: "-",
	}
)

// Glyphs returns the characters that the place can show.
func (s Style) Glyphs() Glyphs {
	if s.Unicode {
		return unicodeGlyphs
	}

	return asciiGlyphs
}

// Worst is the mark of what has notes: that of the gravest.
func (g Glyphs) Worst(notes []show.NoteView) (string, show.Severity) {
	mark := ""

	for _, n := range notes {
		if n.Severity == show.SeverityError {
			return g.Bad + " ", show.SeverityError
		}

		mark = g.Warn + " "
	}

	return mark, show.SeverityWarning
}

// MoreBelow says how much is too deep to be drawn.
func (g Glyphs) MoreBelow(p Line) string { return fmt.Sprintf("%s %d more below", g.More, p.More) }

// A Walker goes through a shape from top to bottom.
type Walker struct {
	Glyphs
	show.Tree

	// Depth is the number of levels to visit, 0 for all.
	Depth int
}

// A Line is one line of a drawing.
type Line struct {
	// At is the index of the member.
	At int
	// Lead stands before the member, and below before what is said under it.
	Lead, Below string
	// More is how many members are too deep to be visited. Then this line is
	// about them, and not about a member.
	More int
}

// Walk visits the tree, then the loose parts.
func (c *Walker) Walk(visit func(Line)) {
	c.siblings(c.Tops, "", 1, visit)

	for _, i := range c.Loose {
		c.Member(i, "", "", 1, visit)
	}
}

func (c *Walker) siblings(members []int, indent string, level int, visit func(Line)) {
	for at, i := range members {
		if at == len(members)-1 {
			c.Member(i, indent+c.last, indent+c.gap, level, visit)
		} else {
			c.Member(i, indent+c.branch, indent+c.bar, level, visit)
		}
	}
}

// Member visits a member and what is below it.
func (c *Walker) Member(i int, lead, indent string, level int, visit func(Line)) {
	l := &c.Nodes[i]
	below := indent + c.gap

	if len(l.Children) > 0 {
		below = indent + c.bar
	}

	visit(Line{At: i, Lead: lead, Below: below})

	if c.Depth > 0 && level >= c.Depth && l.Below > 0 {
		visit(Line{Lead: indent + c.last, More: l.Below})

		return
	}

	c.siblings(l.Children, indent, level+1, visit)
}

// DefaultDepth keeps a chain of thousands of subgroups from drawing a
// triangle of megabytes. Trees that people write are a few levels deep.
const DefaultDepth = 50
