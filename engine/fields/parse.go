package fields

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A SyntaxError is a position at which the text of a scope is invalid, and what was expected there.
type SyntaxError struct {
	Text string
	// Offset is in bytes.
	Offset int
	// Want is a clause about what was expected.
	Want string
}

func (e *SyntaxError) Error() string {
	found := "the text ends"
	if e.Offset < len(e.Text) {
		_, size := utf8.DecodeRuneInString(e.Text[e.Offset:])
		found = "there is " + strconv.Quote(e.Text[e.Offset:e.Offset+size])
	}

	return fmt.Sprintf("cannot read scope %q at position %d: %s where %s", e.Text, e.Offset+1, found, e.Want)
}

// ParseScope reads a scope; see [Scope] for the grammar. The error is a *[SyntaxError].
func ParseScope(text string) (Scope, error) {
	p := &parser{text: text}
	s, ok := p.scope()
	if !ok {
		return Scope{}, &SyntaxError{Text: text, Offset: p.at, Want: p.want}
	}

	return s, nil
}

// ParseScopes reads several scopes, one per line or separated by semicolons, which may also be part
// of a quoted text. It skips blank ones. The error is a *[SyntaxError], or a *[Denied] about fields
// that are never moved.
func ParseScopes(text string) ([]Scope, error) {
	quoted, escaped := false, false
	separates := func(r rune) bool {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		}

		return !quoted && (r == ';' || r == '\n')
	}
	var all []Scope
	for part := range strings.FieldsFuncSeq(text, separates) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		s, err := ParseScope(part)
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}

	return all, nil
}

// MustParseScope is like ParseScope and panics if the text is invalid.
func MustParseScope(text string) Scope {
	s, err := ParseScope(text)
	if err != nil {
		panic(err)
	}

	return s
}

// parser reads the text once. Its methods return false after they have set want to what was
// expected at the position.
type parser struct {
	text string
	at   int
	want string
}

func (p *parser) fail(want string) bool {
	p.want = want

	return false
}

// accept skips the byte if it is next.
func (p *parser) accept(c byte) bool {
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++

	return true
}

func (p *parser) scope() (Scope, bool) {
	var s Scope
	p.accept('.')
	for first := true; first || p.at < len(p.text); first = false {
		var st step
		var ok bool
		switch {
		case p.accept('['):
			st, ok = p.selector()
		case first || p.accept('.'):
			st, ok = p.field()
		default:
			ok = p.fail(`a "." and a field, a "[" or the end is expected`)
		}
		if !ok {
			return Scope{}, false
		}
		s.steps = append(s.steps, st)
	}

	return s, true
}

func (p *parser) field() (step, bool) {
	if p.accept('*') {
		return step{kind: anyField}, true
	}
	if name, quoted, ok := p.quoted(); quoted {
		return step{kind: byName, name: name}, ok
	}
	name := p.bare(notInNames)
	if p.at < len(p.text) && p.text[p.at] == '/' {
		return step{}, p.fail(`a plain field is expected; names with "/" or "." in them are written ["like.this/one"]`)
	}
	if name == "" {
		return step{}, p.fail(`a field is expected: a plain name, a quoted one or "*"`)
	}

	return step{kind: byName, name: name}, true
}

// selector parses the text between brackets.
func (p *parser) selector() (step, bool) {
	st, ok := p.selected()
	if ok && !p.accept(']') {
		ok = p.fail(`a "]" is expected`)
	}

	return st, ok
}

func (p *parser) selected() (step, bool) {
	if p.accept('*') {
		return step{kind: anyItem}, true
	}
	if p.accept('=') {
		c, ok := p.condition("")

		return step{kind: byValue, conditions: []condition{c}}, ok
	}
	start := p.at
	if name, quoted, ok := p.quoted(); quoted && (!ok || !strings.HasPrefix(p.text[p.at:], "=")) {
		return step{kind: byName, name: name}, ok
	}
	p.at = start
	all, ok := p.keys()

	return step{kind: byKeys, conditions: all}, ok
}

// keys parses conditions with commas between them.
func (p *parser) keys() ([]condition, bool) {
	var all []condition
	for first := true; first || p.accept(','); first = false {
		key, ok := p.key()
		if !ok {
			return nil, false
		}
		if !p.accept('=') {
			return nil, p.fail(`a "=" is expected`)
		}
		c, ok := p.condition(key)
		if !ok {
			return nil, false
		}
		all = append(all, c)
	}

	return all, true
}

func (p *parser) key() (string, bool) {
	key, quoted, ok := p.quoted()
	if quoted {
		return key, ok
	}
	if p.at < len(p.text) && isDigit(p.text[p.at]) {
		return "", p.fail("a key is expected: items are known by what is in them, like [name=web], and not by their position")
	}
	if key = p.bare(notInKeys); key == "" {
		return "", p.fail(`a key, like name=web, "*", a quoted name, or "=" and a value is expected`)
	}

	return key, true
}

// condition parses the text after the "=".
func (p *parser) condition(key string) (condition, bool) {
	c := condition{key: key}
	expression := p.accept('~')
	start := p.at
	text, quoted, ok := p.quoted()
	if quoted && !ok {
		return c, false
	}
	if !quoted {
		if text = p.bare(notInValues); text == "" {
			return c, p.fail(`a value is expected, quoted if it is empty or has one of [],="`)
		}
	}
	c.text, c.quoted = text, quoted
	if expression {
		compiled, err := regexp.Compile(text)
		if err != nil {
			p.at = start

			return c, p.fail("a regular expression is expected: " + err.Error())
		}
		c.expression, c.quoted = compiled, false
	}

	return c, true
}

// isBareExpression allows a "~" at the beginning, unlike isBareValue.
func isBareExpression(s string) bool { return isBare(s, notInValues) }

// quoted reads a string in quotes. It returns quoted and not ok if the string has a quote at its
// beginning and is invalid.
func (p *parser) quoted() (text string, quoted, ok bool) {
	if p.at == len(p.text) || p.text[p.at] != '"' {
		return "", false, false
	}
	literal, err := strconv.QuotedPrefix(p.text[p.at:])
	if err == nil {
		text, err = strconv.Unquote(literal)
	}
	if err != nil {
		return "", true, p.fail("a quoted string is expected that ends with a quote and has Go's escapes")
	}
	p.at += len(literal)

	return text, true, true
}

// bare reads up to the first rune that needs quotes.
func (p *parser) bare(not string) string {
	rest := p.text[p.at:]
	if end := strings.IndexFunc(rest, func(r rune) bool { return !isPlain(r) || strings.ContainsRune(not, r) }); end >= 0 {
		rest = rest[:end]
	}
	p.at += len(rest)

	return rest
}
