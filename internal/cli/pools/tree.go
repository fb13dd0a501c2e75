package pools

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/show"
)

// nearlyFull is the share from which on somebody should think of more space.
const nearlyFull = 0.9

// A poolTree is the pools of one namespace, as the trees that they form.
type poolTree struct {
	render.Tree

	namespace string
	nodes     []poolNode
}

// A poolNode is one pool and its place among the others.
type poolNode struct {
	*stock
	*render.Node

	notes []render.Note
	// from is its parent, if that is not drawn.
	from string
}

// trees returns the trees of every namespace, in order.
func (inv *inventory) trees() []*poolTree {
	var out []*poolTree

	for i := 0; i < len(inv.pools); {
		from, namespace := i, inv.pools[i].Namespace
		for i < len(inv.pools) && inv.pools[i].Namespace == namespace {
			i++
		}

		out = append(out, newPoolTree(namespace, inv.pools[from:i]))
	}

	return out
}

func newPoolTree(namespace string, pools []*stock) *poolTree {
	index := make(map[string]int, len(pools))
	for i, s := range pools {
		index[s.Name] = i
	}

	up := make([]int, len(pools))

	for i, s := range pools {
		up[i] = render.Top

		if parent := s.ParentName(); parent != "" {
			at, ok := index[parent]
			if up[i] = at; !ok {
				up[i] = render.Missing
			}
		}
	}

	t := &poolTree{Tree: render.NewTree(up), namespace: namespace, nodes: make([]poolNode, len(pools))}

	for i, s := range pools {
		t.nodes[i] = poolNode{stock: s, Node: &t.Nodes[i], notes: s.notes()}
	}

	for _, i := range t.Loose {
		t.explainLoose(i, up)
	}

	return t
}

// explainLoose says why a pool hangs in the air.
func (t *poolTree) explainLoose(i int, up []int) {
	n := &t.nodes[i]
	why := render.Note{Severity: show.SeverityWarning, Text: fmt.Sprintf("its parent %q was not found", n.ParentName())}

	if up[i] >= 0 {
		way := []string{n.Name}
		for at := up[i]; at != i; at = up[at] {
			way = append(way, t.nodes[at].Name)
		}

		why = render.Note{Severity: show.SeverityError, Text: "it is taken from itself: " + strings.Join(append(way, n.Name), " -> ")}
	}

	n.notes = slices.Insert(n.notes, 0, why)
}

// narrow leaves one pool and what was taken from it. It is false if there is
// none of that name.
func (t *poolTree) narrow(name string) bool {
	i := slices.IndexFunc(t.nodes, func(n poolNode) bool { return n.Name == name })
	if i < 0 {
		return false
	}

	n := &t.nodes[i]
	if !slices.Contains(t.Tops, i) && !slices.Contains(t.Loose, i) {
		n.from = n.ParentName()
	}

	t.Tops, t.Loose = nil, nil
	if n.Depth > 0 {
		t.Tops = []int{i}
	} else {
		t.Loose = []int{i}
	}

	return true
}

// each visits the pools that are left, parents first.
func (t *poolTree) each(visit func(poolNode)) {
	queue := slices.Concat(t.Tops, t.Loose)
	for at := 0; at < len(queue); at++ {
		n := t.nodes[queue[at]]
		visit(n)

		queue = append(queue, n.Children...)
	}
}

// notes are what there is to say about a pool apart from its place.
func (s *stock) notes() []render.Note {
	var out []render.Note

	add := func(severity show.Severity, format string, args ...any) {
		out = append(out, render.Note{Severity: severity, Text: fmt.Sprintf(format, args...)})
	}

	if s.DeletionTimestamp != nil {
		add(show.SeverityWarning, "it is being deleted")
	}

	if s.All == nil {
		add(show.SeverityError, "%s", s.unusable())

		return out
	}

	switch {
	case s.exhausted():
		add(show.SeverityError, "exhausted: no /%d is left", s.defaultLength())
	case s.full():
		add(show.SeverityWarning, "nearly full")
	}

	if n := len(s.misfits); n > 0 {
		add(show.SeverityError, "%s not fit", render.Verb(n, "block", "does", "do"))
	}

	if s.behind {
		add(show.SeverityWarning, "status is behind")
	}

	return out
}

// unusable is what the controller says of a CIDR that is none.
func (s *stock) unusable() string {
	return meta.FindStatusCondition(s.count().Conditions, v1alpha1.ConditionReady).Message
}

// count is the status that the pool should have, apart from the times in it.
func (s *stock) count() v1alpha1.SubnetPoolStatus {
	bare := &v1alpha1.SubnetPool{Spec: s.Spec, Status: s.Status}
	bare.UID, bare.Generation = s.UID, s.Generation
	listed := make(map[string]string, len(s.First))

	for _, b := range s.First {
		listed[b.Prefix.String()] = b.Owner
	}

	return pool.Status(bare, pool.Figures{All: s.All, Own: s.Own, Delegated: s.Delegated, Listed: listed}, metav1.Time{})
}

// live is how many Subnets there are, apart from those that stand for a child
// pool.
func (s *stock) live() int { return len(s.subnets) - s.twins }

func (s *stock) defaultLength() int { return pool.DefaultLength(s.SubnetPool, s.All.Prefix()) }

// exhausted is true when the next claim that names no size would wait.
func (s *stock) exhausted() bool { return s.All.FreeCount(s.defaultLength()).IsZero() }

func (s *stock) full() bool { return s.All.Utilisation() >= nearlyFull }

func (s *stock) strategy() v1alpha1.Strategy {
	if s.Spec.Strategy == "" {
		return v1alpha1.StrategyLinear
	}

	return s.Spec.Strategy
}

// disagrees says whether the status tells something else than the objects.
// Where blocks do not fit, it depends on who came first which of them is
// counted; and a manifest that a person wrote has no status.
func (s *stock) disagrees(offline bool) bool {
	if len(s.misfits) > 0 || offline && s.Status.ObservedGeneration == 0 && len(s.Status.Conditions) == 0 {
		return false
	}

	had, want := s.Status, s.count()
	had.Conditions, want.Conditions = nil, nil

	return !equality.Semantic.DeepEqual(had, want)
}
