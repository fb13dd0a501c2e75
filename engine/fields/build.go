package fields

import (
	"cmp"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// builder makes a tree in one pass over the object and all sets at once. At each node it lists the
// claims of the object and of the sets, sorts them by name, and makes one child for each name.
type builder struct {
	tree *Tree
	// claims and held are stacks: each node uses the section that it pushed.
	claims []claim
	held   []holding
	// indexes is the buffer from which slices of entry indexes are cut.
	indexes []int
}

// A claim records that an entry, or the live object, has a field or item of that name.
type claim struct {
	element fieldpath.PathElement
	// entry is -1 for the live object.
	entry int
	// member reports whether the entry holds the element itself.
	member bool
	// set is what the entry holds below the element, or nil.
	set   *fieldpath.Set
	value any
}

// A holding is the set that an entry holds below a node.
type holding struct {
	entry int
	set   *fieldpath.Set
}

func (t *Tree) build(live any) {
	b := &builder{tree: t}
	for i, e := range t.entries {
		b.held = append(b.held, holding{entry: i, set: e.Fields})
	}
	t.root = &Node{Live: true, Kind: Leaf, value: live}
	if object, ok := live.(map[string]any); ok && len(object) > 0 {
		t.root.Kind = Struct
	}
	b.grow(t.root, t.shape, 0)
}

// grow makes the nodes below n. The holdings of n begin at start.
func (b *builder) grow(n *Node, s *shape, start int) {
	n.id = b.tree.count
	b.tree.count++

	first := len(b.claims)
	for _, h := range b.held[start:] {
		for pe := range h.set.Members.All() {
			b.claims = append(b.claims, claim{element: pe, entry: h.entry, member: true})
		}
		for pe := range h.set.Children.All() {
			b.claims = append(b.claims, claim{element: pe, entry: h.entry, set: h.set.WithPrefix(pe)})
		}
	}
	b.live(n, s)

	last := len(b.claims)
	slices.SortStableFunc(b.claims[first:], func(x, y claim) int {
		return cmp.Or(x.element.Compare(y.element), cmp.Compare(x.entry, y.entry))
	})
	for at := first; at < last; {
		end := at + 1
		for end < last && b.claims[end].element.Compare(b.claims[at].element) == 0 {
			end++
		}
		b.child(n, s.child(b.claims[at].element), at, end)
		at = end
	}
	clear(b.claims[first:last])
	b.claims = b.claims[:first]
	b.conclude(n)
}

// child makes the node of the claims from at to end, which all have one name.
func (b *builder) child(parent *Node, s *shape, at, end int) {
	n := &Node{Element: b.claims[at].element, Kind: Leaf, parent: parent}
	start, holders := len(b.held), len(b.indexes)
	for _, c := range b.claims[at:end] {
		switch {
		case c.entry < 0:
			if !n.Live {
				n.Live, n.value = true, c.value
				n.Kind = s.kind(c.value)
			}
		case c.member:
			b.indexes = append(b.indexes, c.entry)
		case !c.set.Empty():
			b.held = append(b.held, holding{entry: c.entry, set: c.set})
		}
	}
	n.Holders = slices.Clip(b.indexes[holders:])
	if !n.Live && len(n.Holders) == 0 && start == len(b.held) {
		return
	}
	parent.Children = append(parent.Children, n)
	b.grow(n, s, start)
	b.held = b.held[:start]
}

// live adds the claims of the object below a node.
func (b *builder) live(n *Node, s *shape) {
	switch v := n.value.(type) {
	case map[string]any:
		if n.Kind != Struct {
			return
		}
		top, meta := n.parent == nil, n.is("metadata")
		for name, value := range v {
			if !isIdentifying(name, top, meta) {
				b.claims = append(b.claims, claim{element: fieldpath.PathElement{FieldName: &name}, entry: -1, value: value})
			}
		}
	case []any:
		if n.Kind != Items {
			return
		}
		for i, item := range v {
			b.claims = append(b.claims, claim{element: s.element(i, item), entry: -1, value: item})
		}
	}
}

// identifying are the fields, at the top and in metadata, that the server leaves out of all
// entries.
var (
	identifying     = []string{"apiVersion", "kind"}
	identifyingMeta = []string{"clusterName", "creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid"}
)

// isIdentifying reports whether the server leaves a field out of all entries. top and meta report
// whether the field is at the top level or in metadata.
func isIdentifying(name string, top, meta bool) bool {
	return top && slices.Contains(identifying, name) || meta && slices.Contains(identifyingMeta, name)
}

// conclude sets Owners and State of a node. Its children must have theirs.
func (b *builder) conclude(n *Node) {
	n.Owners = n.Holders
	uniform, seen := true, len(n.Holders) > 0
	for _, c := range n.Children {
		if !c.Live {
			continue
		}
		if c.State == Split || seen && !slices.Equal(c.Owners, n.Owners) {
			uniform = false
		}
		n.Owners = b.union(n.Owners, c.Owners)
		seen = true
	}
	switch {
	case !uniform:
		n.State = Split
	case len(n.Owners) == 0:
		n.State = Unowned
	case len(n.Owners) == 1:
		n.State = Sole
	default:
		n.State = CoOwned
	}
}

// union returns the union of two sorted lists. It allocates nothing if one list contains the other,
// which is the usual case.
func (b *builder) union(x, y []int) []int {
	if contains(x, y) {
		return x
	}
	if contains(y, x) {
		return y
	}
	start := len(b.indexes)
	b.indexes = append(append(b.indexes, x...), y...)
	slices.Sort(b.indexes[start:])
	b.indexes = b.indexes[:start+len(slices.Compact(b.indexes[start:]))]

	return slices.Clip(b.indexes[start:])
}

// contains reports whether a sorted list contains every element of another.
func contains(all, some []int) bool {
	i := 0
	for _, s := range some {
		for i < len(all) && all[i] < s {
			i++
		}
		if i == len(all) || all[i] != s {
			return false
		}
	}

	return true
}
