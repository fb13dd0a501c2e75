package podtree_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/podtree"
)

// twinCheck is a simple and slow implementation of Check: it reads the whole list again for every
// rule.
func twinCheck(groups list) []podtree.Violation {
	found := twinEntries(groups)
	report := func(v podtree.Violation) { found = append(found, v) }
	for i, g := range groups {
		if g.Parent != nil && twinParent(groups, i) < 0 {
			report(podtree.Violation{Kind: podtree.ParentNotFound, Index: i, Name: g.Name, Parent: *g.Parent})
		}
	}
	for i, g := range groups {
		if members := twinCycle(groups, i); members != nil {
			v := podtree.Violation{Kind: podtree.Cycle, Index: i, Name: g.Name}
			for _, m := range append(members, i) {
				v.Path = append(v.Path, groups[m].Name)
			}
			report(v)
		}
	}

	return found
}

func twinEntries(groups list) []podtree.Violation {
	var found []podtree.Violation
	report := func(v podtree.Violation) { found = append(found, v) }

	for i, g := range groups {
		if g.Name == "" {
			report(podtree.Violation{Kind: podtree.NameEmpty, Index: i})
		}
		if strings.ToLower(g.Name) != g.Name {
			report(podtree.Violation{Kind: podtree.NameNotLowercase, Index: i, Name: g.Name})
		}
		if g.Parent != nil && strings.ToLower(*g.Parent) != *g.Parent {
			report(podtree.Violation{Kind: podtree.ParentNotLowercase, Index: i, Name: g.Name, Parent: *g.Parent})
		}
		for first, other := range groups[:i] {
			if g.Name != "" && other.Name == g.Name {
				report(podtree.Violation{Kind: podtree.DuplicateName, Index: i, Name: g.Name, First: first})

				break
			}
		}
	}

	return found
}

// twinParent returns the index of the i-th subgroup's parent, or -1.
func twinParent(groups list, i int) int {
	parent := groups[i].Parent
	if parent == nil || *parent == "" {
		return -1
	}
	for j, g := range groups {
		if g.Name == *parent {
			return j
		}
	}
	for j, g := range groups {
		if strings.ToLower(g.Name) == strings.ToLower(*parent) { //nolint:staticcheck,gocritic // EqualFold folds more than lower case does
			return j
		}
	}

	return -1
}

// twinCycle returns the members of the cycle that begins with i, or nil if i
// is on no cycle or not its first member.
func twinCycle(groups list, i int) []int {
	visited := map[int]bool{}
	members := []int{}
	for at := i; at >= 0 && !visited[at]; at = twinParent(groups, at) {
		if at < i {
			return nil
		}
		visited[at] = true
		members = append(members, at)
	}
	if last := members[len(members)-1]; twinParent(groups, last) != i {
		return nil
	}

	return members
}

// randomList draws from few names, so that they meet.
func randomList(r *rand.Rand) list {
	alphabet := []string{"", "a", "b", "c", "d", "e", "A", "B", "aB", "ab"}
	groups := make(list, r.IntN(9))
	for i := range groups {
		groups[i].Name = alphabet[r.IntN(len(alphabet))]
		switch r.IntN(8) {
		case 0, 1:
		case 2:
			self := groups[i].Name
			groups[i].Parent = &self
		default:
			parent := alphabet[r.IntN(len(alphabet))]
			groups[i].Parent = &parent
		}
	}

	return groups
}

func TestCheckAgreesWithTwin(t *testing.T) {
	kinds := map[podtree.Kind]int{}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20_000 {
		groups := randomList(r)
		got := podtree.Check(groups)
		if want := twinCheck(groups); !reflect.DeepEqual(want, got) {
			t.Fatalf("round %d: Check(%s): -twin, +got:\n%s", round, describe(groups), cmp.Diff(want, got))
		}
		for _, v := range got {
			kinds[v.Kind]++
		}
		checkTree(t, groups, got)
	}
	for _, k := range []podtree.Kind{
		podtree.NameEmpty, podtree.NameNotLowercase, podtree.ParentNotLowercase,
		podtree.DuplicateName, podtree.ParentNotFound, podtree.Cycle,
	} {
		if kinds[k] < 100 {
			t.Errorf("the lists held %d violations of kind %s, want at least 100", kinds[k], k)
		}
	}
}

// describe writes a list the way that FuzzCheck reads it.
func describe(groups list) string {
	var parts []string
	for _, g := range groups {
		text := g.Name
		if g.Parent != nil {
			text += "<" + *g.Parent
		}
		parts = append(parts, text)
	}

	return strings.Join(parts, ";")
}
