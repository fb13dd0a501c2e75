package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth bounds nesting. Real manifests stay below thirty.
	maxDepth = 1000
	// maxAliased bounds how many values the aliases of one input may add. It
	// is what kubectl allows in one large document.
	maxAliased = 400_000

	mergeKey = "<<"
)

var (
	errDepth   = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errAliases = fmt.Errorf("aliases expand to more than %d values", maxAliased)
	errCircle  = errors.New("an anchor contains itself")
)

// A positioned error knows its line within the chunk that was parsed.
type positioned struct {
	line int
	err  error
}

func (p *positioned) Error() string { return p.err.Error() }
func (p *positioned) Unwrap() error { return p.err }

func locate(n *yaml.Node, err error) error { return &positioned{line: n.Line, err: err} }

// A builder turns nodes into JSON values. One builder serves one input, so
// that its alias allowance cannot be had again with every document.
type builder struct {
	resolver resolver

	aliased    int
	inAlias    int
	open       map[*yaml.Node]bool
	path       []segment
	duplicates []Duplicate
}

// A segment is one step of a path: an index when it is not negative, and
// otherwise a key.
type segment struct {
	key   string
	index int
}

func keySegment(key string) segment { return segment{key: key, index: -1} }

// document builds the value of a whole document.
func (b *builder) document(n *yaml.Node) (any, []Duplicate, error) {
	b.inAlias, b.path, b.duplicates, b.open = 0, b.path[:0], nil, map[*yaml.Node]bool{}
	v, err := b.value(n)

	return v, b.duplicates, err
}

func (b *builder) value(n *yaml.Node) (any, error) {
	if err := b.spend(n); err != nil {
		return nil, err
	}

	switch n.Kind {
	case yaml.AliasNode:
		return b.alias(n, func(t *yaml.Node) (any, error) { return b.value(t) })
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)

		return m, b.mapping(n, m)
	case yaml.SequenceNode:
		return b.sequence(n)
	default:
		return b.scalar(n)
	}
}

// spend takes one value from the allowances.
func (b *builder) spend(n *yaml.Node) error {
	if b.inAlias > 0 {
		if b.aliased++; b.aliased > maxAliased {
			return locate(n, errAliases)
		}
	}

	if len(b.path) >= maxDepth {
		return locate(n, errDepth)
	}

	return nil
}

func (b *builder) scalar(n *yaml.Node) (any, error) {
	v, err := b.resolver.scalar(n)
	if err != nil {
		return nil, locate(n, err)
	}

	return v, nil
}

// alias runs build on what an alias stands for.
func (b *builder) alias(n *yaml.Node, build func(*yaml.Node) (any, error)) (any, error) {
	if b.open[n] {
		return nil, locate(n, errCircle)
	}

	b.open[n] = true
	b.inAlias++
	v, err := build(n.Alias)
	b.inAlias--
	delete(b.open, n)

	return v, err
}

func (b *builder) sequence(n *yaml.Node) (any, error) {
	out := make([]any, len(n.Content))

	for i, c := range n.Content {
		b.path = append(b.path, segment{index: i})
		v, err := b.value(c)
		b.path = b.path[:len(b.path)-1]

		if err != nil {
			return nil, err
		}

		out[i] = v
	}

	return out, nil
}

// mapping sets the keys of n in out, in their order: a later key overrides an
// earlier one and a merge overrides what stands before it, as in kubectl.
func (b *builder) mapping(n *yaml.Node, out map[string]any) error {
	seen := make(map[string]int, len(n.Content)/2)

	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]

		if isMerge(k) {
			if err := b.merge(v, out); err != nil {
				return err
			}

			continue
		}

		key, err := b.key(k)
		if err != nil {
			return err
		}

		b.path = append(b.path, keySegment(key))
		b.note(seen, key, k)
		value, err := b.value(v)
		b.path = b.path[:len(b.path)-1]

		if err != nil {
			return err
		}

		out[key] = value
	}

	return nil
}

// note remembers the key at the end of the path, and a duplicate if it was
// there before. What an alias repeats was noted where it is written.
func (b *builder) note(seen map[string]int, key string, k *yaml.Node) {
	if first, twice := seen[key]; twice && b.inAlias == 0 {
		b.duplicates = append(b.duplicates, Duplicate{Field: pathText(b.path), First: first, Line: k.Line})
	}

	seen[key] = k.Line
}

func (b *builder) key(k *yaml.Node) (string, error) {
	t := target(k)
	if t.Kind != yaml.ScalarNode {
		return "", locate(k, errors.New("a key must be a scalar"))
	}

	s, err := b.resolver.key(t)
	if err != nil {
		return "", locate(k, err)
	}

	return s, nil
}

// merge sets the keys of one mapping or of a list of them, of which the first
// takes precedence.
func (b *builder) merge(n *yaml.Node, out map[string]any) error {
	if err := b.spend(n); err != nil {
		return err
	}

	switch n.Kind {
	case yaml.MappingNode:
		b.path = append(b.path, keySegment(mergeKey))
		err := b.mapping(n, out)
		b.path = b.path[:len(b.path)-1]

		return err
	case yaml.AliasNode:
		if n.Alias.Kind != yaml.MappingNode {
			return locate(n, errors.New("a merge key needs a mapping"))
		}

		_, err := b.alias(n, func(t *yaml.Node) (any, error) { return nil, b.merge(t, out) })

		return err
	case yaml.SequenceNode:
		for _, v := range slices.Backward(n.Content) {
			if target(v).Kind != yaml.MappingNode {
				return locate(n, errors.New("a merge key needs mappings"))
			}

			if err := b.merge(v, out); err != nil {
				return err
			}
		}

		return nil
	default:
		return locate(n, errors.New("a merge key needs a mapping"))
	}
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == mergeKey && k.ShortTag() == "!!merge"
}

// merged returns the mappings behind a merge key, for look-ups.
func merged(n *yaml.Node) []*yaml.Node {
	t := target(n)
	if t.Kind == yaml.MappingNode {
		return []*yaml.Node{t}
	}

	out := make([]*yaml.Node, len(t.Content))
	for i, c := range t.Content {
		out[i] = target(c)
	}

	return out
}

func pathText(path []segment) string {
	var s strings.Builder

	for _, p := range path {
		switch {
		case p.index >= 0:
			s.WriteString("[" + strconv.Itoa(p.index) + "]")
		case p.key != mergeKey:
			if s.Len() > 0 {
				s.WriteByte('.')
			}

			s.WriteString(p.key)
		}
	}

	return s.String()
}
