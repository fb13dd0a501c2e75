package delivery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
)

// A path is where an override changes a manifest.
//
//	self.spec.replicas                           a field
//	self.metadata.annotations["a.b/c"]           a field whose name has other characters, in quotes of either kind
//	self.spec.template.spec.containers[0]        an item of a list by its position
//	….containers[*].image                        all items
//	….containers[name='web'].image               those that have this string
type path []step

type stepKind int

const (
	byName stepKind = iota
	byPosition
	byMatch
	everyItem
)

// A step leads to what is one level down. Name is that of the field, or of the one that must have
// the value.
type step struct {
	kind        stepKind
	name, value string
	position    int
}

// parsePath reads a path. The error reports the position at which it cannot be read, and what is
// expected there.
func parsePath(text string) (path, error) {
	p := &pathParser{text: text}
	all, ok := p.path()
	if ok {
		return all, nil
	}
	found := "the text ends"
	if p.at < len(text) {
		_, size := utf8.DecodeRuneInString(text[p.at:])
		found = "there is " + strconv.Quote(text[p.at:p.at+size])
	}

	return nil, fmt.Errorf("at position %d %s where %s is expected", p.at+1, found, p.want)
}

// pathParser reads the text once. Its methods return false after they have set want to what should
// have been at the position.
type pathParser struct {
	text string
	at   int
	want string
}

func (p *pathParser) fail(want string) bool {
	p.want = want

	return false
}

func (p *pathParser) space() {
	rest := strings.TrimLeft(p.text[p.at:], " \t\r\n")
	p.at = len(p.text) - len(rest)
}

// accept skips the byte, and the space before it, if it is there.
func (p *pathParser) accept(c byte) bool {
	p.space()
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++

	return true
}

func (p *pathParser) path() (path, bool) {
	p.space()
	start := p.at
	if p.word() != "self" {
		p.at = start

		return nil, p.fail(`"self"`)
	}
	var all path
	for p.space(); p.at < len(p.text); p.space() {
		var next step
		var ok bool
		switch {
		case p.accept('['):
			next, ok = p.selector()
		case p.accept('.'):
			next, ok = p.field()
		default:
			ok = p.fail(`"." and a field, "[" or the end`)
		}
		if !ok {
			return nil, false
		}
		all = append(all, next)
	}
	if len(all) == 0 {
		return nil, p.fail(`"." and a field`)
	}

	return all, true
}

func (p *pathParser) field() (step, bool) {
	p.space()
	name := p.word()
	if name == "" {
		return step{}, p.fail("a field")
	}
	if p.at < len(p.text) && strings.IndexByte("-/", p.text[p.at]) >= 0 {
		return step{}, p.fail(`a plain word (other names are written ["like-this"])`)
	}

	return step{kind: byName, name: name}, true
}

// selector is what stands between brackets.
func (p *pathParser) selector() (step, bool) {
	s, ok := p.selected()
	if ok && !p.accept(']') {
		ok = p.fail(`"]"`)
	}

	return s, ok
}

func (p *pathParser) selected() (step, bool) {
	if p.accept('*') {
		return step{kind: everyItem}, true
	}
	if text, quoted, ok := p.quoted(); quoted {
		return step{kind: byName, name: text}, ok
	}
	start := p.at
	word := p.word()
	switch {
	case word == "":
		return step{}, p.fail(`a position, "*", a quoted name, or a name, "=" and a quoted value`)
	case word[0] >= '0' && word[0] <= '9':
		n, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			p.at = start

			return step{}, p.fail("a position")
		}

		return step{kind: byPosition, position: int(n)}, true
	case !p.accept('='):
		return step{}, p.fail(`"=" and a quoted value`)
	}
	value, quoted, ok := p.quoted()
	if !quoted {
		ok = p.fail("a quoted value")
	}

	return step{kind: byMatch, name: word, value: value}, ok
}

// word reads letters, digits and underscores.
func (p *pathParser) word() string {
	rest := p.text[p.at:]
	if end := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}); end >= 0 {
		rest = rest[:end]
	}
	p.at += len(rest)

	return rest
}

// quoted reads a string in quotes, if there is one. If there is one that does not
// end well, it is quoted and not ok.
func (p *pathParser) quoted() (text string, quoted, ok bool) {
	p.space()
	if p.at == len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\'' {
		return "", false, false
	}
	quote := p.text[p.at]
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == quote:
			p.at++

			return b.String(), true, true
		case c == '\\' && p.at+1 < len(p.text):
			p.at++
			if c = p.text[p.at]; c != quote && c != '\\' {
				return "", true, p.fail(`a quote or another "\"`)
			}
		}
		b.WriteByte(c)
	}

	return "", true, p.fail("the closing quote")
}

// String is the one way to write the path.
func (p path) String() string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	b.WriteString("self")
	for _, s := range p {
		switch plain := (&pathParser{text: s.name}).word() == s.name; {
		case s.kind == everyItem:
			b.WriteString("[*]")
		case s.kind == byPosition:
			fmt.Fprintf(&b, "[%d]", s.position)
		case s.kind == byMatch:
			fmt.Fprintf(&b, `[%s="%s"]`, s.name, quote.Replace(s.value))
		case plain && s.name != "":
			b.WriteString("." + s.name)
		default:
			b.WriteString(`["` + quote.Replace(s.name) + `"]`)
		}
	}

	return b.String()
}

// set puts a value where the path leads to, or removes what is there if it is nil. The last step
// may lead to what is not there yet. Where a path leads to several places and not all of them can
// be reached, those that can be are changed all the same, and the state reports what is wrong.
func (p path) set(object map[string]any, value any) OverrideState {
	_, state := p.change(object, value)

	return state
}

// change returns what becomes of a part of an object.
func (p path) change(at, value any) (any, OverrideState) {
	switch at := at.(type) {
	case nil:
		return at, MissingParent
	case map[string]any:
		return at, p.changeField(at, value)
	case []any:
		return p.changeItems(at, value)
	}

	return at, PathTypeMismatch
}

func (p path) changeField(at map[string]any, value any) OverrideState {
	name := p[0].name
	switch {
	case p[0].kind != byName:
		return PathTypeMismatch
	case len(p) > 1:
		child, ok := at[name]
		if !ok {
			return MissingParent
		}
		var state OverrideState
		at[name], state = p[1:].change(child, value)

		return state
	case value == nil:
		delete(at, name)
	default:
		at[name] = runtime.DeepCopyJSONValue(value)
	}

	return Active
}

func (p path) changeItems(at []any, value any) ([]any, OverrideState) {
	picked, state := p[0].pick(at)
	if state != Active {
		return at, state
	}
	for _, i := range slices.Backward(picked) { // a removal moves the items behind it
		switch {
		case len(p) > 1:
			changed, s := p[1:].change(at[i], value)
			at[i] = changed
			if s != Active {
				state = s
			}
		case value == nil:
			at = slices.Delete(at, i, i+1)
		default:
			at[i] = runtime.DeepCopyJSONValue(value)
		}
	}

	return at, state
}

// pick returns the items of a list that a step leads to.
func (s step) pick(list []any) ([]int, OverrideState) {
	switch {
	case s.kind == byName:
		return nil, PathTypeMismatch
	case s.kind == byPosition && s.position >= len(list):
		return nil, IndexOutOfRange
	case s.kind == byPosition:
		return []int{s.position}, Active
	}
	var all []int
	for i, item := range list {
		if s.matches(item) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return nil, MissingParent
	}

	return all, Active
}

// matches reports whether a step that selects items by a field leads to one.
func (s step) matches(item any) bool {
	fields, ok := item.(map[string]any)

	return s.kind == everyItem || s.kind == byMatch && ok && fields[s.name] == s.value
}
