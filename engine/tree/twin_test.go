package tree_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/arbor-control/arbor/engine/tree"
)

// closure is the slow and obvious twin: which nodes a path of at least one edge leads
// to, from each node, by trying every node between every two.
func closure(g graph) [][]bool {
	reaches := make([][]bool, len(g))
	for i, edges := range g {
		reaches[i] = make([]bool, len(g))
		for _, to := range edges {
			reaches[i][to] = true
		}
	}
	for k := range g {
		for i := range g {
			for j := range g {
				reaches[i][j] = reaches[i][j] || reaches[i][k] && reaches[k][j]
			}
		}
	}

	return reaches
}

// check compares everything with the twin. g is any graph, and parents any list of
// parents.
func check(t *testing.T, g graph, parents []int) {
	t.Helper()
	checkOrder(t, g)
	checkReachable(t, g)
	checkParents(t, parents)
}

func checkOrder(t *testing.T, g graph) {
	t.Helper()
	reaches := closure(g)
	cyclic := slices.ContainsFunc(allNodes(len(g)), func(i int) bool { return reaches[i][i] })
	order, cycle := tree.Order(len(g), g.next)
	if (cycle != nil) != cyclic {
		t.Fatalf("Order(%v) = %v, cycle %v, want a cycle: %t", g, order, cycle, cyclic)
	}
	for at, node := range cycle {
		if to := cycle[(at+1)%len(cycle)]; !slices.Contains(g[node], to) {
			t.Fatalf("Order(%v) returns the cycle %v, but %d does not lead to %d", g, cycle, node, to)
		}
	}
	if cyclic {
		return
	}
	if diff := cmp.Diff(allNodes(len(g)), slices.Sorted(slices.Values(order)), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("Order(%v) = %v does not have every node once: %s", g, order, diff)
	}
	for at, node := range order {
		for _, later := range order[at:] {
			if reaches[node][later] {
				t.Fatalf("Order(%v) = %v has %d before %d", g, order, node, later)
			}
		}
	}
}

func checkReachable(t *testing.T, g graph) {
	t.Helper()
	reaches := closure(g)
	for from := range g {
		var want []int
		for to := range g {
			if to == from || reaches[from][to] {
				want = append(want, to)
			}
		}
		if diff := cmp.Diff(want, slices.Sorted(tree.Reachable([]int{from}, g.next))); diff != "" {
			t.Fatalf("Reachable(%d) of %v: -want, +got:\n%s", from, g, diff)
		}
	}
}

// checkParents compares Cycles, Path and Walk with the twin.
func checkParents(t *testing.T, parents []int) {
	t.Helper()
	up, down := make(graph, len(parents)), make(graph, len(parents))
	var roots []int
	for i, p := range parents {
		if p == tree.None {
			roots = append(roots, i)

			continue
		}
		up[i] = []int{p}
		down[p] = append(down[p], i)
	}
	reaches := closure(up)
	var cyclic []int
	for i := range parents {
		if reaches[i][i] {
			cyclic = append(cyclic, i)
		}
	}
	cycles := tree.Cycles(parents)
	if diff := cmp.Diff(cyclic, slices.Sorted(slices.Values(slices.Concat(cycles...)))); diff != "" {
		t.Fatalf("Cycles(%v) = %v: -want nodes, +got:\n%s", parents, cycles, diff)
	}
	for at, c := range cycles {
		if c[0] != slices.Min(c) || at > 0 && cycles[at-1][0] > c[0] {
			t.Fatalf("Cycles(%v) = %v is not sorted", parents, cycles)
		}
		for i, node := range c {
			if parents[node] != c[(i+1)%len(c)] {
				t.Fatalf("Cycles(%v) = %v: %d is not the parent of %d", parents, cycles, c[(i+1)%len(c)], node)
			}
		}
	}
	checkPaths(t, parents, reaches)
	if len(cyclic) == 0 {
		checkTree(t, parents, slices.Collect(tree.Walk(roots, func(i int) []int { return down[i] })))
	}
}

func checkPaths(t *testing.T, parents []int, above [][]bool) {
	t.Helper()
	for from := range parents {
		path, back, err := tree.Path(from, func(i int) (int, bool, error) { return parents[i], parents[i] != tree.None, nil })
		if err != nil || path[0] != from || len(path) > len(parents) {
			t.Fatalf("Path(%d) of %v = %v, %v", from, parents, path, err)
		}
		for i, node := range path[1:] {
			if parents[path[i]] != node || !above[from][node] {
				t.Fatalf("Path(%d) of %v = %v", from, parents, path)
			}
		}
		want := tree.None
		if end := parents[path[len(path)-1]]; end != tree.None {
			want = slices.Index(path, end)
		}
		if back != want {
			t.Fatalf("Path(%d) of %v = %v, back %d, want %d", from, parents, path, back, want)
		}
	}
}

// checkTree wants every node once, each after its parent.
func checkTree(t *testing.T, parents, walked []int) {
	t.Helper()
	if diff := cmp.Diff(allNodes(len(parents)), slices.Sorted(slices.Values(walked)), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("Walk of %v = %v does not have every node once: %s", parents, walked, diff)
	}
	for at, node := range walked {
		if p := parents[node]; p != tree.None && slices.Index(walked, p) > at {
			t.Fatalf("Walk of %v = %v has %d before its parent", parents, walked, node)
		}
	}
}

func allNodes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}

	return all
}

func TestTwin(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 14))
		g := make(graph, r.IntN(9))
		parents := make([]int, len(g))
		// Few edges make trees, and many make cycles.
		density := r.Float64() / 2
		for i := range g {
			for to := range g {
				if r.Float64() < density {
					g[i] = append(g[i], to)
				}
			}
			parents[i] = r.IntN(len(g)+1) - 1
			if i > 0 && seed%2 == 0 {
				parents[i] = r.IntN(i+1) - 1 // a tree, unless 0 has a parent
			}
		}
		check(t, g, parents)
	}
}

func FuzzTwin(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0, 1, 1, 2, 2, 0}, []byte{1, 0, 3})
	f.Fuzz(func(t *testing.T, edges, above []byte) {
		const n = 8
		g := make(graph, n)
		for i := 0; i+1 < len(edges); i += 2 {
			from := edges[i] % n
			g[from] = append(g[from], int(edges[i+1]%n))
		}
		parents := make([]int, min(n, len(above)))
		for i := range parents {
			parents[i] = int(above[i])%(len(parents)+1) - 1
		}
		check(t, g, parents)
	})
}

// A chain of 100,000 nodes must not overflow the stack, and takes about as long per node
// as a short one. A quadratic walk would take many minutes.
func TestDeepChain(t *testing.T) {
	const n = 100_000
	start := time.Now()
	parents := make([]int, n)
	for i := range parents {
		parents[i] = i + 1
	}
	parents[n-1] = tree.None
	next := func(i int) []int {
		if parents[i] == tree.None {
			return nil
		}

		return parents[i : i+1]
	}
	parent := func(i int) (int, bool, error) { return parents[i], parents[i] != tree.None, nil }

	order, cycle := tree.Order(n, next)
	if len(order) != n || cycle != nil || order[0] != n-1 {
		t.Errorf("Order returns %d nodes, want %d", len(order), n)
	}
	if found := tree.Cycles(parents); found != nil {
		t.Errorf("Cycles returns %d cycles of a chain", len(found))
	}
	if path, back, _ := tree.Path(0, parent); len(path) != n || back != tree.None {
		t.Errorf("Path returns %d nodes and back %d, want %d and %d", len(path), back, n, tree.None)
	}
	if found := slices.Collect(tree.Walk([]int{0}, next)); len(found) != n {
		t.Errorf("Walk yields %d nodes, want %d", len(found), n)
	}

	parents[n-1] = 0 // now it is one cycle
	if _, cycle := tree.Order(n, next); len(cycle) != n {
		t.Errorf("Order returns a cycle of %d nodes, want %d", len(cycle), n)
	}
	if found := tree.Cycles(parents); len(found) != 1 || len(found[0]) != n {
		t.Errorf("Cycles returns %d cycles, want one of %d nodes", len(found), n)
	}
	if path, back, _ := tree.Path(0, parent); len(path) != n || back != 0 {
		t.Errorf("Path returns %d nodes and back %d, want %d and 0", len(path), back, n)
	}
	if found := slices.Collect(tree.Reachable([]int{0}, next)); len(found) != n {
		t.Errorf("Reachable yields %d nodes, want %d", len(found), n)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v, want less than 10s", took)
	}
}

func BenchmarkCycles(b *testing.B) {
	parents := make([]int, 10_000)
	for i := range parents {
		parents[i] = i/2 - 1
	}
	b.ReportAllocs()
	for b.Loop() {
		if tree.Cycles(parents) != nil {
			b.Fatal("a tree has no cycles")
		}
	}
}
