package podtree

import (
	"fmt"
	"strings"
)

// A Kind is the rule that is violated.
type Kind string

const (
	// NameEmpty means that the subgroup has no name.
	NameEmpty Kind = "NameEmpty"
	// NameNotLowercase means that the name has upper case letters.
	NameNotLowercase Kind = "NameNotLowercase"
	// ParentNotLowercase means that the parent has upper case letters.
	ParentNotLowercase Kind = "ParentNotLowercase"
	// DuplicateName means that a subgroup earlier in the list has the same name.
	DuplicateName Kind = "DuplicateName"
	// ParentNotFound means that no subgroup has the name of the parent.
	ParentNotFound Kind = "ParentNotFound"
	// Cycle means that the parents of the subgroup lead back to it.
	Cycle Kind = "Cycle"
)

// A Violation is one violation of the rules in a list of subgroups.
type Violation struct {
	Kind Kind
	// Index of the subgroup that must change.
	Index int
	// Name of that subgroup.
	Name string
	// Parent is as written, for ParentNotLowercase and ParentNotFound.
	Parent string
	// First is, for DuplicateName, the index of the first subgroup with the name.
	First int
	// Path is, for Cycle, the names on the cycle from child to parent, with the first repeated at
	// the end: a, b, a.
	Path []string
}

// A cycle of more names than maxShown is printed as its first headShown names
// and its last.
const (
	maxShown  = 10
	headShown = 8
)

// Error returns the text that users see. Tools match on it, so it does not change.
func (v Violation) Error() string {
	switch v.Kind {
	case NameEmpty:
		return "subgroup name must not be empty"
	case NameNotLowercase:
		return notLowercase(v.Name)
	case ParentNotLowercase:
		return fmt.Sprintf("parent of subgroup %q: %s", v.Name, notLowercase(v.Parent))
	case DuplicateName:
		return "duplicate subgroup name " + v.Name
	case ParentNotFound:
		return fmt.Sprintf("parent %s of %s was not found", v.Parent, v.Name)
	case Cycle:
		return "cycle detected in subgroups: " + strings.Join(shown(v.Path), " -> ")
	}

	return fmt.Sprintf("subgroup %q: %s", v.Name, string(v.Kind))
}

func notLowercase(name string) string {
	return fmt.Sprintf("subgroup name %q must be lowercase", name)
}

func shown(path []string) []string {
	if len(path) <= maxShown {
		return path
	}
	short := make([]string, 0, headShown+2)
	short = append(short, path[:headShown]...)

	return append(short, "...", path[len(path)-1])
}
