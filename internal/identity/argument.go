package identity

import (
	"slices"
	"strings"
)

// Argument names an object on a command line and in annotations: KIND[.GROUP]/[NAMESPACE/]NAME. It
// does not distinguish a Patch from its target.
func (i Identity) Argument() string {
	if i.Namespace == "" {
		return i.groupKind() + "/" + i.Name
	}

	return i.groupKind() + "/" + i.Namespace + "/" + i.Name
}

// A Selector is what a user wrote to name objects: KIND[.GROUP]/[NAMESPACE/]NAME. What
// is left out matches every object.
type Selector struct {
	// Kind may be written as kubectl takes it: in lower case, or in the plural.
	Kind string
	// Group is empty for the core group, and for every group if AnyGroup is true.
	Group    string
	AnyGroup bool
	// Namespace is empty for every namespace and none.
	Namespace string
	Name      string
}

// ParseSelector reads KIND[.GROUP]/[NAMESPACE/]NAME. KIND. is a kind of the core group.
func ParseSelector(text string) (_ Selector, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 2 && len(parts) != 3 || slices.Contains(parts, "") || strings.ContainsFunc(text, isSpace) {
		return Selector{}, false
	}
	kind, group, grouped := strings.Cut(parts[0], ".")
	if kind == "" {
		return Selector{}, false
	}
	s := Selector{Kind: kind, Group: group, AnyGroup: !grouped, Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		s.Namespace = parts[1]
	}

	return s, true
}

func isSpace(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }

// ParseArgument reads what [Identity.Argument] wrote: no group is the core group.
func ParseArgument(text string) (_ Identity, ok bool) {
	s, ok := ParseSelector(text)

	return Identity{Group: s.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}, ok
}

// Matches reports whether an object is named. plural is the name of the resource of a
// kind, as in "deployments"; nil matches kinds only.
func (s Selector) Matches(id Identity, plural func(kind string) string) bool {
	kind := strings.EqualFold(s.Kind, id.Kind) || plural != nil && strings.EqualFold(s.Kind, plural(id.Kind))

	return kind && (s.AnyGroup || strings.EqualFold(s.Group, id.Group)) && s.Name == id.Name && (s.Namespace == "" || s.Namespace == id.Namespace)
}
