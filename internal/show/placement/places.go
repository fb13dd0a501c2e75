package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/internal/decide/gangdraft"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// A PlacesReport is the result of arbor groups fit and explain.
type PlacesReport struct {
	Groups []PlacesView `json:"groups"`
}

// Kind is the kind of the document that a [PlacesReport] is.
const Kind = "PodGroupPlacements"

// Refs are the groups of the report.
func (r PlacesReport) Refs() []identity.Ref {
	out := make([]identity.Ref, len(r.Groups))
	for i, g := range r.Groups {
		out[i] = identity.Ref{APIVersion: v2alpha2.GroupVersion.String(), Kind: v2alpha2.PodGroupKind, Namespace: g.Namespace, Name: g.Name}
	}

	return out
}

// A PlacesView says what has become of one PodGroup, and what would.
type PlacesView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Scheduled says that every minimum is met by pods that have a place.
	Scheduled bool `json:"scheduled"`
	// Fits says that every minimum is met, or would be if the scheduler tried
	// now.
	Fits bool `json:"fits"`
	// Reason is one word: Scheduled, Fits, Unschedulable, TooFewPods, OrderedReady,
	// or why the group was refused.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Condition is what the scheduler says on the object; absent if nothing, and
	// for questions about files.
	Condition *v2alpha2.PodGroupCondition `json:"condition,omitempty"`
	// Placed is what the scheduler counts on the object.
	Placed *int32 `json:"placed,omitempty"`
	// SubGroups begin with the group itself, which has no name, and have parents
	// before their children.
	SubGroups []SubGroupPlaces `json:"subGroups"`
	Pods      []PodPlace       `json:"pods"`
	// Rooms are the nodes as a pod sees them that found no place; absent if
	// every pod has one, or if room is not what lacks.
	Rooms *RoomsView `json:"rooms,omitempty"`
}

// SubGroupPlaces counts the pods at one node of the tree and below.
type SubGroupPlaces struct {
	Name  string `json:"name"`
	Depth int    `json:"depth"`
	// Min is how many pods must have a place, MinSubGroup how many of the
	// SubGroups directly below must have what they need.
	Min         int `json:"min"`
	MinSubGroup int `json:"minSubGroup,omitempty"`
	SubGroups   int `json:"subGroups,omitempty"`
	// Pods exist or are in the files. Of them, Bound have a place, New would get
	// one, and Held may not be placed yet.
	Pods  int `json:"pods"`
	Bound int `json:"bound"`
	New   int `json:"new"`
	Held  int `json:"held,omitempty"`
	// Room is how many further pods found a place in the attempt that failed.
	Room      int      `json:"room,omitempty"`
	Satisfied bool     `json:"satisfied"`
	State     string   `json:"state"`
	Nodes     []PodsOn `json:"nodes"`
}

// PodsOn is how many pods are, or would be, on a node.
type PodsOn struct {
	Node string `json:"node"`
	Pods int    `json:"pods"`
}

// A PodPlace is one pod and its node.
type PodPlace struct {
	Name     string `json:"name"`
	SubGroup string `json:"subGroup,omitempty"`
	// Node is empty if there is none.
	Node string `json:"node,omitempty"`
	// Bound says that the pod is there already.
	Bound bool `json:"bound,omitempty"`
}

// A RoomsView is what nodes have for a pod that found no place.
type RoomsView struct {
	Pod   string     `json:"pod"`
	Nodes []RoomView `json:"nodes"`
}

// A RoomView is one node as that pod sees it.
type RoomView struct {
	Node string `json:"node"`
	// Fits is how many such pods there would be room for, if nobody else of the
	// group took it.
	Fits    int         `json:"fits"`
	Short   []ShortView `json:"short,omitempty"`
	Reasons []string    `json:"reasons,omitempty"`
}

// A ShortView is a resource of which a node has too little, as quantities.
type ShortView struct {
	Resource    string `json:"resource"`
	Missing     string `json:"missing"`
	Asked       string `json:"asked"`
	Free        string `json:"free"`
	Allocatable string `json:"allocatable"`
}

// Words for what becomes of a subgroup.
const (
	reasonFits   = "Fits"
	statePlaced  = "placed"
	stateFits    = "fits"
	stateEmpty   = "content with none"
	stateLeftOut = "left out"
	stateWaits   = "waits"
	StateNoRoom  = "no room"
	stateTooFew  = "too few pods"
)

// New returns the view of an answer about a PodGroup.
func New(pg *v2alpha2.PodGroup, a *scheduling.Answer) PlacesView {
	v := PlacesView{Namespace: pg.Namespace, Name: pg.Name, SubGroups: []SubGroupPlaces{}, Pods: []PodPlace{}}
	if a.Refusal != nil {
		v.Reason, v.Message = a.Refusal.Reason, a.Refusal.Message

		return v
	}
	g, d := a.Gang, a.Decision
	v.Fits = d.Fits
	v.Scheduled = gang.Satisfied(g.Tree, g.Members, g.Rules)[g.Tree.Root()].Satisfied
	v.Reason, v.Message = verdictOf(g, &d, v.Scheduled)
	v.Pods = podPlaces(g, &d)
	v.SubGroups = subGroupPlaces(g, &d, v.Pods)
	if a.For >= 0 && len(a.Rooms) > 0 && v.Reason != v2alpha2.ReasonTooFewPods {
		v.Rooms = &RoomsView{Pod: g.Pods[a.For].Name}
		for _, r := range a.Rooms {
			v.Rooms.Nodes = append(v.Rooms.Nodes, newRoomView(r))
		}
	}

	return v
}

// WithStatus adds what the object says itself.
func (v PlacesView) WithStatus(pg *v2alpha2.PodGroup) PlacesView {
	v.Placed = pg.Status.Placed
	for _, c := range pg.Status.Conditions {
		if c.Type == v2alpha2.PodGroupScheduled {
			v.Condition = &c
		}
	}

	return v
}

func verdictOf(g *scheduling.Gang, d *gang.Decision, scheduled bool) (reason, message string) {
	if lack := gang.Missing(g.Tree, g.Members, g.Rules); lack != nil && !d.Fits {
		return v2alpha2.ReasonTooFewPods, lack.Sentence(g.Tree)
	}
	if !d.Fits {
		return v2alpha2.ReasonUnschedulable, d.Reason(g.Tree)
	}
	root := d.Nodes[g.Tree.Root()]
	message = fmt.Sprintf("%d of %d pods", root.Bound+root.New, root.Pods)
	switch {
	case root.New == 0 && root.Bound < root.Pods:
		message += " have a place, and there is no room for more of them now"
	case root.New == 0:
		message += " have a place"
	case root.Bound > 0:
		message += fmt.Sprintf(" have a place then, %d of them have it now", root.Bound)
	default:
		message += " get a place"
	}
	if scheduled {
		return v2alpha2.ReasonScheduled, message
	}

	return reasonFits, message
}

// podPlaces are all pods that count, in the order in which they are placed.
func podPlaces(g *scheduling.Gang, d *gang.Decision) []PodPlace {
	all := make([]PodPlace, len(g.Pods))
	for i, pod := range g.Pods {
		all[i] = PodPlace{Name: pod.Name, Node: pod.Spec.NodeName, Bound: g.Members[i].State == gang.Placed}
		if n := g.Tree.Node(g.Members[i].Leaf); n.Index >= 0 {
			all[i].SubGroup = n.Name
		}
	}
	for _, p := range d.Places {
		all[p.Member].Node = p.Node
	}

	return all
}

func subGroupPlaces(g *scheduling.Gang, d *gang.Decision, pods []PodPlace) []SubGroupPlaces {
	on := podsOn(g, pods)
	blocking := map[int]bool{}
	for n := d.Blocker; n >= 0 && !d.Fits; n = d.Nodes[n].Blocker {
		blocking[n] = true
	}
	all := []SubGroupPlaces{}
	for i, n := range g.Tree.All() {
		at := i
		if len(n.Children) > 0 && g.Tree.Node(n.Children[0]).Index < 0 {
			at = n.Children[0] // the one leaf of a group without subgroups is the group
		}
		if i == g.Tree.Root() || n.Index >= 0 {
			all = append(all, subGroupAt(g.Tree, d, at, n.Depth, blocking[i] || blocking[at], on[at]))
		}
	}

	return all
}

// podsOn counts the pods by node, at each place of the tree and below.
func podsOn(g *scheduling.Gang, pods []PodPlace) []map[string]int {
	on := make([]map[string]int, g.Tree.Len())
	for i := range on {
		on[i] = map[string]int{}
	}
	for i, p := range pods {
		for n := g.Members[i].Leaf; n >= 0 && p.Node != ""; n = g.Tree.Node(n).Parent {
			on[n][p.Node]++
		}
	}

	return on
}

func subGroupAt(tree *podtree.Tree, d *gang.Decision, at, depth int, blocking bool, on map[string]int) SubGroupPlaces {
	r, n := d.Nodes[at], tree.Node(at)
	s := SubGroupPlaces{
		Depth: depth, Min: r.Min, MinSubGroup: r.MinChildren, SubGroups: len(n.Children),
		Pods: r.Pods, Bound: r.Bound, New: r.New, Held: r.Held, Room: r.Room, Satisfied: r.Satisfied,
		State: stateOf(r, d.Fits, blocking), Nodes: []PodsOn{},
	}
	if n.Index >= 0 {
		s.Name = n.Name
	}
	for node, pods := range on {
		s.Nodes = append(s.Nodes, PodsOn{Node: node, Pods: pods})
	}
	slices.SortFunc(s.Nodes, func(a, b PodsOn) int { return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Node, b.Node)) })

	return s
}

func stateOf(r gang.Report, fits, blocking bool) string {
	switch {
	case r.Satisfied && r.New > 0:
		return stateFits
	case r.Satisfied && r.Bound > 0:
		return statePlaced
	case r.Satisfied:
		return stateEmpty
	case fits:
		return stateLeftOut
	case blocking && r.Pods-r.Held < r.Min:
		return stateTooFew
	case blocking:
		return StateNoRoom
	default:
		return stateWaits
	}
}

func newRoomView(r scheduling.Room) RoomView {
	v := RoomView{Node: r.Node, Fits: r.Fits, Reasons: r.Reasons}
	for _, s := range r.Short {
		amount := func(n int64) string { return amountOf(s.Resource, n) }
		v.Short = append(v.Short, ShortView{
			Resource: s.Resource, Missing: amount(s.Asked - s.Free), Asked: amount(s.Asked), Free: amount(s.Free), Allocatable: amount(s.Allocatable),
		})
	}

	return v
}

// amountOf writes an amount as manifests do.
func amountOf(name string, n int64) string {
	switch {
	case name == string(corev1.ResourceCPU):
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case name == string(corev1.ResourceMemory), name == string(corev1.ResourceEphemeralStorage), strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(n, resource.BinarySI).String()
	default:
		return resource.NewQuantity(n, resource.DecimalSI).String()
	}
}

// Text is why a node does not take the pod.
func (r RoomView) Text() string {
	var all []string
	for _, s := range r.Short {
		all = append(all, fmt.Sprintf("%s %s (%s asked, %s free)", s.Missing, s.Resource, s.Asked, s.Free))
	}
	all = append(all, r.Reasons...)

	return strings.Join(all, "; ")
}

// WaitingFor returns the view of a group with a deadlock. No pod has a place:
// where they would be with another policy is not the answer.
func (v PlacesView) WaitingFor(d *gangdraft.Deadlock) PlacesView {
	return PlacesView{
		Namespace: v.Namespace, Name: v.Name, Reason: gangdraft.ReasonOrderedReady, Message: d.Message,
		SubGroups: []SubGroupPlaces{}, Pods: []PodPlace{},
	}
}

// IsBinding reports whether the group has its places, and a pod has to be prepared before it is bound.
func (v PlacesView) IsBinding() bool {
	return v.Fits && v.Condition != nil && v.Condition.Status == metav1.ConditionFalse && v.Condition.Reason == v2alpha2.ReasonBinding
}

// Minimum is what a subgroup needs: pods, or subgroups, or both.
func (s SubGroupPlaces) Minimum() string {
	if s.SubGroups == 0 {
		return strconv.Itoa(s.Min)
	}
	text := fmt.Sprintf("%d of %s", s.MinSubGroup, show.Count(s.SubGroups, "subgroup"))
	if s.MinSubGroup == s.SubGroups {
		text = "all subgroups"
	}
	if s.Min > 0 {
		text += ", " + show.Count(s.Min, "pod")
	}

	return text
}
