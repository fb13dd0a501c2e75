package delivery

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

// A deliveryNode is one line of the drawing, and what is said under it.
type deliveryNode struct {
	mark, colour string
	name, detail string
	notes        []show.NoteView
}

// A deliveryDrawer draws compositions with what came of them.
type deliveryDrawer struct {
	render.Walker

	style render.Style
	now   time.Time
	// everything also draws what is well.
	everything bool

	nodes []deliveryNode
	up    []int
	roots map[types.NamespacedName]int
}

func drawDeliveries(out io.Writer, d *deliveries, v compositions.DeliveryView, everything bool, now time.Time, s render.Style, depth int) error {
	r := &deliveryDrawer{Walker: render.Walker{Glyphs: s.Glyphs(), Depth: depth}, style: s, now: now, everything: everything, roots: map[types.NamespacedName]int{}}

	for _, c := range v.Compositions {
		parent := show.Top
		if c.Symphony != "" {
			parent = r.symphony(d, types.NamespacedName{Namespace: c.Namespace, Name: c.Symphony})
		}

		r.composition(parent, c)
	}

	for _, key := range sortedKeys(d.Symphonies) {
		r.symphony(d, key)
	}

	r.Tree = show.NewTree(r.up)

	return r.write(out)
}

func sortedKeys[T any](all map[types.NamespacedName]T) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}

	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })

	return keys
}

func (r *deliveryDrawer) add(parent int, n deliveryNode) int {
	r.nodes, r.up = append(r.nodes, n), append(r.up, parent)

	return len(r.nodes) - 1
}

// symphony is the line of one, which is drawn once.
func (r *deliveryDrawer) symphony(d *deliveries, key types.NamespacedName) int {
	if at, ok := r.roots[key]; ok {
		return at
	}

	n := deliveryNode{name: "Symphony " + key.String(), detail: d.SymphonyText(key.Namespace, key.Name)}
	if d.Symphonies[key] == nil {
		n.mark, n.colour = r.Bad, render.Red
	}

	r.roots[key] = r.add(show.Top, n)

	return r.roots[key]
}

func (r *deliveryDrawer) composition(parent int, c compositions.CompositionView) {
	n := deliveryNode{name: c.Namespace + "/" + c.Name, detail: c.State, notes: c.Notes}
	n.mark, n.colour = r.compositionMark(c)

	if c.IsNotHealthy() {
		n.detail += ", " + strings.ToLower(c.Health)
	}

	if c.Synthesizer != "" {
		n.detail += ", synthesizer " + c.Synthesizer
	}

	if r.everything {
		at := r.add(parent, n)
		r.synthesis(at, "in flight", c.InFlight)
		r.synthesis(at, "current", c.Current)
		r.synthesis(at, "previous", c.Previous)
		r.correction(at, c.LastCorrection)

		return
	}

	if c.Current != nil {
		n.detail += ", " + r.brief(c.Current)
	}

	at := r.add(parent, n)

	for _, s := range []*compositions.SynthesisView{c.InFlight, c.Current} {
		r.resources(at, s)
	}
}

// correction is the line of the last correction of drift.
func (r *deliveryDrawer) correction(parent int, c *enov1.Correction) {
	if c == nil {
		return
	}

	object := identity.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
	how := "changed by " + withoutEmptyManager(c.Manager)

	if c.Deleted {
		how = "deleted"
	}

	r.add(parent, deliveryNode{name: "last drift correction", detail: fmt.Sprintf("%s, %s, corrected %s", object, how, r.ago(&c.Time))})
}

func withoutEmptyManager(manager string) string {
	if manager == "" {
		return "an unknown client"
	}

	return manager
}

// brief is a synthesis in a few words, for the line of its composition.
func (r *deliveryDrawer) brief(s *compositions.SynthesisView) string {
	return strings.TrimSpace(compositions.ShortUUID(s.UUID)+" "+r.ago(s.Begun)) + ", " + show.Count(len(s.Resources), "resource")
}

func (r *deliveryDrawer) synthesis(parent int, role string, s *compositions.SynthesisView) {
	if s == nil {
		return
	}

	n := deliveryNode{name: role + " " + compositions.ShortUUID(s.UUID), detail: s.State.Text()}

	switch s.State {
	case compositions.SynthesisFailed:
		n.mark, n.colour = r.Bad, render.Red
	case compositions.SynthesisCanceled:
		n.mark, n.colour = r.Warn, render.Yellow
	default:
	}

	if at := r.ago(s.Begun); at != "" {
		n.detail += ", begun " + at
	}

	if s.RolledBackTo != "" {
		n.detail += ", manifests of " + compositions.ShortUUID(s.RolledBackTo)
	}

	r.resources(r.add(parent, n), s)
}

// resources are the lines of a synthesis: all, or those that are not well.
func (r *deliveryDrawer) resources(parent int, s *compositions.SynthesisView) {
	if s == nil {
		return
	}

	for _, name := range s.MissingSlices {
		r.add(parent, deliveryNode{mark: r.Bad, colour: render.Red, name: "ResourceSlice " + name, detail: "is not there: what was in it is not known"})
	}

	for _, v := range s.Resources {
		if r.everything || !v.State.Well() {
			r.add(parent, r.resource(v))
		}
	}
}

func (r *deliveryDrawer) resource(v compositions.ResourceView) deliveryNode {
	n := deliveryNode{name: v.Object.String(), detail: v.State.Text()}

	switch v.State {
	case compositions.ResourceReady, compositions.ResourceDeleted:
		n.mark, n.colour = r.Good, render.Green
	case compositions.ResourceError:
		n.mark, n.colour, n.detail = r.Bad, render.Red, "error"
		n.notes = []show.NoteView{{Severity: show.SeverityError, Message: v.Error}}
	case compositions.ResourceNotReady:
		n.mark, n.colour = r.Warn, render.Yellow
	case compositions.ResourceDeleting:
		n.mark, n.colour = r.Going, render.Yellow
	default:
		n.mark, n.colour = r.waitMark(), render.Dim
	}

	if v.WaitsFor != nil {
		n.detail += " for " + v.WaitsFor.String()
	}

	return n
}

// waitMark is one column wide, as the other marks are.
func (r *deliveryDrawer) waitMark() string {
	if r.style.Unicode {
		return r.More
	}

	return "."
}

func (r *deliveryDrawer) compositionMark(c compositions.CompositionView) (mark, colour string) {
	switch {
	case c.IsStuck() || c.Health == enov1.ReasonFailed:
		return r.Bad, render.Red
	case c.Suspended != "" || c.IsNotHealthy():
		return r.Warn, render.Yellow
	case c.State == enov1.StatusReady:
		return r.Good, render.Green
	case c.State == enov1.StatusNotReady:
		return r.Warn, render.Yellow
	case c.State == enov1.StatusDeleting:
		return r.Going, render.Yellow
	default:
		return r.waitMark(), render.Dim
	}
}

func (r *deliveryDrawer) ago(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}

	return duration.HumanDuration(r.now.Sub(t.Time)) + " ago"
}

func (r *deliveryDrawer) write(out io.Writer) error {
	w := bufio.NewWriter(out)

	// Trees are aligned each on its own: one long name does not push out all.
	for i, top := range r.Tops {
		var c render.Columns

		r.Member(top, "", "", 1, func(p render.Line) { c.Fit(r.width(p), 0) })

		if i > 0 && (r.Nodes[top].Below > 0 || r.Nodes[r.Tops[i-1]].Below > 0) {
			_, _ = fmt.Fprintln(w)
		}

		r.Member(top, "", "", 1, func(p render.Line) { r.line(w, p, c) })
	}

	return w.Flush()
}

// title is the mark and the name.
func (n deliveryNode) title() string {
	if n.mark == "" {
		return render.Clean(n.name)
	}

	return n.mark + " " + render.Clean(n.name)
}

func (r *deliveryDrawer) width(p render.Line) int {
	if p.More > 0 {
		return 0
	}

	return utf8.RuneCountInString(p.Lead + r.nodes[p.At].title())
}

func (r *deliveryDrawer) line(w io.Writer, p render.Line, c render.Columns) {
	if p.More > 0 {
		_, _ = fmt.Fprintln(w, p.Lead+r.MoreBelow(p))

		return
	}

	n := r.nodes[p.At]
	text := p.Lead + render.Clean(n.name)

	if n.mark != "" {
		text = p.Lead + r.style.Paint(n.colour, n.mark) + " " + render.Clean(n.name)
	}

	if n.detail != "" {
		detail := render.Clean(n.detail)
		if n.colour == render.Red || n.colour == render.Yellow {
			detail = r.style.Paint(n.colour, detail)
		}

		text += strings.Repeat(" ", max(0, c.Name-r.width(p))) + "  " + detail
	}

	_, _ = fmt.Fprintln(w, text)

	for _, note := range n.notes {
		_, _ = fmt.Fprintln(w, p.Below+r.style.Severity(note.Severity, render.Clean(command.Typed(note.Message))))
	}
}

// compositionRows is a flat table of compositions.
func compositionRows(v compositions.DeliveryView, now time.Time) [][]string {
	rows := [][]string{{render.ColumnNamespace, "NAME", "STATE", "READY", "SYNTHESIZER", "SYMPHONY", "SYNTHESIZED"}}

	for _, c := range v.Compositions {
		ready, begun := "", ""
		if s := c.Current; s != nil {
			ready, begun = fmt.Sprintf("%d/%d", s.CountReady(), len(s.Resources)), render.Age(s.Begun, now)
		}

		rows = append(rows, []string{c.Namespace, c.Name, c.State, ready, c.Synthesizer, c.Symphony, begun})
	}

	return rows
}

// summaryText says how many compositions and resources are in which state.
func summaryText(s compositions.DeliverySummary) string {
	return show.Count(s.Compositions, "composition") + inStates(s.States, func(state string) string { return state }) + "; " +
		show.Count(s.Resources, "resource") + inStates(s.ResourceStates, func(state compositions.ResourceStateWord) string {
		switch state {
		case compositions.ResourceReady:
			return "ready"
		case compositions.ResourceNotReady:
			return "not ready"
		default:
			return state.Text()
		}
	})
}

// inStates lists how many are in each state; the first are the most.
func inStates[S ~string](all map[S]int, text func(S) string) string {
	states := make([]S, 0, len(all))
	for s := range all {
		states = append(states, s)
	}

	slices.SortFunc(states, func(a, b S) int {
		if all[a] != all[b] {
			return all[b] - all[a]
		}

		return strings.Compare(string(a), string(b))
	})

	parts := make([]string, len(states))
	for i, s := range states {
		parts[i] = fmt.Sprintf("%d %s", all[s], text(s))
	}

	if len(parts) == 0 {
		return ""
	}

	return ": " + strings.Join(parts, ", ")
}
