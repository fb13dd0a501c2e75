package gang

import "slices"

func (r *run) note(i int, n note) {
	if !r.quiet {
		r.notes[i] = n
	}
}

// noteLack notes that a node has not enough pods, and which child of it has
// not.
func (r *run) noteLack(i int) {
	child := r.lacking(i)
	r.note(i, note{children: r.able[i], blocker: child})
	if child >= 0 {
		r.noteLack(child)
	}
}

// decision returns what has been done. If the gang does not fit, everything has been rolled back.
func (r *run) decision(fits bool) Decision {
	d := Decision{Fits: fits, Nodes: r.reports(), Blocker: -1}
	if fits {
		d.Places = slices.Clone(r.places)
	} else {
		d.Blocker = r.blocker()
	}
	for _, i := range slices.Backward(r.order) {
		report, note := &d.Nodes[i], r.notes[i]
		if r.tree.Node(i).IsLeaf() {
			report.New = r.filled[i]
		}
		if r.ok[i] {
			report.Satisfied = true
			if r.tree.Node(i).IsLeaf() {
				report.Misfit = note.misfit
			}
		} else {
			report.Room, report.Blocker, report.Misfit = note.room, note.blocker, note.misfit
		}
		report.Children = 0
		for _, child := range r.tree.Node(i).Children {
			report.New += d.Nodes[child].New
			if r.ok[child] {
				report.Children++
			}
		}
		if !r.ok[i] {
			report.Children = max(report.Children, note.children)
		}
	}

	return d
}

// blocker descends from the root as long as a node needs all of its children and one of them is not
// satisfied.
func (r *run) blocker() int {
	at := r.tree.Root()
	for {
		next := r.notes[at].blocker
		if next < 0 || r.required[at] < len(r.tree.Node(at).Children) {
			return at
		}
		at = next
	}
}
