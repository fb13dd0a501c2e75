package cli

import "fmt"

// glyphs are the characters that drawings are made of.
type glyphs struct {
	branch, last, bar, gap string
	bad, warn, more        string
	full, empty, times     string
	good, going            string
}

var (
	unicodeGlyphs = glyphs{
		branch: "├─ ", last: "└─ ", bar: "│  ", gap: "   ", bad: "✗", warn: "!", more: "…",
		full: "█", empty: "░", times: "×", good: "✔", going: "−",
	}
	asciiGlyphs = glyphs{
		branch: "|- ", last: "`- ", bar: "|  ", gap: "   ", bad: "x", warn: "!", more: "...",
		full: "#", empty: ".", times: "x", good: "+", going: "-",
	}
)

func (s style) glyphs() glyphs {
	if s.unicode {
		return unicodeGlyphs
	}

	return asciiGlyphs
}

// worst is the mark of what has notes: that of the gravest.
func (g glyphs) worst(notes []note) (string, Severity) {
	mark := ""

	for _, n := range notes {
		if n.severity == SeverityError {
			return g.bad + " ", SeverityError
		}

		mark = g.warn + " "
	}

	return mark, SeverityWarning
}

// moreBelow says how much is too deep to be drawn.
func (g glyphs) moreBelow(p perch) string { return fmt.Sprintf("%s %d more below", g.more, p.more) }

// A climber goes through a shape from top to bottom.
type climber struct {
	glyphs
	shape

	// depth is the number of levels to visit, 0 for all.
	depth int
}

// A perch is where a climber stops.
type perch struct {
	// at is the index of the member.
	at int
	// lead stands before the member, and below before what is said under it.
	lead, below string
	// more is how many members are too deep to be visited. Then this line is
	// about them, and not about a member.
	more int
}

// climb visits the tree, then the loose parts.
func (c *climber) climb(visit func(perch)) {
	c.siblings(c.tops, "", 1, visit)

	for _, i := range c.loose {
		c.member(i, "", "", 1, visit)
	}
}

func (c *climber) siblings(members []int, indent string, level int, visit func(perch)) {
	for at, i := range members {
		if at == len(members)-1 {
			c.member(i, indent+c.last, indent+c.gap, level, visit)
		} else {
			c.member(i, indent+c.branch, indent+c.bar, level, visit)
		}
	}
}

func (c *climber) member(i int, lead, indent string, level int, visit func(perch)) {
	l := &c.limbs[i]
	below := indent + c.gap

	if len(l.children) > 0 {
		below = indent + c.bar
	}

	visit(perch{at: i, lead: lead, below: below})

	if c.depth > 0 && level >= c.depth && l.below > 0 {
		visit(perch{lead: indent + c.last, more: l.below})

		return
	}

	c.siblings(l.children, indent, level+1, visit)
}
