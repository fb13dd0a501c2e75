package expression

import (
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// elementSize is how many bytes an element of a list takes.
	elementSize = 16
	// maxPrecision is the highest precision that the fmt package pads a number to.
	maxPrecision = 1_000_000
	// stateSize is how many bytes a character of a regular expression takes when it is
	// compiled.
	stateSize = 40
)

// works are the functions that read their arguments more than once, or return something
// that is larger, and how much each reads and writes.
var works = map[string]func(args []ref.Val) int64{
	operators.Add:           addWork,
	operators.Equals:        equalWork,
	operators.NotEquals:     equalWork,
	operators.In:            inWork,
	operators.OldIn:         inWork,
	"lists.range":           rangeWork,
	"replace":               replaceWork,
	"split":                 splitWork,
	"join":                  joinWork,
	"format":                formatWork,
	"matches":               matchesWork,
	"flatten":               copyWork,
	"reverse":               copyWork,
	"slice":                 copyWork,
	"sort":                  copyWork,
	"@sortByAssociatedKeys": copyWork,
	"indexOf":               searchWork,
	"lastIndexOf":           searchWork,
	"distinct":              func(args []ref.Val) int64 { return times(elements(args[0]), shallow(args[0])) },
	"sets.contains":         setsWork,
	"sets.equivalent":       setsWork,
	"sets.intersects":       setsWork,
}

// work returns how much a call reads and writes, before it does.
func work(function string, args []ref.Val) int64 {
	if known := works[function]; known != nil {
		return known(args)
	}

	return total(args, shallow)
}

func equalWork(args []ref.Val) int64 { return min(deep(args[0]), deep(args[1])) }

// copyWork is the work of functions that write a new list.
func copyWork(args []ref.Val) int64 { return elementSize*total(args[:1], shallow) + total(args, deep) }

func total(args []ref.Val, size func(ref.Val) int64) int64 {
	sum := int64(1)
	for _, a := range args {
		sum += size(a)
	}

	return sum
}

// addWork is the work of +. Strings are copied. A list is appended to, which does not copy what is
// there; loops build their result so.
func addWork(args []ref.Val) int64 {
	if _, ok := args[0].(traits.Lister); ok && len(args) > 1 {
		return elementSize * (1 + shallow(args[1]))
	}

	return total(args, shallow)
}

// inWork is the work of in, which compares each element. Keys of maps are looked up.
func inWork(args []ref.Val) int64 {
	if _, ok := args[len(args)-1].(traits.Mapper); ok {
		return total(args[:1], shallow)
	}

	return times(1+shallow(args[len(args)-1]), smallest(args[0]))
}

// smallest is how much of a value is read to compare it with other values.
func smallest(v ref.Val) int64 {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return elements(v)
	}

	return 1 + shallow(v)/elementSize
}

func rangeWork(args []ref.Val) int64 {
	n, ok := args[0].(types.Int)
	if !ok {
		return 1
	}

	return times(elementSize, max(int64(n), 1))
}

// replaceWork counts what is replaced.
func replaceWork(args []ref.Val) int64 {
	if len(args) < 3 {
		return 1
	}

	return total(args, shallow) + times(count(args), shallow(args[2]))
}

// splitWork counts what the result has.
func splitWork(args []ref.Val) int64 {
	return total(args, shallow) + elementSize*count(args)
}

// count returns how often the second argument is in the first one.
func count(args []ref.Val) int64 {
	if len(args) < 2 {
		return 1
	}
	text, isText := args[0].(types.String)
	part, isPart := args[1].(types.String)
	if !isText || !isPart {
		return 1
	}

	return int64(strings.Count(string(text), string(part)))
}

func joinWork(args []ref.Val) int64 {
	sum := deep(args[0])
	if len(args) > 1 {
		sum += times(shallow(args[0]), shallow(args[1]))
	}

	return 1 + sum
}

// formatWork adds the precisions: "%.1000f" is a thousand characters long.
func formatWork(args []ref.Val) int64 {
	sum := 4 * total(args, deep)
	text, ok := args[0].(types.String)
	if !ok || sum > workLimit {
		return sum
	}
	for _, verb := range strings.Split(string(text), "%.")[1:] {
		digits := verb[:len(verb)-len(strings.TrimLeft(verb, "0123456789"))]
		if precision, err := strconv.Atoi(digits); err == nil {
			sum += int64(min(precision, maxPrecision))
		}
	}

	return sum
}

// searchWork is the work of functions that search: each character is compared with each one that is
// searched for.
func searchWork(args []ref.Val) int64 {
	if len(args) < 2 {
		return 1
	}

	return total(args, shallow) + times(shallow(args[0]), shallow(args[1]))
}

func setsWork(args []ref.Val) int64 {
	if len(args) < 2 {
		return 1
	}

	return times(elements(args[0]), 1+shallow(args[1])) + times(elements(args[1]), 1+shallow(args[0]))
}

func matchesWork(args []ref.Val) int64 {
	if len(args) < 2 {
		return 1
	}
	text, size := shallow(args[0]), shallow(args[1])
	if pattern, ok := args[1].(types.String); ok && size <= workLimit/stateSize {
		if parsed, err := syntax.Parse(string(pattern), syntax.Perl); err == nil {
			size = max(size, states(parsed))
		}
	}
	if compiled := times(stateSize, size); compiled > workLimit {
		return compiled
	}

	// The compiled expression is kept no longer than the call.
	return 1 + times(text, 1+size/4) + size
}

// states returns about how many states a regular expression has when it is compiled. What
// is repeated, as in "(ab){100}", has its states as often. The parser limits how deep
// expressions are nested, and that repeats multiply to 1000 at most.
func states(e *syntax.Regexp) int64 {
	sum := int64(1 + len(e.Rune)/2)
	if e.Op == syntax.OpLiteral {
		sum = int64(len(e.Rune))
	}
	for _, s := range e.Sub {
		sum += states(s)
	}
	if e.Op == syntax.OpRepeat {
		sum = times(sum, int64(max(e.Min, e.Max, 1)))
	}

	return sum
}

// shallow returns how many bytes or elements a value has.
func shallow(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return int64(n)
		}
	}

	return 1
}

// deep returns how many bytes a value has with everything in it, or something above the
// limit. A list that has another twice has it twice: nested lists can be much larger than
// the memory that they take.
func deep(v ref.Val) int64 {
	left := int64(workLimit) + 1
	measure(v, &left)

	return workLimit + 1 - left
}

// elements is deep for what counts comparisons.
func elements(v ref.Val) int64 {
	if size := deep(v); size <= workLimit {
		return 1 + size/elementSize
	}

	return workLimit + 1
}

func measure(v ref.Val, left *int64) {
	*left -= elementSize
	switch v := v.(type) {
	case traits.Mapper:
		for it := v.Iterator(); *left > 0 && it.HasNext() == types.True; {
			key := it.Next()
			measure(key, left)
			measure(v.Get(key), left)
		}
	case traits.Lister:
		for it := v.Iterator(); *left > 0 && it.HasNext() == types.True; {
			measure(it.Next(), left)
		}
	case *types.Optional:
		if v.HasValue() {
			measure(v.GetValue(), left)
		}
	default:
		*left -= shallow(v)
	}
}
