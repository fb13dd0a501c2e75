package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"
)

// longestWord is that of the plain scalars that are not strings in YAML 1.1 and consist of
// letters: false.
const longestWord = 5

// A resolver finds the values of scalars. Whatever may be something else than a string is
// resolved by sigs.k8s.io/yaml, as it is in kubectl, once for each text.
type resolver struct{ known map[string]map[string]any }

// scalar returns the value of a scalar node as kubectl understands it: nil, bool, int64,
// float64 or string. Quoted and block scalars are strings whatever they look like, unless
// a tag says otherwise.
func (r *resolver) scalar(n *yaml.Node) (any, error) {
	text, isString := source(n)
	if isString {
		return n.Value, nil
	}

	if n.Tag == jsonNumber {
		return number(n.Value)
	}

	values, err := r.resolve("a: " + text)
	if err == nil {
		return values["a"], nil
	}

	return nil, explainScalar(n, err)
}

// key returns the string that a scalar is as the key of a JSON object.
func (r *resolver) key(n *yaml.Node) (string, error) {
	text, isString := source(n)
	if isString {
		return n.Value, nil
	}

	// Without the question mark, a key may not be longer than 1,024 characters.
	if keys, err := r.resolve("? " + text + "\n: 0\n"); err == nil {
		for key := range keys {
			return key, nil
		}
	}

	v, err := r.scalar(n)
	if err != nil {
		return "", err
	}

	return "", fmt.Errorf("%v cannot be a key", v)
}

// resolve reads a mapping of one key.
func (r *resolver) resolve(text string) (map[string]any, error) {
	if out, ok := r.known[text]; ok {
		return out, nil
	}

	j, err := kubeyaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}

	out, err := decode(j)
	if err != nil {
		return nil, err
	}

	if r.known == nil {
		r.known = map[string]map[string]any{}
	}

	r.known[text] = out

	return out, nil
}

// decode reads a JSON object of scalars. Whole numbers are int64, if they fit.
func decode(j []byte) (map[string]any, error) {
	var out map[string]any

	d := json.NewDecoder(bytes.NewReader(j))
	d.UseNumber()

	if err := d.Decode(&out); err != nil {
		return nil, err
	}

	for key, v := range out {
		if text, ok := v.(json.Number); ok {
			n, err := number(text.String())
			if err != nil {
				return nil, err
			}

			out[key] = n
		}
	}

	return out, nil
}

// number returns the value of a number of JSON.
func number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}

	return strconv.ParseFloat(text, 64)
}

// source returns how a scalar is written in a document of one line, or that it is a string
// for sure.
func source(n *yaml.Node) (text string, isString bool) {
	if n.Style&yaml.TaggedStyle != 0 {
		switch n.ShortTag() {
		case "!!binary", "!!null", "!!bool", "!!int", "!!float":
			quoted, err := json.Marshal(n.Value) // JSON is YAML

			return n.ShortTag() + " " + string(quoted), err != nil
		default: // tags that nobody knows leave a string, as they do in kubectl
			return "", n.Tag != jsonNumber
		}
	}

	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

	return n.Value, n.Style&quoted != 0 || isPlainString(n.Value)
}

// isPlainString reports whether an unquoted scalar is neither a number nor one of the words
// of YAML 1.1, which begin with these letters.
func isPlainString(s string) bool {
	switch {
	case s == "":
		return false
	case strings.ContainsAny(s, " \t\r\n"), s == "-", strings.HasSuffix(s, ":"): // which flow collections allow
		return true
	case strings.ContainsRune("+-.0123456789", rune(s[0])):
		return false
	default:
		return len(s) > longestWord || !strings.ContainsRune("~fFnNoOtTyY", rune(s[0]))
	}
}

// explainScalar says why a scalar has no value.
func explainScalar(n *yaml.Node, err error) error {
	if number, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		return fmt.Errorf("%s is not a number that JSON can hold", number.Str)
	}

	if n.ShortTag() == "!!binary" {
		return errors.New("!!binary value is not base64")
	}

	return fmt.Errorf("%q is not a value of type %s", n.Value, n.ShortTag())
}
