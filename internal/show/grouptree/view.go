package grouptree

import (
	"strconv"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// GroupsView is what arbor groups prints for programs.
type GroupsView struct {
	Groups []GroupView `json:"groups"`
}

// Kind is the kind of the document that a [GroupsView] is.
const Kind = "PodGroupTrees"

// Refs are the groups of the view.
func (v GroupsView) Refs() []identity.Ref {
	out := make([]identity.Ref, len(v.Groups))
	for i, g := range v.Groups {
		out[i] = identity.Ref{APIVersion: v2alpha2.GroupVersion.String(), Kind: v2alpha2.PodGroupKind, Namespace: g.Namespace, Name: g.Name}
	}

	return out
}

// Problems is the number of problems of all groups.
func (v GroupsView) Problems() int {
	n := 0
	for _, g := range v.Groups {
		n += len(g.Problems)
	}

	return n
}

// Rows are a table with one row for each group, below headers: with the namespace if groups of all of
// them are shown, and with what is wrong if it is wide.
func (v GroupsView) Rows(namespaces, wide bool) [][]string {
	rows := [][]string{{"NAMESPACE", "NAME", "QUEUE", "MINMEMBER", "MINSUBGROUP", "SUBGROUPS", "PROBLEMS", "WARNINGS", "MESSAGE"}}
	for _, g := range v.Groups {
		rows = append(rows, []string{
			g.Namespace, g.Name, g.Queue, minimum(g.MinMember), minimum(g.MinSubGroup), strconv.Itoa(len(g.SubGroups)), strconv.Itoa(len(g.Problems)),
			strconv.Itoa(len(g.Warnings)), g.message(),
		})
	}
	const narrow = 2 // only a wide table has the last columns
	for i := range rows {
		if !wide {
			rows[i] = rows[i][:len(rows[i])-narrow]
		}
		if !namespaces {
			rows[i] = rows[i][1:]
		}
	}

	return rows
}

func minimum(n *int32) string {
	if n == nil {
		return ""
	}

	return strconv.Itoa(int(*n))
}

// message is the first thing that is wrong.
func (g GroupView) message() string {
	switch {
	case len(g.Problems) > 0:
		return show.WithFix(g.Problems[0].Message, g.Problems[0].Fix)
	case len(g.Warnings) > 0:
		return g.Warnings[0].Message
	default:
		return ""
	}
}

// A GroupView is one PodGroup. Its subgroups are a flat list in the order of
// the spec, because trees may be deeper than JSON readers go.
type GroupView struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Queue       string `json:"queue,omitempty"`
	MinMember   *int32 `json:"minMember,omitempty"`
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`
	// Children are the subgroups directly under the group.
	Children  []string       `json:"children"`
	SubGroups []SubGroupView `json:"subGroups"`
	// Problems and Warnings of the whole group, in the order of admission.
	Problems []verdict.Problem `json:"problems"`
	Warnings []verdict.Warning `json:"warnings"`
}

// A SubGroupView is one subgroup.
type SubGroupView struct {
	Name        string  `json:"name"`
	Parent      *string `json:"parent,omitempty"`
	MinMember   *int32  `json:"minMember,omitempty"`
	MinSubGroup *int32  `json:"minSubGroup,omitempty"`
	// Depth is 1 directly under the group, and 0 for subgroups that cannot be
	// reached from it.
	Depth    int               `json:"depth"`
	Children []string          `json:"children"`
	Problems []verdict.Problem `json:"problems"`
}

// ViewOf returns the view of PodGroups.
func ViewOf(groups []*v2alpha2.PodGroup) GroupsView {
	out := GroupsView{Groups: make([]GroupView, len(groups))}

	for i, pg := range groups {
		v := podgroup.Check(pg)
		f := New(pg, v)
		out.Groups[i] = GroupView{
			Namespace: pg.Namespace, Name: pg.Name, Queue: pg.Spec.Queue,
			MinMember: pg.Spec.MinMember, MinSubGroup: pg.Spec.MinSubGroup,
			Children: f.names(f.Tops), SubGroups: f.view(v),
			Problems: append([]verdict.Problem{}, v.Problems...),
			Warnings: append([]verdict.Warning{}, v.Warnings...),
		}
	}

	return out
}

func (f *Tree) view(v verdict.Verdict) []SubGroupView {
	out := make([]SubGroupView, len(f.SubGroups))

	for i, n := range f.SubGroups {
		out[i] = SubGroupView{
			Name: n.Name, Parent: n.Parent, MinMember: n.MinMember, MinSubGroup: n.MinSubGroup,
			Depth: n.Depth, Children: f.names(n.Children), Problems: []verdict.Problem{},
		}
	}

	for _, p := range v.Problems {
		if i, ok := subGroupIndex(p.Field); ok && i < len(out) {
			out[i].Problems = append(out[i].Problems, p)
		}
	}

	return out
}

func (f *Tree) names(nodes []int) []string {
	out := make([]string, len(nodes))
	for at, i := range nodes {
		out[at] = f.SubGroups[i].Name
	}

	return out
}
