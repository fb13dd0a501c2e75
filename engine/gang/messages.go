package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/engine/podtree"
)

// A Misfit is why there is no place for a member.
type Misfit struct {
	// Nodes is how many nodes were tried.
	Nodes int
	// Reasons is the number of nodes by reason.
	Reasons map[string]int
}

// String has the form that Kubernetes' own scheduler uses. Equal misfits have
// equal texts.
func (m *Misfit) String() string {
	if m == nil {
		return ""
	}
	reasons := slices.SortedFunc(maps.Keys(m.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.Reasons[b], m.Reasons[a]), cmp.Compare(a, b))
	})
	for i, text := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", m.Reasons[text], text)
	}
	text := fmt.Sprintf("0/%d nodes are available", m.Nodes)
	if len(reasons) > 0 {
		text += ": " + strings.Join(reasons, ", ")
	}

	return text + "."
}

// Reason explains, without the name of the gang, why it does not fit. It is empty if it does. As
// long as the answers of the World are the same, so is Reason.
func (d Decision) Reason(tree *podtree.Tree) string {
	if d.Fits {
		return ""
	}

	return d.reason(tree, d.Blocker)
}

func (d Decision) reason(tree *podtree.Tree, i int) string {
	r, node := d.Nodes[i], tree.Node(i)
	switch {
	case r.MinChildren > len(node.Children):
		return tooFewChildren(tree, i, r.MinChildren)
	case r.Blocker >= 0 && r.MinChildren == len(node.Children):
		return d.reason(tree, r.Blocker)
	case r.Blocker >= 0:
		return fmt.Sprintf("only %d of min %d subgroups%s fit: %s", r.Children, r.MinChildren, of(node.Name), d.reason(tree, r.Blocker))
	case r.Pods-r.Held < r.Min:
		return hasPods(tree, i, r.Pods-r.Held, r.Min, r.Held)
	case !node.IsLeaf():
		return because(fmt.Sprintf("only %d of min %d pods below %s fit", r.Bound+r.Room, r.Min, it(node.Name)), r.Misfit)
	}

	text := fmt.Sprintf("room for %d of min %d pods", r.Room, r.Min)
	if r.Bound > 0 {
		missing := r.Min - r.Bound
		text = fmt.Sprintf("room for %d of the %s missing to min %d", r.Room, plural(missing, "pod that is", "pods that are"), r.Min)
	}
	if !isImplicit(tree) {
		text = fmt.Sprintf("subgroup %q: %s", node.Name, text)
	}

	return because(text, r.Misfit)
}

// A Lack is a place of the tree without enough pods.
type Lack struct {
	// Node of the tree.
	Node int
	// Pods that exist at the node and below; those of them that are Held do
	// not count for the Min.
	Pods, Held, Min int
	// Children is how many direct children have enough pods, of which
	// MinChildren are needed.
	Children, MinChildren int
	// First is the first child that has not enough pods, nil if that is not
	// what lacks.
	First *Lack
}

// Message describes what is missing, without the name of the gang.
func (l *Lack) Message(tree *podtree.Tree) string {
	node := tree.Node(l.Node)
	switch {
	case l.MinChildren > len(node.Children):
		return tooFewChildren(tree, l.Node, l.MinChildren)
	case l.First != nil:
		return fmt.Sprintf("only %d of min %d subgroups%s have enough pods: %s", l.Children, l.MinChildren, of(node.Name), l.First.Message(tree))
	case l.Pods-l.Held >= l.Min:
		return fmt.Sprintf("fewer than min %d pods below %s are in subgroups that have enough pods", l.Min, it(node.Name))
	}

	return hasPods(tree, l.Node, l.Pods-l.Held, l.Min, l.Held)
}

func tooFewChildren(tree *podtree.Tree, i, required int) string {
	node := tree.Node(i)
	has := len(node.Children)
	if isImplicit(tree) {
		has = 0
	}

	return fmt.Sprintf("%s has %s of min %d", subject(node.Name), plural(has, "subgroup", "subgroups"), required)
}

func hasPods(tree *podtree.Tree, i, has, required, held int) string {
	name := tree.Node(i).Name
	if isImplicit(tree) {
		name = ""
	}
	text := fmt.Sprintf("%s has %d of min %d pods", subject(name), has, required)
	if held > 0 {
		text += fmt.Sprintf(", and %d that may not be placed yet", held)
	}

	return text
}

// subject, of and it name a node in different grammatical roles; the gang itself has no name.
func subject(name string) string {
	if name == "" {
		return "it"
	}

	return fmt.Sprintf("subgroup %q", name)
}

func of(name string) string {
	if name == "" {
		return ""
	}

	return fmt.Sprintf(" of %q", name)
}

func it(name string) string {
	if name == "" {
		return "it"
	}

	return fmt.Sprintf("%q", name)
}

func because(text string, m *Misfit) string {
	if m == nil {
		return text
	}

	return text + ": " + m.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}

	return fmt.Sprintf("%d %s", n, many)
}
