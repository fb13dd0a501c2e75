package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/internal/manifest"
)

// rules is a CRD with what PodGroup lacks: rules, defaults, list types, an unserved version.
const rules = `
spec:
  group: example.com
  scope: Cluster
  names: {kind: Rule, plural: rules}
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [low]
            x-kubernetes-validations:
            - rule: self.low <= self.high
              message: low must not be above high
            properties:
              low: {type: integer}
              high: {type: integer, default: 5}
              names: {type: array, maxItems: 3, items: {type: string, maxLength: 3}, x-kubernetes-list-type: set}
              flag: {type: boolean}
              block: {type: string, format: cidr}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              inner: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, properties: {n: {type: integer}}}
  - name: v0
    served: false
    schema: {openAPIV3Schema: {type: object}}
  - name: v2
    served: true
`

func definition(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}

	return crd
}

func podGroups(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()

	crd, ok := crds.ByKind("scheduling.run.ai", "PodGroup")
	if !ok {
		t.Fatal("no PodGroup")
	}

	return crd
}

// short is a violation on one line.
func short(all []Violation) []string {
	var out []string

	for _, v := range all {
		line := v.Reason + " " + v.Field + ": " + v.Message
		if v.Fix != "" {
			line += " (" + v.Fix + ")"
		}

		out = append(out, line)
	}

	return out
}

func TestPodGroup(t *testing.T) {
	const head = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\n"

	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"Valid":        {reason: "everything that the API has is accepted", text: "metadata: {name: a, labels: {x: z}}\nspec: {minMember: 0, minSubGroup: null, queue: q, preemptibility: preemptible, subGroups: [{name: a, parent: b}]}\nstatus: {phase: x}"},
		"Bare":         {reason: "a name is enough", text: "metadata: {name: a}"},
		"GenerateName": {reason: "the server can make the name", text: "metadata: {generateName: a-}"},
		"NoName":       {reason: "but not out of nothing", text: "metadata: {}", want: []string{"FieldValueRequired metadata.name: name or generateName is required (add it)"}},
		"NoMetadata":   {reason: "nor without metadata", text: "spec: {}", want: []string{"FieldValueRequired metadata.name: name or generateName is required (add it)"}},
		"NullMetadata": {reason: "null is none", text: "metadata:", want: []string{"FieldValueRequired metadata.name: name or generateName is required (add it)"}},
		"BadMetadata":  {reason: "metadata is an object, and that is said once", text: "metadata: [x]", want: []string{"FieldValueTypeInvalid metadata: must be an object, not a list"}},
		"UnknownFields": {
			reason: "strict validation names every unknown field",
			text:   "metadata: {name: a, lables: {}}\nspec: {minmember: 1, subGroups: [{name: a, minMembr: 1}], bogus: {a: 1}}\nstatus: {foo: 1}\nzzz: 1",
			want: []string{
				`FieldUnknown metadata.lables: unknown field "lables" (did you mean "labels"?)`,
				`FieldUnknown spec.bogus: unknown field "bogus" (remove it)`,
				`FieldUnknown spec.minmember: unknown field "minmember" (did you mean "minMember"?)`,
				`FieldUnknown spec.subGroups[0].minMembr: unknown field "minMembr" (did you mean "minMember"?)`,
				`FieldUnknown status.foo: unknown field "foo" (remove it)`,
				`FieldUnknown zzz: unknown field "zzz" (remove it)`,
			},
		},
		"Types": {
			reason: "types are those of the schema",
			text:   "metadata: {name: a}\nspec: {minMember: '1', queue: 1, markUnschedulable: 'true', subGroups: [x, {name: 1}], topologyConstraint: 1.5}",
			want: []string{
				"FieldValueTypeInvalid spec.markUnschedulable: must be of type boolean, not string (write true or false without quotes)",
				"FieldValueTypeInvalid spec.minMember: must be of type integer, not string (write a whole number without quotes)",
				"FieldValueTypeInvalid spec.queue: must be of type string, not integer (put the value in quotes)",
				"FieldValueTypeInvalid spec.subGroups[0]: must be of type object, not string",
				"FieldValueTypeInvalid spec.subGroups[1].name: must be of type string, not integer (put the value in quotes)",
				"FieldValueTypeInvalid spec.topologyConstraint: must be of type object, not number",
			},
		},
		"Values": {
			reason: "so are minimums, enumerations and what is required",
			text:   "metadata: {name: a}\nspec: {minMember: -1, preemptibility: no-way, subGroups: [{parent: x}, {name: ''}]}",
			want: []string{
				"FieldValueInvalid spec.minMember: should be greater than or equal to 0",
				`FieldValueNotSupported spec.preemptibility: "no-way" is not supported (use one of "preemptible", "non-preemptible")`,
				"FieldValueRequired spec.subGroups[0].name: is required (add it)",
				"FieldValueInvalid spec.subGroups[1].name: should be at least 1 chars long",
			},
		},
		"OutOfRange": {
			reason: "a number that its field cannot hold is reported with the field",
			text:   "metadata: {name: a}\nspec: {minMember: 4294967297}",
			want:   []string{"FieldValueInvalid spec.minMember: is out of the range of an integer of format int32 (use a smaller number)"},
		},
		"Labels": {
			reason: "labels and annotations are strings",
			text:   "metadata: {name: a, labels: {a: 1, b: yes}, annotations: {c: [x]}}",
			want: []string{
				"FieldValueTypeInvalid metadata.annotations[c]: must be a string, not a list (put the value in quotes)",
				"FieldValueTypeInvalid metadata.labels[a]: must be a string, not a number (put the value in quotes)",
				"FieldValueTypeInvalid metadata.labels[b]: must be a string, not a boolean (put the value in quotes)",
			},
		},
		"MetadataTypes": {
			reason: "the rest of metadata has types too",
			text:   "metadata: {name: 5, finalizers: {a: b}, creationTimestamp: x}",
			want: []string{
				"FieldValueTypeInvalid metadata.creationTimestamp: cannot be a string",
				"FieldValueTypeInvalid metadata.finalizers: cannot be an object",
				"FieldValueRequired metadata.name: name or generateName is required (add it)",
				"FieldValueTypeInvalid metadata.name: must be a string, not a number (put the value in quotes)",
			},
		},
		"StatusIsDropped": {reason: "what a create does not store is not judged", text: "metadata: {name: a}\nstatus: {running: x}"},
	}

	v := New(podGroups(t))

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := manifest.Parse("a.yaml", []byte(head+tc.text)).Documents[0]

			got, err := v.Validate(t.Context(), "v2alpha2", d.Object)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, short(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if again := manifest.Parse("a.yaml", []byte(head+tc.text)).Documents[0]; !cmp.Equal(again.Object, d.Object) {
				t.Errorf("the object was changed:\n%s", cmp.Diff(again.Object, d.Object))
			}
		})
	}
}

func TestNames(t *testing.T) {
	v := New(podGroups(t))

	got, err := v.Validate(t.Context(), "v2alpha2", map[string]any{
		"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": map[string]any{"name": "A_b"},
	})
	if err != nil || len(got) != 1 || got[0].Field != "metadata.name" || got[0].Value != "A_b" ||
		!strings.HasPrefix(got[0].Message, "a lowercase RFC 1123 subdomain") {
		t.Errorf("got %+v, %v, want the words of the API server about the name", got, err)
	}
}

func TestRules(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Rule\n"

	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"Valid":   {reason: "defaults are there when rules run", text: "metadata: {name: a}\nspec: {low: 5, any: {x: 1}, inner: {apiVersion: v1, kind: A}}"},
		"Rule":    {reason: "rules have their own words", text: "metadata: {name: a}\nspec: {low: 6}", want: []string{"FieldValueInvalid spec: low must not be above high"}},
		"Blocked": {reason: "rules do not run on what the schema refuses", text: "metadata: {name: a}\nspec: {high: 1}", want: []string{"FieldValueRequired spec.low: is required (add it)"}},
		"Lists": {
			reason: "lists and strings have a length",
			text:   "metadata: {name: a}\nspec: {low: 1, names: [a, c, long, b]}",
			want: []string{
				"FieldValueTooMany spec.names: too many: must have at most 3 items",
				"FieldValueTooLong spec.names[2]: too long: may not be more than 3 bytes",
			},
		},
		"Format": {
			reason: "a format is asked of strings, and is not called a type",
			text:   "metadata: {name: a}\nspec: {low: 1, block: ten}",
			want:   []string{"FieldValueInvalid spec.block: must be a valid cidr"},
		},
		"FormatType": {
			reason: "what is no string has the wrong type, not the wrong format",
			text:   "metadata: {name: a}\nspec: {low: 1, block: 10.5}",
			want:   []string{"FieldValueTypeInvalid spec.block: must be of type string, not number (put the value in quotes)"},
		},
		"Duplicate": {
			reason: "sets have no duplicates",
			text:   "metadata: {name: a}\nspec: {low: 1, names: [a, a]}",
			want:   []string{"FieldValueDuplicate spec.names[1]: duplicate value"},
		},
		"Namespace": {
			reason: "an object of the cluster has no namespace",
			text:   "metadata: {name: a, namespace: b}\nspec: {low: 1}",
			want:   []string{"FieldValueForbidden metadata.namespace: forbidden: not allowed on this type"},
		},
		"Embedded": {
			reason: "an embedded object needs to say what it is, and its metadata is known",
			text:   "metadata: {name: a}\nspec: {low: 1, inner: {kind: A, metadata: {nme: x}}}",
			want: []string{
				"FieldValueRequired spec.inner.apiVersion: is required (add it)",
				`FieldUnknown spec.inner.metadata.nme: unknown field "nme" (remove it)`,
			},
		},
	}

	v := New(definition(t, rules))

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := v.Validate(t.Context(), "v1", manifest.Parse("a.yaml", []byte(head+tc.text)).Documents[0].Object)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, short(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	v := New(definition(t, rules))
	if diff := cmp.Diff([]string{"v1", "v2"}, v.Served()); diff != "" {
		t.Errorf("versions that are not served do not count (-want +got):\n%s", diff)
	}

	for version, want := range map[string]string{
		"v0": `version "v0" is not served`,
		"v2": "cannot use version v2: it has no schema",
	} {
		if _, err := v.Validate(t.Context(), version, map[string]any{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", version, err, want)
		}
	}
}

func TestBadDefinition(t *testing.T) {
	v := New(definition(t, "spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, $ref: x}}}]}"))
	if _, err := v.Validate(t.Context(), "v1", map[string]any{}); err == nil || !strings.Contains(err.Error(), "cannot use the schema of version v1") {
		t.Errorf("got %v, want an error about the schema", err)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"minMember", "minSubGroup", "name", "parent", "queue"}

	for name, want := range map[string]string{
		"MinMember": "minMember", "minMembers": "minMember", "nam": "name", "parnet": "parent", "parents": "parent",
		"que": "", "queu": "queue", "": "", "x": "", "subGroup": "",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
