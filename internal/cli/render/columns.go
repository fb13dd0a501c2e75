package render

// MaxColumn is where minimums stand at the latest; longer names push theirs
// out without dragging the others along.
const MaxColumn = 60

// Columns are the widths of what stands before the minimums, and of those.
type Columns struct{ Name, Detail int }

// Fit widens the columns for a line.
func (c *Columns) Fit(name, detail int) {
	if name <= MaxColumn {
		c.Name = max(c.Name, name)
	}

	c.Detail = max(c.Detail, detail)
}
