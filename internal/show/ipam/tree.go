package ipam

import (
	"fmt"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/show"
)

// A Tree is the pools of one namespace, as the trees that they form.
type Tree struct {
	show.Tree

	Namespace string
	Pools     []Node
}

// A Node is one pool and its place among the others.
type Node struct {
	*ipamplan.Pool
	*show.Node

	Notes []show.NoteView
	// From is its parent, if that is not drawn.
	From string
}

// TreesOf returns the trees of every namespace, in order, of pools with some labels.
func TreesOf(inv *ipamplan.Inventory, matches func(labels map[string]string) bool) []*Tree {
	var out []*Tree

	for i := 0; i < len(inv.Pools); {
		from, namespace := i, inv.Pools[i].Namespace
		for i < len(inv.Pools) && inv.Pools[i].Namespace == namespace {
			i++
		}

		if t := newPoolTree(namespace, inv.Pools[from:i], matches); len(t.Pools) > 0 {
			out = append(out, t)
		}
	}

	return out
}

// hidden is the index of a pool that exists and is not drawn.
const hidden = -3

func newPoolTree(namespace string, all []*ipamplan.Pool, matches func(map[string]string) bool) *Tree {
	index := make(map[string]int, len(all))

	var pools []*ipamplan.Pool
	for _, s := range all {
		index[s.Name] = hidden
		if matches(s.Labels) {
			index[s.Name], pools = len(pools), append(pools, s)
		}
	}

	up := make([]int, len(pools))
	for i, s := range pools {
		up[i] = parentIn(index, s)
	}

	t := &Tree{Tree: show.NewTree(up), Namespace: namespace, Pools: make([]Node, len(pools))}

	for i, s := range pools {
		t.Pools[i] = Node{Pool: s, Node: &t.Nodes[i], Notes: NotesOf(s)}
		if index[s.ParentName()] == hidden {
			t.Pools[i].From = s.ParentName()
		}
	}

	for _, i := range t.Loose {
		t.explainLoose(i, up)
	}

	return t
}

// parentIn is what a tree needs to know of the parent of a pool. A pool whose parent is hidden is drawn on
// top.
func parentIn(index map[string]int, s *ipamplan.Pool) int {
	parent := s.ParentName()
	at, ok := index[parent]

	switch {
	case parent == "" || at == hidden:
		return show.Top
	case !ok:
		return show.Missing
	default:
		return at
	}
}

// explainLoose says why a pool hangs in the air.
func (t *Tree) explainLoose(i int, up []int) {
	n := &t.Pools[i]
	why := show.NoteView{Severity: show.SeverityWarning, Message: fmt.Sprintf("its parent %q was not found", n.ParentName())}

	if up[i] >= 0 {
		way := []string{n.Name}
		for at := up[i]; at != i; at = up[at] {
			way = append(way, t.Pools[at].Name)
		}

		why = show.NoteView{Severity: show.SeverityError, Message: "it is taken from itself: " + strings.Join(append(way, n.Name), " -> ")}
	}

	n.Notes = slices.Insert(n.Notes, 0, why)
}

// Narrow leaves one pool and what was taken from it. It is false if there is
// none of that name.
func (t *Tree) Narrow(name string) bool {
	i := slices.IndexFunc(t.Pools, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return false
	}

	n := &t.Pools[i]
	if !slices.Contains(t.Tops, i) && !slices.Contains(t.Loose, i) {
		n.From = n.ParentName()
	}

	t.Tops, t.Loose = nil, nil
	if n.Depth > 0 {
		t.Tops = []int{i}
	} else {
		t.Loose = []int{i}
	}

	return true
}

// Each visits the pools that are left, parents first.
func (t *Tree) Each(visit func(Node)) {
	queue := slices.Concat(t.Tops, t.Loose)
	for at := 0; at < len(queue); at++ {
		n := t.Pools[queue[at]]
		visit(n)

		queue = append(queue, n.Children...)
	}
}

// NotesOf are what there is to say about a pool apart from its place.
func NotesOf(s *ipamplan.Pool) []show.NoteView {
	var out []show.NoteView

	add := func(severity show.Severity, format string, args ...any) {
		out = append(out, show.NoteView{Severity: severity, Message: fmt.Sprintf(format, args...)})
	}

	if s.DeletionTimestamp != nil {
		add(show.SeverityWarning, "it is being deleted")
	}

	if s.All == nil {
		add(show.SeverityError, "%s", s.Unusable())

		return out
	}

	switch {
	case s.Exhausted():
		add(show.SeverityError, "exhausted: no /%d is left", s.DefaultLength())
	case s.Full():
		add(show.SeverityWarning, "nearly full")
	}

	if n := len(s.Misfits); n > 0 {
		add(show.SeverityError, "%s not fit", show.Verb(n, "block", "does", "do"))
	}

	if s.Behind {
		add(show.SeverityWarning, "status is behind")
	}

	return out
}
