package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A File is everything that was found in one input.
type File struct {
	// Name as the user wrote it; "<stdin>" for standard input.
	Name string
	// Documents in their order; lists are already flattened.
	Documents []*Document
	// Errors in their order: what could not be read or parsed.
	Errors []*Error
	// Ignored are documents that could be parsed and are not objects, such as a line
	// of text, in their order. Empty documents do not count.
	Ignored []*Error
}

// An Error is a part of an input that could not be used, and why.
type Error struct {
	// Line on which the trouble starts; 0 when the input could not be read.
	Line int
	// Unreadable is true when the input could not be read at all.
	Unreadable bool
	// Err is a plain explanation.
	Err error
	// Fix is a hint, or empty.
	Fix string
}

// Error returns the reason without its position.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// A Document is one object of an input.
type Document struct {
	// Object holds JSON values only: map[string]any, []any, string, int64,
	// float64, bool and nil. The caller owns it.
	Object map[string]any
	// Duplicates lists the keys that were set twice in one mapping. The last
	// value is the one in Object.
	Duplicates []Duplicate

	node   *yaml.Node
	offset int
}

// A Duplicate is a key that was set twice in one mapping.
type Duplicate struct {
	// Field path of the key.
	Field string
	// First and Line are where it was set before and where it was set again.
	First, Line int
}

// Line returns the line on which a field is written. The path is written as
// API errors write it, spec.subGroups[2].parent; map keys may stand in
// brackets or behind a dot and may contain dots themselves. For a field that
// is absent it is the line of its nearest ancestor.
func (d *Document) Line(field string) int {
	line, _, _ := d.walk(field)

	return line + d.offset
}

// Text returns the scalar at a field as it is written in the input, without
// its quotes.
func (d *Document) Text(field string) (string, bool) {
	_, n, ok := d.walk(field)
	if !ok || n.Kind != yaml.ScalarNode {
		return "", false
	}

	return n.Value, true
}

func (d *Document) walk(field string) (line int, n *yaml.Node, found bool) {
	w := walker{merges: maxMerges}
	n = target(d.node)
	line = n.Line

	for field != "" {
		next := w.step(n, field)
		if next.at == nil {
			return line, nil, false
		}

		line, n, field = next.at.Line, target(next.value), next.rest
	}

	return line, n, true
}

// maxMerges bounds how many merged mappings one look-up searches, because
// merges of merges can be many more than the input has lines.
const maxMerges = 1000

type walker struct{ merges int }

// A hop is one segment down: the node whose line stands for it (the key of a
// mapping, the item of a sequence), its value, and the path that is left.
type hop struct {
	at, value *yaml.Node
	rest      string
}

// better is true when h used up more of the path than o.
func (h hop) better(o hop) bool {
	return h.at != nil && (o.at == nil || len(h.rest) < len(o.rest))
}

func (w *walker) step(n *yaml.Node, field string) hop {
	switch n.Kind {
	case yaml.MappingNode:
		return w.key(n, field)
	case yaml.SequenceNode:
		digits, rest, ok := strings.Cut(strings.TrimPrefix(field, "["), "]")
		i, err := strconv.Atoi(digits)
		if !ok || err != nil || i < 0 || i >= len(n.Content) {
			return hop{}
		}

		return hop{at: n.Content[i], value: n.Content[i], rest: rest}
	default:
		return hop{}
	}
}

// key finds the longest key with which the path continues, because keys may contain dots. Among
// equals the last one wins, as it does in the object.
func (w *walker) key(n *yaml.Node, field string) hop {
	var best hop

	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		k, v := n.Content[i], n.Content[i+1]

		if isMerge(k) {
			if h := w.merge(v, field); h.better(best) {
				best = h
			}
		} else if rest, ok := cutKey(field, target(k).Value); ok {
			if h := (hop{at: k, value: v, rest: rest}); h.better(best) {
				best = h
			}
		}
	}

	return best
}

func (w *walker) merge(n *yaml.Node, field string) hop {
	var best hop

	for _, m := range merged(n) {
		if w.merges--; w.merges < 0 {
			break
		}

		if h := w.key(m, field); h.better(best) {
			best = h
		}
	}

	return best
}

// cutKey cuts one key off the front of a path.
func cutKey(field, key string) (rest string, ok bool) {
	if inner, bracket := strings.CutPrefix(field, "["); bracket {
		rest, ok = strings.CutPrefix(inner, key)
		if !ok {
			return "", false
		}

		return strings.CutPrefix(rest, "]")
	}

	rest, ok = strings.CutPrefix(strings.TrimPrefix(field, "."), key)
	if !ok || (rest != "" && rest[0] != '.' && rest[0] != '[') {
		return "", false
	}

	return rest, true
}

// target follows aliases to what they stand for.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}

	return n
}
