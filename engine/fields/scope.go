package fields

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A Scope is a pattern that selects fields of an object, each with everything below it. The zero
// Scope is the whole object.
//
// \tspec.template.spec.initContainers a field, with everything in it
// \t….initContainers[name=base-os-bash] the item of a list with that key
// \t….initContainers[name=~^aks-] items by regular expression
// \t….ports[port=80,protocol=TCP] several keys; omitted keys match anything
// \t….initContainers[*].image spec.* everything one level down
// \tmetadata.annotations["a.b/c"] a name with special characters,
// \tmetadata.annotations."a.b/c" in one of two ways
// \tspec.args[="-v"] spec.args[=~^-] values of a set
//
// A value without quotes matches strings and numbers with that text, a quoted one strings only.
// Expressions that contain one of []," are quoted too, as Go strings.
type Scope struct{ steps []step }

type stepKind int

const (
	byName stepKind = iota
	byKeys
	byValue
	anyField
	anyItem
)

// A step matches one element of a path.
type step struct {
	kind stepKind
	name string
	// All conditions must match. For byValue there is one, without a key.
	conditions []condition
}

type condition struct {
	key    string
	text   string
	quoted bool
	// expression is nil if the text is literal.
	expression *regexp.Regexp
}

// IsZero reports whether the scope is the whole object.
func (s Scope) IsZero() bool { return len(s.steps) == 0 }

// Matches reports whether the path is in the scope.
func (s Scope) Matches(p fieldpath.Path) bool {
	if len(p) < len(s.steps) {
		return false
	}
	for i, st := range s.steps {
		if !st.matches(p[i]) {
			return false
		}
	}

	return true
}

func (st step) matches(pe fieldpath.PathElement) bool {
	switch st.kind {
	case anyField, anyItem:
		return true
	case byName:
		return pe.FieldName != nil && *pe.FieldName == st.name
	case byKeys:
		return pe.Key != nil && !slices.ContainsFunc(st.conditions, func(c condition) bool { return !c.matchesKey(*pe.Key) })
	case byValue:
		return pe.Value != nil && st.conditions[0].matches(*pe.Value)
	}

	return false
}

func (c condition) matchesKey(keys value.FieldList) bool {
	return slices.ContainsFunc(keys, func(f value.Field) bool { return f.Name == c.key && c.matches(f.Value) })
}

func (c condition) matches(v value.Value) bool {
	text, isString := valueText(v)
	switch {
	case c.expression != nil:
		return c.expression.MatchString(text)
	case c.quoted:
		return isString && text == c.text
	default:
		return text == c.text
	}
}

// String returns the canonical text of the scope: ParseScope reads it as the same scope.
func (s Scope) String() string {
	var b strings.Builder
	for _, st := range s.steps {
		switch st.kind {
		case byName:
			writeName(&b, st.name)
		case anyField:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteByte('*')
		case anyItem:
			b.WriteString("[*]")
		case byKeys, byValue:
			b.WriteByte('[')
			for i, c := range st.conditions {
				if i > 0 {
					b.WriteByte(',')
				}
				c.write(&b, st.kind == byKeys)
			}
			b.WriteByte(']')
		}
	}

	return b.String()
}

func (c condition) write(b *strings.Builder, withKey bool) {
	if withKey {
		writeBareOr(b, c.key, isBareKey)
	}
	b.WriteByte('=')
	switch {
	case c.expression != nil:
		b.WriteByte('~')
		writeBareOr(b, c.text, isBareExpression)
	case c.quoted:
		b.WriteString(strconv.Quote(c.text))
	default:
		b.WriteString(c.text)
	}
}

// Equal reports whether both scopes have the same text.
func (s Scope) Equal(other Scope) bool { return s.String() == other.String() }

// MarshalText makes scopes strings in JSON and YAML.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is [ParseScope]. An empty text is the whole object.
func (s *Scope) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*s = Scope{}

		return nil
	}
	parsed, err := ParseScope(string(text))
	if err != nil {
		return err
	}
	*s = parsed

	return nil
}

// denied are the fields that are never moved from one manager to another: status belongs to the
// controllers that observe, and without a finalizer or an owner reference the server deletes
// objects too early or not at all.
var denied = [][]string{{"status"}, {"metadata", "finalizers"}, {"metadata", "ownerReferences"}}

// Denied is the error for a scope in which no ownership is ever moved.
type Denied struct {
	Scope Scope
	// Part is the path in the scope that is never moved.
	Part string
}

func (d *Denied) Error() string {
	return fmt.Sprintf("cannot move the ownership of %s: %s is never moved; use another scope", d.Scope, d.Part)
}

// Check returns a *[Denied] if the scope has only fields that are never moved. In a larger scope,
// such fields are skipped.
func (s Scope) Check() error {
	for _, names := range denied {
		if len(s.steps) < len(names) {
			continue
		}
		inside := true
		for i, name := range names {
			inside = inside && s.steps[i].kind == byName && s.steps[i].name == name
		}
		if inside {
			return &Denied{Scope: s, Part: strings.Join(names, ".")}
		}
	}

	return nil
}
