package groups

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/render"
)

// How much a table shows without -o wide.
const (
	shownNodes = 3
	shownRooms = 10
)

// A placesDrawer writes views for people.
type placesDrawer struct {
	w    io.Writer
	s    render.Style
	wide bool
	now  metav1.Time
}

// fit writes the answer to a question about a group.
func (p placesDrawer) fit(v PlacesView) {
	p.headline(v, map[bool]string{true: "fits", false: "does not fit"}[v.Fits])
	p.tables(v)
}

// explain writes how a group is, what its status says, and what would be now.
func (p placesDrawer) explain(v PlacesView) {
	words := "waits"
	switch {
	case v.Scheduled:
		words = "has its minimum"
	case v.isBinding():
		words = "is being bound"
	case v.Fits:
		words = "would fit now"
	}
	p.headline(v, words)
	p.status(v)
	p.tables(v)
}

func (p placesDrawer) headline(v PlacesView, words string) {
	colour := render.Red
	if v.Fits {
		colour = render.Green
	}
	_, _ = fmt.Fprintf(p.w, "PodGroup %s %s: %s\n", render.Clean(v.Namespace+"/"+v.Name), p.s.Paint(colour, words), render.Clean(v.Message))
}

// status is the scheduler's own word.
func (p placesDrawer) status(v PlacesView) {
	c := v.Condition
	switch {
	case c == nil:
		_, _ = fmt.Fprintln(p.w, "  condition Scheduled: none; no scheduler of Arbor has seen the group yet")
	case c.Message == v.Message:
		_, _ = fmt.Fprintf(p.w, "  condition Scheduled: %s%s, %s\n", c.Status, since(c, p.now), render.Clean(c.Reason))
	default:
		_, _ = fmt.Fprintf(p.w, "  condition Scheduled: %s%s, %s: %s\n", c.Status, since(c, p.now), render.Clean(c.Reason), render.Clean(c.Message))
	}
	if v.Placed != nil {
		_, _ = fmt.Fprintf(p.w, "  placed, as the scheduler counts: %d\n", *v.Placed)
	}
	if c != nil && !v.Scheduled && v.Fits && !v.isBinding() {
		_, _ = fmt.Fprintln(p.w, "  the scheduler will see this when it tries again; room that it holds for groups with reason Binding counts as free here")
	}
}

// isBinding reports whether the group has its places, and a pod has to be prepared before it is bound.
func (v PlacesView) isBinding() bool {
	return v.Fits && v.Condition != nil && v.Condition.Status == metav1.ConditionFalse && v.Condition.Reason == v2alpha2.ReasonBinding
}

func (p placesDrawer) tables(v PlacesView) {
	if len(v.SubGroups) > 0 {
		rows := [][]string{{"SUBGROUP", "MIN", "PODS", "PLACED", "STATE", "NODES"}}
		for _, s := range v.SubGroups {
			rows = append(rows, p.row(v.Name, s))
		}
		_, _ = fmt.Fprintln(p.w)
		render.WriteTable(p.w, rows)
	}
	if p.wide && len(v.Pods) > 0 {
		p.pods(v.Pods)
	}
	if v.Rooms != nil {
		p.rooms(v.Rooms)
	}
}

func (p placesDrawer) row(group string, s SubGroupPlaces) []string {
	name := s.Name
	if name == "" {
		name = "(" + group + ")"
	}
	state := s.State
	if state == stateNoRoom && s.SubGroups == 0 {
		state = fmt.Sprintf("room for %d", s.Room)
	}
	if s.Held > 0 {
		state += fmt.Sprintf(", %d held", s.Held)
	}

	return []string{
		strings.Repeat("  ", s.Depth) + name, s.minimum(), strconv.Itoa(s.Pods), strconv.Itoa(s.Bound + s.New), state, p.nodes(s.Nodes),
	}
}

// minimum is what a subgroup needs: pods, or subgroups, or both.
func (s SubGroupPlaces) minimum() string {
	if s.SubGroups == 0 {
		return strconv.Itoa(s.Min)
	}
	text := fmt.Sprintf("%d of %s", s.MinSubGroup, render.Count(s.SubGroups, "subgroup"))
	if s.MinSubGroup == s.SubGroups {
		text = "all subgroups"
	}
	if s.Min > 0 {
		text += ", " + render.Count(s.Min, "pod")
	}

	return text
}

func (p placesDrawer) nodes(all []PodsOn) string {
	var texts []string
	for i, n := range all {
		if i == shownNodes && !p.wide && len(all) > shownNodes+1 {
			texts = append(texts, fmt.Sprintf("%d more", len(all)-i))

			break
		}
		texts = append(texts, fmt.Sprintf("%s (%d)", n.Node, n.Pods))
	}

	return strings.Join(texts, ", ")
}

func (p placesDrawer) pods(all []PodPlace) {
	rows := [][]string{{"POD", "SUBGROUP", "NODE"}}
	for _, pod := range all {
		rows = append(rows, []string{pod.Name, pod.SubGroup, pod.Node})
	}
	_, _ = fmt.Fprintln(p.w)
	render.WriteTable(p.w, rows)
}

func (p placesDrawer) rooms(r *RoomsView) {
	rows := [][]string{{"NODE", "FITS", "SHORT OF"}}
	for i, n := range r.Nodes {
		if i == shownRooms && !p.wide {
			break
		}
		rows = append(rows, []string{n.Node, strconv.Itoa(n.Fits), n.text()})
	}
	_, _ = fmt.Fprintf(p.w, "\nNodes as pod %s sees them, before others of the group:\n", render.Clean(r.Pod))
	render.WriteTable(p.w, rows)
	if more := len(r.Nodes) - shownRooms; more > 0 && !p.wide {
		_, _ = fmt.Fprintf(p.w, "and %s; -o wide shows them\n", render.Count(more, "other node"))
	}
}
