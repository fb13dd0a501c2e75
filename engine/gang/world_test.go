package gang_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/engine/gang"
)

// A pod is what the fake World knows of a member.
type pod struct {
	// wants maps resources to amounts.
	wants map[string]int
	// near keeps the pod on a node with a pod of that app, away off such nodes.
	app, near, away string
}

// A fakeWorld is nodes with amounts of resources. The first node that fits is
// taken.
type fakeWorld struct {
	names []string
	free  []map[string]int
	apps  []map[string]int
	pods  []pod
	held  []heldPlace

	tries int
	// failAt makes that try an error, cancel cancels the context at that try.
	failAt   int
	cancelAt int
	cancel   func()
}

type heldPlace struct{ member, node int }

// nodes makes n nodes that have so much of a resource.
func nodes(n, amount int, resource string) *fakeWorld {
	w := &fakeWorld{}
	for i := range n {
		w.add(fmt.Sprintf("node-%d", i), map[string]int{resource: amount})
	}

	return w
}

func (w *fakeWorld) add(name string, free map[string]int) {
	w.names = append(w.names, name)
	w.free = append(w.free, free)
	w.apps = append(w.apps, map[string]int{})
}

func (w *fakeWorld) Try(_ context.Context, member int) (string, *gang.Misfit, error) {
	w.tries++
	if w.tries == w.failAt {
		return "", nil, errWorld
	}
	if w.tries == w.cancelAt {
		w.cancel()
	}
	m := &gang.Misfit{Nodes: len(w.names), Reasons: map[string]int{}}
	p := w.pods[member]
	for node := range w.names {
		if why := w.refuses(node, p); why != "" {
			m.Reasons[why]++

			continue
		}
		for resource, amount := range p.wants {
			w.free[node][resource] -= amount
		}
		w.apps[node][p.app]++
		w.held = append(w.held, heldPlace{member, node})

		return w.names[node], nil, nil
	}

	return "", m, nil
}

func (w *fakeWorld) refuses(node int, p pod) string {
	var short []string
	for resource, amount := range p.wants {
		if w.free[node][resource] < amount {
			short = append(short, "Insufficient "+resource)
		}
	}
	slices.Sort(short)
	switch {
	case len(short) > 0:
		return strings.Join(short, ", ")
	case p.near != "" && w.apps[node][p.near] == 0:
		return "node(s) didn't match pod affinity rules"
	case p.away != "" && w.apps[node][p.away] > 0:
		return "node(s) didn't match pod anti-affinity rules"
	}

	return ""
}

func (w *fakeWorld) Mark() int { return len(w.held) }

func (w *fakeWorld) Rollback(mark int) {
	for _, h := range slices.Backward(w.held[mark:]) {
		p := w.pods[h.member]
		for resource, amount := range p.wants {
			w.free[h.node][resource] += amount
		}
		if w.apps[h.node][p.app]--; w.apps[h.node][p.app] == 0 {
			delete(w.apps[h.node], p.app)
		}
	}
	w.held = w.held[:mark]
}

// state is what must be the same before and after.
func (w *fakeWorld) state() string { return fmt.Sprint(w.names, w.free, w.apps, w.held) }
