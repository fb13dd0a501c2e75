package owners

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/ownership"
)

// MovesView is what arbor fields plan prints for programs.
type MovesView struct {
	Plans []MoveView `json:"plans"`
}

// Changed reports whether any plan changes something.
func (v MovesView) Changed() bool {
	return slices.ContainsFunc(v.Plans, func(m MoveView) bool { return m.Changed })
}

// A MoveView is the plan for one object.
type MoveView struct {
	Object identity.Ref `json:"object"`
	Scope  fields.Scope `json:"scope"`
	// Scopes are all of them, if the annotation has several; Scope is the first then.
	Scopes []fields.Scope `json:"scopes,omitempty"`
	To     string         `json:"to"`
	Mode   fields.Mode    `json:"mode"`
	// ScopeExists says whether the object has one of these parts.
	ScopeExists bool `json:"scopeExists"`
	// Changed says whether there is anything to write.
	Changed  bool          `json:"changed"`
	Moves    []MovedView   `json:"moves"`
	Notes    []MoveNote    `json:"notes"`
	Removals []RemovalView `json:"removals"`
}

// A MovedView is what moves from one entry to another. Nobody is left out.
type MovedView struct {
	From   *fields.Identity `json:"from,omitempty"`
	To     *fields.Identity `json:"to,omitempty"`
	Fields []string         `json:"fields"`
}

// A MoveNote is something that a person should know.
type MoveNote struct {
	Reason  fields.Reason `json:"reason"`
	Message string        `json:"message"`
	Fields  []string      `json:"fields,omitempty"`
}

// A RemovalView is what the next apply does to something that it no longer
// names. A fate that is left out is that of what the manager does not have.
type RemovalView struct {
	Path  string    `json:"path"`
	Now   *FateView `json:"now,omitempty"`
	After *FateView `json:"after,omitempty"`
}

// A FateView is what becomes of something.
type FateView struct {
	Fate fields.Fate `json:"fate"`
	// Goes and Stays are what becomes of the parts, relative to the whole.
	Goes  []string `json:"goes,omitempty"`
	Stays []string `json:"stays,omitempty"`
	// BecauseOf are those who keep it.
	BecauseOf []fields.Identity `json:"becauseOf,omitempty"`
}

// MoveViewOf returns the view of a plan.
func MoveViewOf(thing *Object, request fields.Request, scopes []fields.Scope, plan *fields.Plan) MoveView {
	v := MoveView{
		Object: thing.Ref, To: request.To, Mode: request.Mode, Changed: plan.Changed(),
		ScopeExists: slices.ContainsFunc(scopes, func(s fields.Scope) bool { return thing.Tree.Select(s).Exists() }),
		Moves:       MovedViews(plan.Moves), Notes: MoveNotes(plan.Notes), Removals: []RemovalView{},
	}

	if len(scopes) > 0 {
		v.Scope = scopes[0]
	}

	if len(scopes) > 1 {
		v.Scopes = scopes
	}

	// What is removed after the move and not before comes last.
	now := removals(thing.Tree, request, scopes)
	after := removals(fields.New(thing.live, plan.Entries), request, scopes)
	fatesNow, fatesAfter := fatesOf(now), fatesOf(after)
	seen := map[string]bool{}

	for _, r := range slices.Concat(now, after) {
		path := fields.FormatPath(r.Path)
		if !seen[path] {
			v.Removals = append(v.Removals, RemovalView{Path: path, Now: fatesNow[path], After: fatesAfter[path]})
		}

		seen[path] = true
	}

	return v
}

// removals is what becomes of what the manager's next apply no longer names. If
// nothing is known of it, that are the scopes: then it names the rest of what it
// has.
func removals(tree *fields.Tree, request fields.Request, scopes []fields.Scope) []fields.Removal {
	if request.Next != nil {
		return tree.Removals(request.To, request.Previous, request.Next)
	}

	return tree.Removals(request.To, request.Previous, Outside(tree, scopes, request.To))
}

// Outside is what a manager applies but for scopes, and for what stands for a
// scope because it can only be held as a whole.
func Outside(tree *fields.Tree, scopes []fields.Scope, manager string) *fieldpath.Set {
	rest, lifted := &fieldpath.Set{}, &fieldpath.Set{}

	for _, s := range scopes {
		for _, n := range tree.Select(s).Lifted {
			lifted.Insert(n.Path())
		}
	}

	for _, e := range tree.Entries() {
		if e.Identity() == (fields.Identity{Manager: manager, Operation: fields.Apply}) && e.Fields != nil {
			e.Fields.Iterate(func(p fieldpath.Path) {
				if !lifted.Has(p) && !slices.ContainsFunc(scopes, func(s fields.Scope) bool { return s.Matches(p) }) {
					rest.Insert(p.Copy())
				}
			})
		}
	}

	return rest
}

// fatesOf is by path.
func fatesOf(all []fields.Removal) map[string]*FateView {
	out := make(map[string]*FateView, len(all))

	for _, r := range all {
		v := &FateView{Fate: r.Fate, Goes: Below(r.Path, r.Removed), Stays: Below(r.Path, r.Stays)}
		for _, h := range r.Because {
			v.BecauseOf = append(v.BecauseOf, h.Identity)
		}

		out[fields.FormatPath(r.Path)] = v
	}

	return out
}

// Below are paths as they are seen from a whole. The whole itself is ".", as
// entries write it.
func Below(whole fieldpath.Path, set *fieldpath.Set) []string {
	paths := fields.FormatPaths(set)
	for i, p := range paths {
		paths[i] = strings.TrimPrefix(strings.TrimPrefix(p, fields.FormatPath(whole)), ".")
		if paths[i] == "" {
			paths[i] = "."
		}
	}

	return paths
}

// MovedViews returns the views of moves.
func MovedViews(all []fields.Move) []MovedView {
	out := make([]MovedView, len(all))

	for i, m := range all {
		out[i] = MovedView{From: somebody(m.From), To: somebody(m.To), Fields: fields.FormatPaths(m.Fields)}
	}

	return out
}

// somebody is nil for nobody.
func somebody(id fields.Identity) *fields.Identity {
	if id == (fields.Identity{}) {
		return nil
	}

	return &id
}

// MoveNotes returns the views of notes.
func MoveNotes(all []fields.Note) []MoveNote {
	out := make([]MoveNote, len(all))

	for i, n := range all {
		out[i] = MoveNote{Reason: n.Reason, Message: n.String(), Fields: fields.FormatPaths(n.Fields)}
	}

	return out
}

// PlanScopes plans the move of each scope, one after the other, as one plan.
func PlanScopes(thing *Object, request fields.Request, scopes []fields.Scope) (*fields.Plan, error) {
	var all *fields.Plan

	entries := thing.Entries

	for _, s := range scopes {
		request.Scope = s

		p, err := fields.NewPlan(thing.live, entries, request)
		if err != nil {
			return nil, err
		}

		if all == nil {
			all = p
		} else {
			all.Entries, all.Moves, all.Notes = p.Entries, append(all.Moves, p.Moves...), append(all.Notes, p.Notes...)
		}

		entries = p.Entries
	}

	return all, nil
}

// DefaultScopes are what is moved of an object if nobody says otherwise. What is
// to be applied can say so before the object does.
func DefaultScopes(thing *Object, wish map[string]any) ([]fields.Scope, error) {
	from := &unstructured.Unstructured{Object: thing.live}
	if w := (&unstructured.Unstructured{Object: wish}); w.GetAnnotations()[ownership.ScopeAnnotation] != "" {
		from = w
	}

	all, err := ownership.DefaultScopes(from)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no part of a %s is moved by default: name one with --scope", thing.Kind)
	}

	return all, err
}

// Text is the fate of something, in words; otherwise is said of what has none.
func (f *FateView) Text(otherwise string) string {
	if f == nil {
		return otherwise
	}

	var text string

	switch f.Fate {
	case fields.Partial:
		text = "partial, without " + strings.Join(f.Goes, ", ")
	case fields.Kept:
		text = "stays"
	default:
		text = strings.ToLower(string(f.Fate))
	}

	var names []string
	for _, id := range f.BecauseOf {
		names = append(names, id.String())
	}

	if len(names) > 0 {
		text += ", because of " + strings.Join(names, " and ")
	}

	return text
}
