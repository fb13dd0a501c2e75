package manifest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// twin reads one document the way kubectl does.
func twin(text string) (map[string]any, error) {
	j, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}

	var out any
	if err := utiljson.Unmarshal(j, &out); err != nil {
		return nil, err
	}

	m, _ := out.(map[string]any)

	return m, nil
}

// scalars are spellings on which YAML 1.1, YAML 1.2 and JSON disagree.
var scalars = []string{
	"", "~", "null", "Null", "NULL", "nUll", "y", "Y", "yes", "Yes", "YES", "yEs", "n", "N", "no", "No", "NO",
	"on", "On", "ON", "off", "Off", "OFF", "true", "True", "TRUE", "tRue", "false", "False", "FALSE",
	"0", "-0", "+0", "7", "+7", "-7", "010", "08", "0o10", "0x1F", "0X1f", "0b101", "-0b101", "1_000", "_1", "1__0",
	"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
	"-9223372036854775808", "-9223372036854775809", "9223372036854774784.0", "9007199254740993.0", "1.0", "1.", ".5", "-.5", "+.5", "1e3", "1E3", "1e-3", "1e21",
	"1.5e300", "1e999", "123456789012345678901234567890", "0.1", "-0.0", ".inf_", "0x", "0b2", "1:30", "12:30:45",
	"2001-12-14", "2001-12-14T21:59:43Z", "2001-12-14 21:59:43", "2001-13-45", "1.2.3", "v1", "1a", "-", "--", "+", ".", "..",
	"'yes'", "\"yes\"", "'1'", "\"\"", "!!str 1", "!!str yes", "!!int 5", "!!int \"5\"", "!!float 1", "!!float 1.5",
	"!!bool yes", "!!null ~", "!custom 5", "!!binary aGVsbG8=", "!!timestamp 2001-12-14", "=", "<<x", "100m", "1Gi", "5s",
}

func TestScalarsAreThoseOfKubectl(t *testing.T) {
	texts := map[string]string{}
	for _, s := range slices.Concat(scalars, []string{"1:", "no:", "-:", "-f", "1:2:"}) {
		texts["a: "+s+"\n"], texts["a: [x, "+s+"]\n"] = s, s
		texts["{a: "+s+"}\n"], texts["{"+s+": 1}\n"], texts[s+": 1\n"] = s, s, s
	}
	for text, s := range texts {
		want, err := twin(text)
		got := Parse("t.yaml", []byte(text))

		if err != nil || len(got.Errors) > 0 {
			if (err != nil) != (len(got.Errors) > 0) {
				t.Errorf("%q: kubectl says %v, got %v", s, err, got.Errors)
			}

			continue
		}

		if diff := cmp.Diff(want, got.Documents[0].Object); diff != "" {
			t.Errorf("%q (-kubectl +got):\n%s", s, diff)
		}
	}
}

func TestScalarsThatCannotBe(t *testing.T) {
	for _, s := range []string{".nan", ".inf", "-.Inf", "!!int x", "!!bool 1", "!!null 1", "!!float x", "!!binary ???"} {
		text := "a: " + s + "\n"
		if _, err := twin(text); err == nil {
			t.Errorf("%q: kubectl accepts it", s)
		}

		if got := Parse("t.yaml", []byte(text)); len(got.Errors) != 1 || got.Errors[0].Line != 1 {
			t.Errorf("%q: got %v, want one error on line 1", s, got.Errors)
		}
	}
}

// documents use what YAML has beyond scalars.
var documents = map[string]string{
	"keys of many types":          "1: a\n1.5: b\ntrue: c\nyes: d\n~x: e\n'2': f\n2001-01-01: g\n",
	"aliases":                     "a: &x {b: [1, 2]}\nc: *x\nd: [*x, *x]\n&k e: f\n*k : g\n",
	"merge":                       "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
	"merge after the key":         "a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x\n",
	"merge of a list":             "a: &x {b: 1, c: 2}\nz: &y {c: 4, e: 5}\nd:\n  <<: [*x, *y, {f: 6}]\n",
	"merge of merges":             "a: &x {b: 1}\nz: &y {<<: *x, c: 2}\nd: {<<: *y}\n",
	"merge in place":              "d:\n  <<: {a: 1}\n  b: 2\n",
	"quoted merge key":            "'<<': 1\n",
	"block scalars":               "a: |\n  x\n  y\nb: >-\n  x\n  y\nc: |+\n  z\n\n",
	"flow":                        "{a: [1, {b: c}], \"d\": 'e'}\n",
	"null values":                 "a:\nb: ~\nc: []\nd: {}\n",
	"comments":                    "# x\na: 1 # y\n# z\nb:\n  # w\n  - 1\n",
	"document end":                "a: 1\n...\n",
	"carriage returns":            "a: 1\r\nb:\r\n  - x\r\n  - |\r\n    y\r\n",
	"tabs in flow":                "{\n\t\"a\":\t1\n}\n",
	"unicode":                     "a: héllo\nb: \"\\u00e9\\n\\x41\"\n",
	"anchors defined again":       "a: &x 1\nb: *x\nc: &x 2\nd: *x\n",
	"empty merge":                 "a: {<<: {}}\n",
	"sequence at its key's level": "a:\n- 1\n- b: 2\n  c: 3\n",
}

func TestDocumentsAreThoseOfKubectl(t *testing.T) {
	for name, text := range documents {
		t.Run(name, func(t *testing.T) {
			want, err := twin(text)
			if err != nil {
				t.Fatal(err)
			}

			got := Parse("t.yaml", []byte(text))
			if len(got.Errors) > 0 || len(got.Documents) != 1 {
				t.Fatalf("got errors %v and %d documents", got.Errors, len(got.Documents))
			}

			if diff := cmp.Diff(want, got.Documents[0].Object); diff != "" {
				t.Errorf("-kubectl +got:\n%s", diff)
			}
		})
	}
}

func TestJSONIsThatOfKubectl(t *testing.T) {
	const text = `{"a": [1, 1.0, -0.5, 1e3, 9223372036854775808, true, null, "\ud83d\ude00\/", {}], "<<": {"b": 2}, "c": "x"}`

	var want map[string]any
	if err := utiljson.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}

	got := Parse("t.json", []byte(text))
	if len(got.Errors) > 0 {
		t.Fatal(got.Errors)
	}

	if diff := cmp.Diff(want, got.Documents[0].Object); diff != "" {
		t.Errorf("-kubectl +got:\n%s", diff)
	}
}

// FuzzParse reads arbitrary text: no panic, the same result twice, only JSON
// values, and lines that exist.
func FuzzParse(f *testing.F) {
	for _, text := range documents {
		f.Add([]byte(text))
	}

	for _, s := range scalars {
		f.Add([]byte("a: " + s))
	}

	f.Add([]byte("---\na: 1\n--- # x\n{\"b\": 2}{\"c\": 3}\n--- bad\nkind: List\nitems: [{kind: A}, &x {kind: B}, *x]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		one, two := Parse("x.yaml", data), Parse("x.yaml", data)
		if diff := cmp.Diff(one.Errors, two.Errors, cmp.Transformer("text", (*Error).Error)); diff != "" {
			t.Fatal(diff)
		}

		if len(one.Documents) != len(two.Documents) {
			t.Fatalf("%d documents, then %d", len(one.Documents), len(two.Documents))
		}

		for i, d := range one.Documents {
			a, err := json.Marshal(d.Object)
			if err != nil {
				t.Fatal(err)
			}

			if b, _ := json.Marshal(two.Documents[i].Object); !bytes.Equal(a, b) {
				t.Fatalf("%s, then %s", a, b)
			}

			for k := range d.Object {
				if line := d.Line(k); line < 1 {
					t.Fatalf("%q is on line %d", k, line)
				}
			}
		}
	})
}

// FuzzScalar holds plain scalars of any spelling, as values and as keys, against kubectl.
func FuzzScalar(f *testing.F) {
	for _, s := range scalars {
		f.Add(s)
	}

	f.Add("+" + strings.Repeat("a", 1100))

	spelling := regexp.MustCompile(`^[-+.~_0-9A-Za-z:]+$`)

	f.Fuzz(func(t *testing.T, s string) {
		if !spelling.MatchString(s) || strings.HasSuffix(s, ":") {
			t.Skip()
		}

		for _, text := range []string{"a: " + s + "\n", "? " + s + "\n: 1\n"} {
			want, err := twin(text)
			got := Parse("t.yaml", []byte(text))

			if (err != nil) != (len(got.Errors) > 0) {
				t.Errorf("%q: kubectl says %v, got %v", text, err, got.Errors)
			} else if err == nil {
				if diff := cmp.Diff(want, got.Documents[0].Object); diff != "" {
					t.Errorf("%q (-kubectl +got):\n%s", text, diff)
				}
			}
		}
	})
}
