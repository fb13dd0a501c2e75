package krm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/krm"
)

func TestEncode(t *testing.T) {
	cases := map[string]struct {
		reason   string
		inputs   []krm.Input
		optional []string
		want     string
	}{
		"Nothing": {
			reason: "Programs are used to null where there is nothing.",
			want:   `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":null,"functionConfig":{"apiVersion":"v1","kind":"ConfigMap","optionalRefs":[]}}`,
		},
		"Key": {
			reason:   "Every object has the key by which the program knows it, beside what was there.",
			inputs:   []krm.Input{{Key: "a", Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "x", "annotations": map[string]any{"b": "c"}}}}},
			optional: []string{"o"},
			want:     `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"kind":"ConfigMap","metadata":{"annotations":{"b":"c","eno.azure.io/input-key":"a"},"name":"x"}}],"functionConfig":{"apiVersion":"v1","kind":"ConfigMap","optionalRefs":["o"]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := krm.Encode(tc.inputs, tc.optional)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// An encoded object may be shared with a cache.
func TestEncodeLeavesInputsAlone(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"name": "x", "annotations": map[string]any{"b": "c"}}}
	if _, err := krm.Encode([]krm.Input{{Key: "a", Object: object}}, nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"metadata": map[string]any{"name": "x", "annotations": map[string]any{"b": "c"}}}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Error(diff)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"there is no object":    nil,
		"metadata is not a map": {"metadata": "x"},
	} {
		if _, err := krm.Encode([]krm.Input{{Key: "a", Object: object}}, nil); err == nil || !strings.Contains(err.Error(), `input "a": `+name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

func TestDecode(t *testing.T) {
	const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`
	const patch = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a"},"patch":{"apiVersion":"v1","kind":"ConfigMap","ops":[]}}`

	cases := map[string]struct {
		reason string
		text   string
		want   krm.Output
		err    string
	}{
		"Items": {
			reason: "An item keeps its text.",
			text:   `{"items":[ {"apiVersion":"v1", "kind":"Big","metadata":{"name":"a"},"n":12345678901234567890.10} ]}`,
			want:   krm.Output{Items: []krm.Item{{Identity: identity.New("v1", "Big", "", "a"), Manifest: `{"apiVersion":"v1","kind":"Big","metadata":{"name":"a"},"n":12345678901234567890.10}`}}},
		},
		"None": {
			reason: "No items are an answer.",
			text:   `{"kind":"ResourceList","items":[]}`,
			want:   krm.Output{Items: []krm.Item{}},
		},
		"NullItems": {
			reason: "Neither are they for programs that write null.",
			text:   `{"kind":"ResourceList","items":null}`,
			want:   krm.Output{Items: []krm.Item{}},
		},
		"Results": {
			reason: "Errors come first, and what has no place is left out.",
			text:   `{"results":[{"message":"i","severity":"info"},{"message":"e","severity":"error","tags":{"k":"v"},"file":{"path":"x"}}]}`,
			want: krm.Output{Results: []enov1.Result{
				{Message: "e", Severity: "error", Tags: map[string]string{"k": "v"}},
				{Message: "i", Severity: "info"},
			}},
		},
		"Patch": {
			reason: "A Patch is an item.",
			text:   `{"items":[` + patch + `]}`,
			want:   krm.Output{Items: []krm.Item{{Identity: identity.NewPatch("v1", "ConfigMap", "", "a"), Manifest: patch}}},
		},
		"Patches": {
			reason: "Several may change one object.",
			text:   `{"items":[` + patch + `,` + patch + `]}`,
			want: krm.Output{Items: []krm.Item{
				{Identity: identity.Identity{Kind: "ConfigMap", Name: "a", Patch: 1}, Manifest: patch}, {Identity: identity.Identity{Kind: "ConfigMap", Name: "a", Patch: 2}, Manifest: patch},
			}},
		},
		"OtherPatch":  {reason: "Only a Patch of this API may be there several times.", text: `{"items":[{"apiVersion":"b/v1","kind":"Patch","metadata":{"name":"a"}},{"apiVersion":"b/v1","kind":"Patch","metadata":{"name":"a"}}]}`, err: "items[1]: Patch a is in the list already, as items[0]"},
		"NewerPatch":  {reason: "A Patch is one in every version.", text: `{"items":[{"apiVersion":"eno.azure.io/v2","kind":"Patch","metadata":{"name":"a"}}]}`, err: "items[0]: patch.apiVersion is missing"},
		"Empty":       {reason: "Nothing is no answer.", text: " \n", err: "it is empty"},
		"Garbage":     {reason: "A person recognises what was printed.", text: "Hello!", err: `it begins with "Hello!"`},
		"Trailing":    {reason: "Nothing may follow.", text: `{"items":[]} done`, err: "as a ResourceList"},
		"Bare":        {reason: "A manifest without a list is not a list without items.", text: config, err: `it has kind "ConfigMap" and neither items nor results`},
		"NoObject":    {reason: "An item is an object.", text: `{"items":[` + config + `,7]}`, err: `items[1]: it is not an object but "7"`},
		"Null":        {reason: "Null is none.", text: `{"items":[null]}`, err: `items[0]: it is not an object`},
		"NoVersion":   {reason: "It has a version.", text: `{"items":[{"kind":"A","metadata":{"name":"a"}}]}`, err: "items[0]: apiVersion is missing"},
		"NoKind":      {reason: "It has a kind.", text: `{"items":[{"apiVersion":"v1","metadata":{"name":"a"}}]}`, err: "items[0]: kind is missing"},
		"Slash":       {reason: "No object can have that name, and could never be deleted.", text: `{"items":[{"apiVersion":"v1","kind":"A","metadata":{"name":"a/b"}}]}`, err: `items[0]: metadata.name "a/b" cannot be: it must be neither "." nor "..", and must not contain "/" or "%"`},
		"Dots":        {reason: "Nor be in that namespace.", text: `{"items":[{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":".."}}]}`, err: `items[0]: metadata.namespace ".." cannot be: it must be neither "." nor "..", and must not contain "/" or "%"`},
		"NoName":      {reason: "It has a name.", text: `{"items":[{"apiVersion":"v1","kind":"A","metadata":{"generateName":"a"}}]}`, err: "items[0]: metadata.name is missing"},
		"List":        {reason: "A list is not an object.", text: `{"items":[{"apiVersion":"v1","kind":"List","metadata":{},"items":[{},{}]}]}`, err: `items[0]: kind "List" is a list of 2 objects, not an object: write each of its items into items of the ResourceList`},
		"TypedList":   {reason: "Whatever it is a list of.", text: `{"items":[{"apiVersion":"v1","kind":"ConfigMapList","items":[{}]}]}`, err: `items[0]: kind "ConfigMapList" is a list of 1 object, not an object`},
		"NoList":      {reason: "Without items it is one of a kind that is called so.", text: `{"items":[{"apiVersion":"v1","kind":"AllowList"}]}`, err: "items[0]: metadata.name is missing"},
		"Version":     {reason: "An apiVersion has one slash at most.", text: `{"items":[{"apiVersion":"a/b/c","kind":"A","metadata":{"name":"x","namespace":"n"}}]}`, err: `items[0]: A n/x: apiVersion "a/b/c" is invalid: write GROUP/VERSION, such as "apps/v1", or "v1" for the core group`},
		"HalfVersion": {reason: "And something on both sides of it.", text: `{"items":[{"apiVersion":"apps/","kind":"A","metadata":{"name":"x"}}]}`, err: `items[0]: A x: apiVersion "apps/" is invalid`},
		"PatchTarget": {reason: "The same is so for the target of a Patch.", text: `{"items":[{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"x"},"patch":{"apiVersion":"/v1","kind":"A"}}]}`, err: `items[0]: Patch of A x: patch.apiVersion "/v1" is invalid`},
		"BadName":     {reason: "Which is a string.", text: `{"items":[{"apiVersion":"v1","kind":"A","metadata":{"name":{"a":1}}}]}`, err: "items[0]: metadata.name cannot be read"},
		"BadMetadata": {reason: "In a map.", text: `{"items":[{"apiVersion":"v1","kind":"A","metadata":[]}]}`, err: "items[0]: metadata cannot be read"},
		"Twice":       {reason: "No object is there twice.", text: `{"items":[` + config + `,` + config + `]}`, err: "items[1]: ConfigMap n/a is in the list already, as items[0]"},
		"Versions":    {reason: "Versions of a group are one object.", text: `{"items":[{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a"}},{"apiVersion":"g/v2","kind":"A","metadata":{"name":"a"}}]}`, err: "items[1]: A a is in the list already"},
		"NoItems":     {reason: "A list that lacks them is not complete.", text: `{"kind":"ResourceList"}`, err: `it has no items; write "items": []`},
		"ItemsKind":   {reason: "They are a list.", text: `{"items":{}}`, err: "items is not a list"},
		"PatchOps":    {reason: "A Patch says what to do.", text: strings.Replace(`{"items":[`+patch+`]}`, `"ops":[]`, `"ops":"x"`, 1), err: "items[0]: patch.ops cannot be read"},
		"PatchKind":   {reason: "And to what.", text: strings.Replace(`{"items":[`+patch+`]}`, `"kind":"ConfigMap"`, `"kind":""`, 1), err: "items[0]: patch.kind is missing"},
		"Large":       {reason: "There is a limit.", text: strings.Repeat(" ", krm.MaxOutput+1), err: "it is larger than 10 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := krm.Decode([]byte(tc.text))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
				}

				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s\n%v\n%s", tc.reason, err, diff)
			}
		})
	}
}

// The size of stored messages is limited, whatever a program writes.
func TestDecodeLimitsResults(t *testing.T) {
	long := strings.Repeat("é", 5000)
	var said []map[string]any
	for range 200 {
		said = append(said, map[string]any{"message": long, "severity": "info"})
	}
	data, err := json.Marshal(map[string]any{"results": append(said, map[string]any{"message": "last", "severity": "error"})})
	if err != nil {
		t.Fatal(err)
	}
	got, err := krm.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	last := got.Results[len(got.Results)-1].Message
	if got.Results[0].Message != "last" || len(got.Results[1].Message) > 2060 || last != "185 more results are left out: too many to store" {
		t.Errorf("%d results, the first is %q, the next has %d bytes, the last is %q", len(got.Results), got.Results[0].Message, len(got.Results[1].Message), last)
	}
}

// Results that take six times as many bytes when they are stored, with as many tags as
// there can be: an error is never left out, or the synthesis would count as successful.
func TestDecodeBoundsResults(t *testing.T) {
	cases := map[string]struct {
		reason   string
		severity string
		count    int
		want     int
	}{
		"Errors":   {"The first two fit without tags, and one reports the rest.", "error", 60, 3},
		"Warnings": {"Warnings take no more.", "warning", 60, 3},
		"One":      {"One is always kept.", "error", 1, 1},
	}
	long, tags := strings.Repeat("<", 2500), map[string]string{}
	for i := range 20 {
		tags[fmt.Sprint(i, long[:300])] = long[:300]
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []map[string]any
			for range tc.count {
				all = append(all, map[string]any{"message": long, "severity": tc.severity, "tags": tags})
			}
			data, err := json.Marshal(map[string]any{"items": []any{}, "results": all})
			if err != nil {
				t.Fatal(err)
			}
			got, err := krm.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := json.Marshal(got.Results)
			if err != nil || len(got.Results) != tc.want || got.Results[0].Severity != tc.severity || len(stored) > 34<<10 {
				t.Errorf("%s\n%d results of %d bytes, want %d; %v", tc.reason, len(got.Results), len(stored), tc.want, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}],"results":[{"message":"m"}]}`))
	f.Add([]byte(`{"items":[{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a"},"patch":{"apiVersion":"v1","kind":"A","ops":[{}]}}]}`))
	f.Add([]byte(`{"items":[null,7,[]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := krm.Decode(data)
		if err != nil {
			return
		}
		for i, item := range out.Items {
			if item.Kind == "" || item.Name == "" || !json.Valid([]byte(item.Manifest)) {
				t.Errorf("item %d was let through: %+v", i, item)
			}
		}
		// A decoded list can be decoded again, and is the same.
		list := struct {
			Items []json.RawMessage `json:"items"`
		}{Items: []json.RawMessage{}}
		for _, item := range out.Items {
			list.Items = append(list.Items, json.RawMessage(item.Manifest))
		}
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(list); err != nil {
			t.Fatal(err)
		}
		again, err := krm.Decode([]byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Items) != len(out.Items) {
			t.Errorf("%d items became %d", len(out.Items), len(again.Items))
		}
	})
}
