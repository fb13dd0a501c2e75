package cli

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
)

// A deliveryNode is one line of the drawing, and what is said under it.
type deliveryNode struct {
	mark, colour string
	name, detail string
	notes        []NoteView
}

// A deliveryDrawer draws compositions with what came of them.
type deliveryDrawer struct {
	climber

	style style
	now   time.Time
	// everything also draws what is well.
	everything bool

	nodes []deliveryNode
	up    []int
	roots map[types.NamespacedName]int
}

func drawDeliveries(out io.Writer, d *deliveries, v DeliveryView, everything bool, now time.Time, s style) error {
	r := &deliveryDrawer{climber: climber{glyphs: s.glyphs()}, style: s, now: now, everything: everything, roots: map[types.NamespacedName]int{}}

	for _, c := range v.Compositions {
		parent := onTop
		if c.Symphony != "" {
			parent = r.symphony(d, types.NamespacedName{Namespace: c.Namespace, Name: c.Symphony})
		}

		r.composition(parent, c)
	}

	for _, key := range sortedKeys(d.symphonies) {
		r.symphony(d, key)
	}

	r.shape = grow(r.up)

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

	n := deliveryNode{name: "Symphony " + key.String(), detail: d.symphonyText(key.Namespace, key.Name)}
	if d.symphonies[key] == nil {
		n.mark, n.colour = r.bad, red
	}

	r.roots[key] = r.add(onTop, n)

	return r.roots[key]
}

func (r *deliveryDrawer) composition(parent int, c CompositionView) {
	n := deliveryNode{name: c.Namespace + "/" + c.Name, detail: c.State, notes: c.Notes}
	n.mark, n.colour = r.compositionMark(c)

	if c.isNotHealthy() {
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

	for _, s := range []*SynthesisView{c.InFlight, c.Current} {
		r.resources(at, s)
	}
}

// correction is the line of the last correction of drift.
func (r *deliveryDrawer) correction(parent int, c *enov1.Correction) {
	if c == nil {
		return
	}

	object := ObjectRef{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
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
func (r *deliveryDrawer) brief(s *SynthesisView) string {
	return strings.TrimSpace(shortUUID(s.UUID)+" "+r.ago(s.Begun)) + ", " + count(len(s.Resources), "resource")
}

func (r *deliveryDrawer) synthesis(parent int, role string, s *SynthesisView) {
	if s == nil {
		return
	}

	n := deliveryNode{name: role + " " + shortUUID(s.UUID), detail: s.State.text()}

	switch s.State {
	case SynthesisFailed:
		n.mark, n.colour = r.bad, red
	case SynthesisCanceled:
		n.mark, n.colour = r.warn, yellow
	default:
	}

	if at := r.ago(s.Begun); at != "" {
		n.detail += ", begun " + at
	}

	if s.RolledBackTo != "" {
		n.detail += ", manifests of " + shortUUID(s.RolledBackTo)
	}

	r.resources(r.add(parent, n), s)
}

// resources are the lines of a synthesis: all, or those that are not well.
func (r *deliveryDrawer) resources(parent int, s *SynthesisView) {
	if s == nil {
		return
	}

	for _, name := range s.MissingSlices {
		r.add(parent, deliveryNode{mark: r.bad, colour: red, name: "ResourceSlice " + name, detail: "is not there: what was in it is not known"})
	}

	for _, v := range s.Resources {
		if r.everything || !v.State.well() {
			r.add(parent, r.resource(v))
		}
	}
}

func (r *deliveryDrawer) resource(v ResourceView) deliveryNode {
	n := deliveryNode{name: v.Object.String(), detail: v.State.text()}

	switch v.State {
	case ResourceReady, ResourceDeleted:
		n.mark, n.colour = r.good, green
	case ResourceError:
		n.mark, n.colour, n.detail = r.bad, red, "error"
		n.notes = []NoteView{{SeverityError, v.Error}}
	case ResourceNotReady:
		n.mark, n.colour = r.warn, yellow
	case ResourceDeleting:
		n.mark, n.colour = r.going, yellow
	default:
		n.mark, n.colour = r.waitMark(), dim
	}

	if v.WaitsFor != nil {
		n.detail += " for " + v.WaitsFor.String()
	}

	return n
}

// waitMark is one column wide, as the other marks are.
func (r *deliveryDrawer) waitMark() string {
	if r.style.unicode {
		return r.more
	}

	return "."
}

func (r *deliveryDrawer) compositionMark(c CompositionView) (mark, colour string) {
	switch {
	case c.isStuck() || c.Health == enov1.ReasonFailed:
		return r.bad, red
	case c.Suspended != "" || c.isNotHealthy():
		return r.warn, yellow
	case c.State == enov1.StatusReady:
		return r.good, green
	case c.State == enov1.StatusNotReady:
		return r.warn, yellow
	case c.State == enov1.StatusDeleting:
		return r.going, yellow
	default:
		return r.waitMark(), dim
	}
}

// isNotHealthy reports whether objects of a composition do not work, or not yet.
func (c CompositionView) isNotHealthy() bool {
	return slices.Contains([]string{enov1.ReasonProgressing, enov1.ReasonDegraded, enov1.ReasonFailed}, c.Health)
}

// isStuck reports whether something of a composition failed.
func (c CompositionView) isStuck() bool {
	stuck := slices.ContainsFunc(c.Notes, func(n NoteView) bool { return n.Severity == SeverityError })

	for _, s := range []*SynthesisView{c.InFlight, c.Current} {
		stuck = stuck || s != nil && (s.State == SynthesisFailed || len(s.MissingSlices) > 0 ||
			slices.ContainsFunc(s.Resources, func(v ResourceView) bool { return v.State == ResourceError }))
	}

	return stuck
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
	for i, top := range r.tops {
		var c columns

		r.member(top, "", "", 1, func(p perch) { c.fit(r.width(p), 0) })

		if i > 0 && (r.limbs[top].below > 0 || r.limbs[r.tops[i-1]].below > 0) {
			_, _ = fmt.Fprintln(w)
		}

		r.member(top, "", "", 1, func(p perch) { r.line(w, p, c) })
	}

	return w.Flush()
}

// title is the mark and the name.
func (n deliveryNode) title() string {
	if n.mark == "" {
		return clean(n.name)
	}

	return n.mark + " " + clean(n.name)
}

func (r *deliveryDrawer) width(p perch) int {
	return utf8.RuneCountInString(p.lead + r.nodes[p.at].title())
}

func (r *deliveryDrawer) line(w io.Writer, p perch, c columns) {
	n := r.nodes[p.at]
	text := p.lead + clean(n.name)

	if n.mark != "" {
		text = p.lead + r.style.paint(n.colour, n.mark) + " " + clean(n.name)
	}

	if n.detail != "" {
		detail := clean(n.detail)
		if n.colour == red || n.colour == yellow {
			detail = r.style.paint(n.colour, detail)
		}

		text += strings.Repeat(" ", max(0, c.name-r.width(p))) + "  " + detail
	}

	_, _ = fmt.Fprintln(w, text)

	for _, note := range n.notes {
		_, _ = fmt.Fprintln(w, p.below+r.style.severity(note.Severity, clean(note.Message)))
	}
}

// text says how many compositions and resources are in which state.
func (s DeliverySummary) text() string {
	return count(s.Compositions, "composition") + inStates(s.States, func(state string) string { return state }) + "; " +
		count(s.Resources, "resource") + inStates(s.ResourceStates, func(state ResourceStateWord) string {
		switch state {
		case ResourceReady:
			return "ready"
		case ResourceNotReady:
			return "not ready"
		default:
			return state.text()
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
