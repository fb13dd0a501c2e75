package manifest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// words are the plain scalars that are not strings in YAML 1.1.
var words = map[string]any{
	"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil,
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true,
	"on": true, "On": true, "ON": true, "true": true, "True": true, "TRUE": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false,
	"off": false, "Off": false, "OFF": false, "false": false, "False": false, "FALSE": false,
	".nan": math.NaN(), ".NaN": math.NaN(), ".NAN": math.NaN(),
	".inf": math.Inf(1), ".Inf": math.Inf(1), ".INF": math.Inf(1),
	"+.inf": math.Inf(1), "+.Inf": math.Inf(1), "+.INF": math.Inf(1),
	"-.inf": math.Inf(-1), "-.Inf": math.Inf(-1), "-.INF": math.Inf(-1),
}

var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// scalar returns the value of a scalar node as kubectl understands it: nil, bool, int64, uint64,
// float64 or string. Quoted and block scalars are strings whatever they contain, unless they have
// another tag.
func scalar(n *yaml.Node) (any, error) {
	if n.Style&yaml.TaggedStyle != 0 {
		return tagged(n.ShortTag(), n)
	}

	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Style&quoted != 0 {
		return n.Value, nil
	}

	return plain(n.Value), nil
}

// plain resolves an unquoted scalar by the rules of YAML 1.1.
func plain(s string) any {
	if v, ok := words[s]; ok {
		return v
	}

	switch c := s[0]; {
	case c == '.':
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	case c == '+' || c == '-' || '0' <= c && c <= '9':
		return number(s)
	}

	return s
}

// number resolves a scalar that begins like a number. Base prefixes and
// underscores are allowed; a leading zero means octal if it can.
func number(s string) any {
	digits := strings.ReplaceAll(s, "_", "")

	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return i
	}

	if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return u
	}

	if decimal.MatchString(digits) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}

	return s
}

// tagged resolves a scalar with an explicit tag. An unknown tag yields a string, as in kubectl.
func tagged(tag string, n *yaml.Node) (any, error) {
	switch tag {
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			return nil, errors.New("!!binary value is not base64")
		}

		return string([]rune(string(b))), nil
	case jsonNumber:
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return i, nil
		}

		return strconv.ParseFloat(n.Value, 64)
	case "!!null", "!!bool", "!!int", "!!float":
		return convert(tag, n.Value)
	default:
		return n.Value, nil
	}
}

// convert resolves a scalar that must be of one of YAML's own types.
func convert(tag, s string) (any, error) {
	v := plain(s)
	if i, ok := v.(int64); ok && tag == "!!float" {
		return float64(i), nil
	}

	if tagOf(v) != tag {
		return nil, fmt.Errorf("%q is not a value of type %s", s, tag)
	}

	return v, nil
}

func tagOf(v any) string {
	switch v.(type) {
	case nil:
		return "!!null"
	case bool:
		return "!!bool"
	case int64, uint64:
		return "!!int"
	case float64:
		return "!!float"
	default:
		return "!!str"
	}
}

// jsonValue makes of a scalar what is left of it after a journey through
// JSON, which has one kind of number and no infinities.
func jsonValue(v any) (any, error) {
	switch v := v.(type) {
	case uint64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is not a number that JSON can hold", v)
		}

		// Large floats are written with their shortest digits, so the integer
		// that is read back need not be int64(v).
		if i, err := strconv.ParseInt(strconv.FormatFloat(v, 'f', -1, 64), 10, 64); err == nil {
			return i, nil
		}

		return v, nil
	default:
		return v, nil
	}
}

// keyText returns the string that a scalar is as the key of a JSON object.
func keyText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return floatKey(v), nil
	default:
		return "", fmt.Errorf("%v cannot be a key", v)
	}
}

func floatKey(f float64) string {
	switch s := strconv.FormatFloat(f, 'g', -1, 32); s {
	case "+Inf":
		return ".inf"
	case "-Inf":
		return "-.inf"
	case "NaN":
		return ".nan"
	default:
		return s
	}
}
