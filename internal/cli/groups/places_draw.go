package groups

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/placement"
)

// How much a table shows without -o wide.
const (
	shownNodes = 3
	shownRooms = 10
)

// A placesDrawer writes views for people.
type placesDrawer struct {
	w      io.Writer
	s      render.Style
	output *output.Flags
	now    metav1.Time
}

// wide reports whether every pod and every node is shown.
func (p placesDrawer) wide() bool { return p.output.Is(output.Wide) }

// fit writes the answer to a question about a group.
func (p placesDrawer) fit(v placement.PlacesView) {
	p.headline(v, map[bool]string{true: "fits", false: "does not fit"}[v.Fits])
	p.tables(v)
}

// explain writes how a group is, what its status says, and what would be now.
func (p placesDrawer) explain(v placement.PlacesView) {
	words := "waits"
	switch {
	case v.Scheduled:
		words = "has its minimum"
	case v.IsBinding():
		words = "is being bound"
	case v.Fits:
		words = "would fit now"
	}
	p.headline(v, words)
	p.status(v)
	p.tables(v)
}

func (p placesDrawer) headline(v placement.PlacesView, words string) {
	colour := render.Red
	if v.Fits {
		colour = render.Green
	}
	_, _ = fmt.Fprintf(p.w, "PodGroup %s %s: %s\n", render.Clean(v.Namespace+"/"+v.Name), p.s.Paint(colour, words), render.Clean(v.Message))
}

// status is the scheduler's own word.
func (p placesDrawer) status(v placement.PlacesView) {
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
	if c != nil && !v.Scheduled && v.Fits && !v.IsBinding() {
		_, _ = fmt.Fprintln(p.w, "  the scheduler will see this when it tries again; room that it holds for groups with reason Binding counts as free here")
	}
}

func (p placesDrawer) tables(v placement.PlacesView) {
	if len(v.SubGroups) > 0 {
		rows := [][]string{{"SUBGROUP", "MIN", "PODS", "PLACED", "STATE", "NODES"}}
		for _, s := range v.SubGroups {
			rows = append(rows, p.row(v.Name, s))
		}
		_, _ = fmt.Fprintln(p.w)
		p.output.Table(p.w, rows)
	}
	if p.wide() && len(v.Pods) > 0 {
		p.pods(v.Pods)
	}
	if v.Rooms != nil {
		p.rooms(v.Rooms)
	}
}

func (p placesDrawer) row(group string, s placement.SubGroupPlaces) []string {
	name := s.Name
	if name == "" {
		name = "(" + group + ")"
	}
	state := s.State
	if state == placement.StateNoRoom && s.SubGroups == 0 {
		state = fmt.Sprintf("room for %d", s.Room)
	}
	if s.Held > 0 {
		state += fmt.Sprintf(", %d held", s.Held)
	}

	return []string{
		strings.Repeat("  ", s.Depth) + name, s.Minimum(), strconv.Itoa(s.Pods), strconv.Itoa(s.Bound + s.New), state, p.nodes(s.Nodes),
	}
}

func (p placesDrawer) nodes(all []placement.PodsOn) string {
	var texts []string
	for i, n := range all {
		if i == shownNodes && !p.wide() && len(all) > shownNodes+1 {
			texts = append(texts, fmt.Sprintf("%d more", len(all)-i))

			break
		}
		texts = append(texts, fmt.Sprintf("%s (%d)", n.Node, n.Pods))
	}

	return strings.Join(texts, ", ")
}

func (p placesDrawer) pods(all []placement.PodPlace) {
	rows := [][]string{{"POD", "SUBGROUP", "NODE"}}
	for _, pod := range all {
		rows = append(rows, []string{pod.Name, pod.SubGroup, pod.Node})
	}
	_, _ = fmt.Fprintln(p.w)
	p.output.Table(p.w, rows)
}

func (p placesDrawer) rooms(r *placement.RoomsView) {
	rows := [][]string{{"NODE", "FITS", "SHORT OF"}}
	for i, n := range r.Nodes {
		if i == shownRooms && !p.wide() {
			break
		}
		rows = append(rows, []string{n.Node, strconv.Itoa(n.Fits), n.Text()})
	}
	_, _ = fmt.Fprintf(p.w, "\nNodes as pod %s sees them, before others of the group:\n", render.Clean(r.Pod))
	p.output.Table(p.w, rows)
	if more := len(r.Nodes) - shownRooms; more > 0 && !p.wide() {
		_, _ = fmt.Fprintf(p.w, "and %s; -o wide shows them\n", show.Count(more, "other node"))
	}
}

// since tells how long a condition has been as it is.
func since(c *v2alpha2.PodGroupCondition, now metav1.Time) string {
	if c.LastTransitionTime.IsZero() {
		return ""
	}

	return " for " + render.Age(&c.LastTransitionTime, now.Time)
}
