package delivery

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func value(t testing.TB, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}

	return v
}

func TestParsePath(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Fields":   {reason: "Names with dots between them.", text: "self.a.b_2", want: "self.a.b_2"},
		"Position": {reason: "An item by its position.", text: "self.a[2].b[0]", want: "self.a[2].b[0]"},
		"Double":   {reason: "A name in quotes.", text: `self.a["x.y/z"]`, want: `self.a["x.y/z"]`},
		"Single":   {reason: "Of either kind.", text: `self['a']['x-y']`, want: `self.a["x-y"]`},
		"Escaped":  {reason: "A quote can be in a name.", text: `self["a\"b"]['c\'d']["e\\f"]`, want: `self["a\"b"]["c'd"]["e\\f"]`},
		"Digits":   {reason: "A field may be called 1; a position is a number without quotes.", text: `self["1"]`, want: `self.1`},
		"Empty":    {reason: "A name may even be empty.", text: `self[""]`, want: `self[""]`},
		"Every":    {reason: "All items.", text: "self.a[*].b", want: "self.a[*].b"},
		"Match":    {reason: "Items that have something.", text: `self.a[name='x'].b[k="y"]`, want: `self.a[name="x"].b[k="y"]`},
		"Space":    {reason: "Space does not matter.", text: ` self . a [ name = 'x y' ] [ 3 ] `, want: `self.a[name="x y"][3]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := parsePath(tc.text)
			if err != nil || p.String() != tc.want {
				t.Errorf("%s\nparsePath(%q): %s, %v, want %s", tc.reason, tc.text, p, err, tc.want)
			}
		})
	}
}

func TestParsePathRejects(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Nothing":    {reason: "A path leads somewhere.", text: "", want: `at position 1 the text ends where "self" is expected`},
		"Whole":      {reason: "The whole object is another manifest.", text: "self", want: `at position 5 the text ends where "." and a field`},
		"NoSelf":     {reason: "Paths begin where expressions do.", text: "spec.a", want: `there is "s" where "self"`},
		"Selfish":    {reason: "self is a word.", text: "selfish.a", want: `where "self"`},
		"Dot":        {reason: "A dot is followed by a field.", text: "self.", want: "the text ends where a field"},
		"Dots":       {reason: "By one.", text: "self..a", want: `there is "." where a field`},
		"Dash":       {reason: "It is said how such a name is written.", text: "self.a-b", want: `["like-this"]`},
		"Open":       {reason: "A bracket is closed.", text: "self.a[2", want: `where "]"`},
		"Brackets":   {reason: "There is something in it.", text: "self.a[]", want: "a position"},
		"Negative":   {reason: "Positions begin at 0.", text: "self.a[-1]", want: "a position"},
		"NoNumber":   {reason: "A position is a number.", text: "self.a[1b]", want: "a position"},
		"Huge":       {reason: "And not a huge one.", text: "self.a[99999999999999999999]", want: "a position"},
		"Bare":       {reason: "A value is quoted.", text: "self.a[name=x]", want: "a quoted value"},
		"NoValue":    {reason: "A name alone matches nothing.", text: "self.a[name]", want: `"=" and a quoted value`},
		"OpenQuote":  {reason: "A quote is closed.", text: `self.a["b]`, want: "the closing quote"},
		"Escape":     {reason: "Its meaning is not defined.", text: `self.a["\n"]`, want: `a quote or another "\"`},
		"Unexpected": {reason: "Something is between.", text: "self.a{b}", want: `there is "{" where "." and a field, "[" or the end`},
		"Unicode":    {reason: "It is reported as it was written.", text: "self.a[é]", want: `there is "é"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := parsePath(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nparsePath(%q): %s, %v, want %s", tc.reason, tc.text, p, err, tc.want)
			}
		})
	}
}

func TestPathSet(t *testing.T) {
	cases := map[string]struct {
		reason, object, path, value, want string
		state                             OverrideState
	}{
		"Field":        {reason: "It is replaced.", object: "{a: {b: 1}}", path: "self.a.b", value: "2", want: "{a: {b: 2}}", state: Active},
		"NewField":     {reason: "The last step may be new.", object: "{a: {}}", path: `self.a["x-y"]`, value: "{c: [1]}", want: "{a: {x-y: {c: [1]}}}", state: Active},
		"Delete":       {reason: "null removes it.", object: "{a: {b: 1, c: 1}}", path: "self.a.b", value: "null", want: "{a: {c: 1}}", state: Active},
		"DeleteNone":   {reason: "What is not there need not go.", object: "{a: {}}", path: "self.a.b", value: "null", want: "{a: {}}", state: Active},
		"NoParent":     {reason: "Nothing is made on the way.", object: "{a: {}}", path: "self.a.b.c", value: "1", want: "{a: {}}", state: MissingParent},
		"NullParent":   {reason: "null is nothing.", object: "{a: {b: null}}", path: "self.a.b.c", value: "1", want: "{a: {b: null}}", state: MissingParent},
		"Scalar":       {reason: "A number has no fields.", object: "{a: 1}", path: "self.a.b", value: "1", want: "{a: 1}", state: PathTypeMismatch},
		"FieldOfList":  {reason: "Nor has a list.", object: "{a: [1]}", path: "self.a.b", value: "1", want: "{a: [1]}", state: PathTypeMismatch},
		"ItemOfObject": {reason: "An object has no items.", object: "{a: {}}", path: "self.a[0]", value: "1", want: "{a: {}}", state: PathTypeMismatch},
		"Item":         {reason: "An item by its position.", object: "{a: [1, 2]}", path: "self.a[1]", value: "3", want: "{a: [1, 3]}", state: Active},
		"DeleteItem":   {reason: "Those behind it move up.", object: "{a: [1, 2, 3]}", path: "self.a[1]", value: "null", want: "{a: [1, 3]}", state: Active},
		"Range":        {reason: "Nothing is appended.", object: "{a: [1, 2]}", path: "self.a[2]", value: "3", want: "{a: [1, 2]}", state: IndexOutOfRange},
		"Through":      {reason: "A path goes on behind an item.", object: "{a: [{b: 1}, {b: 1}]}", path: "self.a[1].b", value: "2", want: "{a: [{b: 1}, {b: 2}]}", state: Active},
		"Every":        {reason: "All items are changed.", object: "{a: [{b: 1}, {}]}", path: "self.a[*].b", value: "{c: 1}", want: "{a: [{b: {c: 1}}, {b: {c: 1}}]}", state: Active},
		"EveryDelete":  {reason: "All items go.", object: "{a: [1, 2]}", path: "self.a[*]", value: "null", want: "{a: []}", state: Active},
		"EveryNone":    {reason: "There is no item to change.", object: "{a: []}", path: "self.a[*].b", value: "1", want: "{a: []}", state: MissingParent},
		"EverySome":    {reason: "Those that can be are changed, and it is said that one could not.", object: "{a: [{b: {}}, {}]}", path: "self.a[*].b.c", value: "1", want: "{a: [{b: {c: 1}}, {}]}", state: MissingParent},
		"Match":        {reason: "The item with that name.", object: "{a: [{name: x}, {name: z}, 1]}", path: "self.a[name='z'].v", value: "1", want: "{a: [{name: x}, {name: z, v: 1}, 1]}", state: Active},
		"MatchDelete":  {reason: "It goes as a whole.", object: "{a: [{name: x}, {name: z}]}", path: "self.a[name='x']", value: "null", want: "{a: [{name: z}]}", state: Active},
		"MatchNone":    {reason: "There is no such item.", object: "{a: [{name: x}, {name: 1}]}", path: "self.a[name='1'].v", value: "1", want: "{a: [{name: x}, {name: 1}]}", state: MissingParent},
		"Nested":       {reason: "Lists can be in lists.", object: "{a: [[1], [2, 3]]}", path: "self.a[*][0]", value: "null", want: "{a: [[], [3]]}", state: Active},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := parsePath(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			o, ok := value(t, tc.object).(map[string]any)
			if !ok {
				t.Fatal("it is no object")
			}
			if got := p.set(o, value(t, tc.value)); got != tc.state {
				t.Errorf("%s\nset(...): %s, want %s", tc.reason, got, tc.state)
			}
			if diff := cmp.Diff(value(t, tc.want), any(o)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPathManaged(t *testing.T) {
	const live = `
apiVersion: v1
kind: T
metadata:
  name: a
  annotations: {ours: x, theirs: x}
  managedFields:
  - {manager: eno, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:annotations": {"f:ours": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {}, "f:list": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:image": {}}}}}}
  - {manager: eno, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:updated": {}}}}
  - {manager: eno, operation: Apply, subresource: scale, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:scaled": {}}}}
  - {manager: other, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:annotations": {"f:theirs": {}}}, "f:spec": {"f:replicas": {}, "f:theirs": {}, "f:list": {'k:{"name":"z"}': {".": {}, "f:name": {}, "f:image": {}}}}}}
spec: {replicas: 1, theirs: 1, updated: 1, scaled: 1, unowned: 1, selector: {a: {b: 1}}, list: [{name: z, image: "1"}, {name: x, image: "1"}], loose: [{name: x}]}
`
	cases := map[string]struct {
		reason, path string
		want         bool
	}{
		"Ours":      {reason: "We applied it, and so did others.", path: "self.spec.replicas", want: true},
		"Theirs":    {reason: "Only others did.", path: "self.spec.theirs"},
		"Unowned":   {reason: "No manager did.", path: "self.spec.unowned"},
		"Updated":   {reason: "What we wrote in another way an apply does not take back.", path: "self.spec.updated"},
		"Scaled":    {reason: "Nor what was written through a subresource.", path: "self.spec.scaled"},
		"Absent":    {reason: "It is not there.", path: "self.spec.absent.far"},
		"Part":      {reason: "Something in it is ours.", path: "self.spec", want: true},
		"Atomic":    {reason: "It is held as a whole.", path: "self.spec.selector.a.b", want: true},
		"Granular":  {reason: "Annotations are not.", path: "self.metadata.annotations.theirs"},
		"Quoted":    {reason: "A name in quotes is a name.", path: "self.metadata.annotations['ours']", want: true},
		"Position":  {reason: "Items are not in the order of entries.", path: "self.spec.list[1].image", want: true},
		"Position0": {reason: "The first is theirs.", path: "self.spec.list[0].image"},
		"Far":       {reason: "There is no such item.", path: "self.spec.list[2].image"},
		"Match":     {reason: "An item by its name.", path: "self.spec.list[name='x'].image", want: true},
		"NoMatch":   {reason: "That is theirs.", path: "self.spec.list[name='z'].image"},
		"Every":     {reason: "One of them is ours.", path: "self.spec.list[*].image", want: true},
		"Unknown":   {reason: "No manager owns anything of the list.", path: "self.spec.loose[0].name"},
		"NoList":    {reason: "It has no items.", path: "self.spec[0]"},
	}
	object, ok := value(t, live).(map[string]any)
	if !ok {
		t.Fatal("it is no object")
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := parsePath(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.managed(&unstructured.Unstructured{Object: object}, Manager); got != tc.want {
				t.Errorf("%s\nmanaged(...): %t", tc.reason, got)
			}
			if p.managed(nil, Manager) {
				t.Error("what is not there is managed")
			}
		})
	}
}

// FuzzPath reads what was read and written again as the same, and can do no harm
// to an object.
func FuzzPath(f *testing.F) {
	const object = `{"a": {"b": [{"name": "x", "c": 1}, [1, null], null, 2]}, "": {"x-y": "z"}}`
	for _, text := range []string{"self", "self.a.b[0].c", "self.a.b[*].c", "self.a.b[name='x']", `self[""]["x-y"]`, "self.a.b[1][1].q", `self['\'']`, "self.a[", "self . a", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePath(text)
		if err != nil {
			return
		}
		again, err := parsePath(p.String())
		if err != nil || again.String() != p.String() || len(again) != len(p) {
			t.Fatalf("%q is %s, and then %s, %v", text, p, again, err)
		}
		for _, v := range []any{nil, map[string]any{"k": int64(1)}} {
			o, ok := value(t, object).(map[string]any)
			if !ok {
				t.Fatal("it is no object")
			}
			if state := p.set(o, v); state == Inactive || state == "" {
				t.Errorf("%s: %q", p, state)
			}
			if _, err := json.Marshal(o); err != nil {
				t.Error(err)
			}
			p.managed(&unstructured.Unstructured{Object: o}, Manager)
		}
	})
}
