package gang_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

// A roomy world has a number of places, and does not record which member has which.
type roomy struct{ free, held, tries int }

var full = &gang.Misfit{Nodes: 1, Reasons: map[string]int{"Insufficient cpu": 1}}

func (w *roomy) Try(context.Context, int) (string, *gang.Misfit, error) {
	w.tries++
	if w.held == w.free {
		return "", full, nil
	}
	w.held++

	return "node", nil, nil
}

func (w *roomy) Mark() int         { return w.held }
func (w *roomy) Rollback(mark int) { w.held = mark }

// shapes of trees with n leaves, each with two pods of which one is needed.
var shapes = []struct {
	name string
	spec func(n int) podtree.Spec
}{
	// flat has all leaves below the gang.
	{"flat", func(n int) podtree.Spec { return podtree.Spec{SubGroups: leaves("", n)} }},
	// optional needs half of them.
	{"optional", func(n int) podtree.Spec {
		return podtree.Spec{SubGroups: leaves("", n), MinSubGroup: num(int32(n / 2))}
	}},
	// sets has ten leaves in each set, one and a half pods of each needed.
	{"sets", func(n int) podtree.Spec {
		var spec podtree.Spec
		for i := range n / 10 {
			s := "s" + strconv.Itoa(i)
			spec.SubGroups = append(spec.SubGroups, podtree.SubGroup{Name: s, MinMember: num(15)})
			spec.SubGroups = append(spec.SubGroups, leaves(s, 10)...)
		}

		return spec
	}},
	// deep is a chain of sets, each with a leaf next to it.
	{"deep", func(n int) podtree.Spec {
		var spec podtree.Spec
		parent := ""
		for i := range n {
			spec.SubGroups = append(spec.SubGroups, leaf(parent, "l"+strconv.Itoa(i), 1))
			if i < n-1 {
				next := "s" + strconv.Itoa(i)
				spec.SubGroups = append(spec.SubGroups, podtree.SubGroup{Name: next, Parent: ref(parent)})
				parent = next
			}
		}

		return spec
	}},
}

// nested is a chain of optional sets that all want to be filled up, from leaves next to them and
// from each other: the worst case that a user could write.
func nested(n int) podtree.Spec {
	var spec podtree.Spec
	parent := ""
	for i := range n {
		spec.SubGroups = append(spec.SubGroups, leaf(parent, "l"+strconv.Itoa(i), 1))
		if i < n-1 {
			next := "s" + strconv.Itoa(i)
			spec.SubGroups = append(spec.SubGroups, podtree.SubGroup{
				Name: next, Parent: ref(parent), MinSubGroup: num(1), MinMember: num(int32(2*(n-i) - 4)),
			})
			parent = next
		}
	}
	spec.MinSubGroup, spec.MinMember = num(1), num(int32(2*n))

	return spec
}

// TestPlaceEnds is about trees that are written to take forever. Without a bound there would be two
// million questions for forty pods.
func TestPlaceEnds(t *testing.T) {
	const n = 20
	for free := range 2 * n {
		tree, members := big(t, nested(n), "")
		world := &roomy{free: free}
		if _, err := gang.Place(t.Context(), tree, members, world, gang.Rules{}); err != nil {
			t.Fatal(err)
		}
		if limit := 50 * len(members); world.tries > limit {
			t.Errorf("with room for %d of %d pods there were %d questions, want at most %d", free, len(members), world.tries, limit)
		}
	}
}

func leaves(parent string, n int) []podtree.SubGroup {
	all := make([]podtree.SubGroup, n)
	for i := range all {
		all[i] = leaf(parent, parent+"l"+strconv.Itoa(i), 1)
	}

	return all
}

func big(b testing.TB, spec podtree.Spec, shape string) (*podtree.Tree, []gang.Member) {
	b.Helper()
	t, err := podtree.New(spec)
	if err != nil {
		b.Fatal(err)
	}
	var members []gang.Member
	for _, leaf := range t.Leaves() {
		for range 2 {
			members = append(members, gang.Member{Leaf: leaf, Shape: shape})
		}
	}

	return t, members
}

func BenchmarkPlace(b *testing.B) {
	for _, s := range shapes {
		for _, n := range []int{100, 1000, 10_000} {
			t, members := big(b, s.spec(n), "one")
			for name, free := range map[string]int{"fits": 2 * n, "full": n - 1} {
				if s.name == "optional" && name == "full" {
					free = n/2 - 1
				}
				b.Run(s.name+"/"+name+"/"+strconv.Itoa(n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						d, err := gang.Place(b.Context(), t, members, &roomy{free: free}, gang.Rules{})
						if err != nil || d.Fits != (name == "fits") {
							b.Fatalf("fits %t, error %v", d.Fits, err)
						}
					}
				})
			}
		}
	}
}

// TestPlaceIsLinear counts the questions to the World, with members that are
// all different: in a tree of ten times as many leaves there are ten times as
// many.
func TestPlaceIsLinear(t *testing.T) {
	for _, s := range shapes {
		for _, free := range []float64{2, 0.99, 0.49} {
			questions := func(n int) int {
				tree, members := big(t, s.spec(n), "")
				world := &roomy{free: int(free * float64(n))}
				if _, err := gang.Place(t.Context(), tree, members, world, gang.Rules{}); err != nil {
					t.Fatal(err)
				}

				return world.tries
			}
			if few, many := questions(100), questions(2000); many > 25*few {
				t.Errorf("%s with room for %v of them: %d questions for 100 leaves, %d for 2000", s.name, free, few, many)
			}
		}
	}
}
