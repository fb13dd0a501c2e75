package invariant

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// An Invariant is one thing that must be true.
type Invariant string

// All of them, as in the comment of the package.
const (
	NoOverlap      Invariant = "NoOverlap"
	NothingLost    Invariant = "NothingLost"
	Bound          Invariant = "Bound"
	NoOrphans      Invariant = "NoOrphans"
	StatusTrue     Invariant = "StatusTrue"
	NothingStuck   Invariant = "NothingStuck"
	Converged      Invariant = "Converged"
	InputsTrue     Invariant = "InputsTrue"
	NoLeftovers    Invariant = "NoLeftovers"
	WhollyOwned    Invariant = "WhollyOwned"
	GroupsTrue     Invariant = "GroupsTrue"
	OneOwner       Invariant = "OneOwner"
	HookOnce       Invariant = "HookOnce"
	NothingUndone  Invariant = "NothingUndone"
	NothingDeleted Invariant = "NothingDeleted"
)

// An Object is the object that a finding is about.
type Object struct{ Kind, Namespace, Name string }

// String names the object for people.
func (o Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// A Ledger has the results that a client of a cluster got: acknowledged writes and nothing else.
type Ledger struct {
	// Held must be there: true. What is false was deleted, and must not.
	Held map[Object]bool
	// Blocks are those in the status of claims. A claim has at most one in its life.
	Blocks map[types.NamespacedName]string
	// Made are objects as programs make them of the last inputs that were stored. What
	// they do not name may be there too; a list that is empty must be, or be absent.
	Made []unstructured.Unstructured
	// History is what a watch reported; it may be nil.
	History *History
}

// A Finding is a way in which an invariant does not hold.
type Finding struct {
	Invariant Invariant
	Object    Object
	Message   string
}

// String is a message.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s %s", f.Invariant, f.Object, f.Message)
}

// Check returns all ways in which a cluster is not what it must be, in order.
func Check(s Snapshot, l Ledger) []Finding {
	c := &checker{Snapshot: s, ledger: l}
	c.audit()
	c.addresses()
	c.claims()
	c.held()
	c.going()
	c.compositions()
	c.leftovers()
	c.made()
	c.containers()
	c.groups()
	c.owners()
	c.shared()
	if l.History != nil {
		c.found = append(c.found, l.History.findings()...)
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int { return strings.Compare(a.String(), b.String()) })

	return c.found
}

// Error is all findings as one error, nil if there are none. What cannot become right any more
// is shown first.
func Error(found []Finding) error {
	const shown = 20
	final := func(f Finding) bool {
		return slices.Contains([]Invariant{HookOnce, NothingUndone, NothingDeleted}, f.Invariant)
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Finding) int {
		switch {
		case final(a) == final(b):
			return 0
		case final(a):
			return -1
		default:
			return 1
		}
	})
	var all []error
	for i, f := range found {
		if i == shown {
			all = append(all, fmt.Errorf("and %d more", len(found)-shown))

			break
		}
		all = append(all, errors.New(f.String()))
	}

	return errors.Join(all...)
}

// Lost is how many of them are losses: something that was acknowledged is not there,
// or two have the same.
func Lost(found []Finding) int {
	n := 0
	for _, f := range found {
		if f.Invariant == NothingLost || f.Invariant == NoOverlap {
			n++
		}
	}

	return n
}

type checker struct {
	Snapshot

	ledger Ledger
	found  []Finding
}

func (c *checker) addf(i Invariant, o Object, format string, args ...any) {
	c.found = append(c.found, Finding{i, o, fmt.Sprintf(format, args...)})
}
