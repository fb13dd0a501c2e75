package fields

import (
	"encoding/json"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// FormatPath writes a path in the grammar of scopes. [ParseScope] reads it as a scope that matches
// the path, except for paths with positions in lists, which scopes do not have.
func FormatPath(p fieldpath.Path) string {
	var b strings.Builder
	for _, pe := range p {
		switch {
		case pe.FieldName != nil:
			writeName(&b, *pe.FieldName)
		case pe.Key != nil:
			b.WriteByte('[')
			for i, f := range *pe.Key {
				if i > 0 {
					b.WriteByte(',')
				}
				writeBareOr(&b, f.Name, isBareKey)
				b.WriteByte('=')
				writeValue(&b, f.Value)
			}
			b.WriteByte(']')
		case pe.Value != nil:
			b.WriteString("[=")
			writeValue(&b, *pe.Value)
			b.WriteByte(']')
		case pe.Index != nil:
			b.WriteString("[" + strconv.Itoa(*pe.Index) + "]")
		}
	}

	return b.String()
}

// FormatPaths writes all paths of a set, in the set's order. Nil is the empty set.
func FormatPaths(set *fieldpath.Set) []string {
	var all []string
	if set != nil {
		set.Iterate(func(p fieldpath.Path) { all = append(all, FormatPath(p)) })
	}

	return all
}

// writeName appends one field name: with a dot if it needs no quotes, in brackets and quotes
// otherwise.
func writeName(b *strings.Builder, name string) {
	if !isBareName(name) {
		b.WriteString("[" + strconv.Quote(name) + "]")

		return
	}
	if b.Len() > 0 {
		b.WriteByte('.')
	}
	b.WriteString(name)
}

func writeBareOr(b *strings.Builder, text string, bare func(string) bool) {
	if !bare(text) {
		text = strconv.Quote(text)
	}
	b.WriteString(text)
}

// writeValue appends the value of a key. It quotes a string that would be read as another type.
func writeValue(b *strings.Builder, v value.Value) {
	text, isString := valueText(v)
	switch {
	case !isString && isBareValue(text):
		b.WriteString(text)
	case isString && !looksTyped(text):
		writeBareOr(b, text, isBareValue)
	default:
		b.WriteString(strconv.Quote(text))
	}
}

// valueText returns the text that conditions of scopes compare with, and whether the value is a
// string. Lists and maps are not keys in Kubernetes; their text is their JSON.
func valueText(v value.Value) (text string, isString bool) {
	switch {
	case v.IsString():
		return v.AsString(), true
	case v.IsInt():
		return strconv.FormatInt(v.AsInt(), 10), false
	case v.IsFloat():
		return strconv.FormatFloat(v.AsFloat(), 'g', -1, 64), false
	case v.IsBool():
		return strconv.FormatBool(v.AsBool()), false
	}
	data, err := json.Marshal(v.Unstructured())
	if err != nil {
		return "", false
	}

	return string(data), false
}

// looksTyped reports whether a text without quotes would be read as a number, a boolean or null.
func looksTyped(text string) bool {
	_, err := strconv.ParseFloat(text, 64)

	return err == nil || text == "true" || text == "false" || text == "null"
}

// The characters that need quotes in a scope. A "/" needs them in names because it nearly always
// occurs in a key with dots, which must be quoted: without quotes the dots would separate fields.
const (
	notInNames  = ".[]\"=,*/"
	notInKeys   = ".[]\"=,*/~"
	notInValues = "[]\"=,"
)

func isBareName(s string) bool { return isBare(s, notInNames) }

// isBareKey rejects keys that begin with a digit, like a position.
func isBareKey(s string) bool { return isBare(s, notInKeys) && !isDigit(s[0]) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isBareValue(s string) bool { return isBare(s, notInValues) && s[0] != '~' }

func isBare(s, not string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isPlain(r) || strings.ContainsRune(not, r) })
}

// isPlain is false for space, for runes that cannot be printed, and for bytes that are not UTF-8.
func isPlain(r rune) bool { return r != ' ' && r != '\uFFFD' && strconv.IsPrint(r) }
