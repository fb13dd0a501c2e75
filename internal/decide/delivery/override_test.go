package delivery_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

// overridden is a manifest with overrides, which are YAML.
func overridden(t *testing.T, overrides string) enov1.Manifest {
	t.Helper()
	o := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: n, annotations: {}}, spec: {list: [{name: x, cpu: 1}]}}`)
	text, err := json.Marshal(object(t, "{all: "+overrides+"}")["all"])
	if err != nil {
		t.Fatal(err)
	}
	o["metadata"].(map[string]any)["annotations"] = map[string]any{enov1.AnnotationOverrides: string(text)}
	o["spec"].(map[string]any)["replicas"] = 4
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}

	return enov1.Manifest{Manifest: string(data)}
}

func TestOverride(t *testing.T) {
	const live = `
{metadata: {annotations: {scale: manual}, managedFields: [{manager: eno, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:min": {}}}}]},
spec: {replicas: 7, min: 1, cpu: 500m, big: 2, ratio: 0.5, args: [a, 1], none: null}}`
	composition := &metav1.ObjectMeta{Namespace: "n", Name: "app", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"owner": "true"}}
	deleting := composition.DeepCopy()
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	one := func(fields string) string { return "[{path: self.spec.replicas, " + fields + "}]" }
	type result struct {
		States   string
		Replicas any
	}
	cases := map[string]struct {
		reason, overrides string
		absent            bool
		composition       *metav1.ObjectMeta
		want              result
	}{
		"Always":      {reason: "Without a condition it always holds.", overrides: one("value: 3"), want: result{"Active", int64(3)}},
		"Empty":       {reason: "An empty condition is none.", overrides: one("condition: '', value: 3"), want: result{"Active", int64(3)}},
		"Null":        {reason: "null removes it.", overrides: one("value: null"), want: result{"Active", nil}},
		"Nothing":     {reason: "No value is null.", overrides: one("condition: 'true'"), want: result{"Active", nil}},
		"Holds":       {reason: "The live object is asked.", overrides: one("condition: self.metadata.annotations.scale == 'manual', value: 3"), want: result{"Active", int64(3)}},
		"HoldsNot":    {reason: "And is false.", overrides: one("condition: self.spec.replicas > 7, value: 3"), want: result{"Inactive", int64(4)}},
		"Missing":     {reason: "Who asks for what is not there gets no answer, and the override is passed over.", overrides: one("condition: self.status.phase == 'x', value: 3"), want: result{"InvalidCondition", int64(4)}},
		"Optional":    {reason: "That can be asked in another way.", overrides: one("condition: \"self.?status.?phase.orValue('') != 'x'\", value: 3"), want: result{"Active", int64(3)}},
		"NoBoolean":   {reason: "A number is no answer.", overrides: one("condition: '1', value: 3"), want: result{"InvalidCondition", int64(4)}},
		"Absent":      {reason: "Of an object that is not there all is empty.", overrides: one("condition: '!has(self.spec)', value: 3"), absent: true, want: result{"Active", int64(3)}},
		"AbsentValue": {reason: "And no value can be made of it.", overrides: one("valueExpression: '3'"), absent: true, want: result{"Inactive", int64(4)}},
		"Expression":  {reason: "A value of the live object is kept.", overrides: one("valueExpression: self.spec.replicas"), want: result{"Active", int64(7)}},
		"Computed":    {reason: "Or one is made of it.", overrides: one("valueExpression: 'math.greatest(self.spec.replicas - 2, self.spec.min)'"), want: result{"Active", int64(5)}},
		"Whole":       {reason: "Values of any kind are kept.", overrides: one("valueExpression: '{\"a\": self.spec.args, \"b\": self.spec.ratio, \"c\": self.spec.none, \"d\": true}'"), want: result{"Active", map[string]any{"a": []any{"a", int64(1)}, "b": 0.5, "c": nil, "d": true}}},
		"Finds":       {reason: "null is nothing that was found.", overrides: one("valueExpression: self.spec.none"), want: result{"Inactive", int64(4)}},
		"FindsNot":    {reason: "Nor is an optional value that is not there.", overrides: one("valueExpression: 'self.spec.?never'"), want: result{"Inactive", int64(4)}},
		"FindsIt":     {reason: "One that is there is one.", overrides: one("valueExpression: 'self.spec.?replicas'"), want: result{"Active", int64(7)}},
		"Fails":       {reason: "What cannot be evaluated is passed over.", overrides: one("valueExpression: self.spec.never"), want: result{"InvalidValueExpression", int64(4)}},
		"NoJSON":      {reason: "So is what JSON has not.", overrides: one("valueExpression: 'duration(\"1s\")'"), want: result{"InvalidValueExpression", int64(4)}},
		"NoJSONKey":   {reason: "Or not as a key.", overrides: one("valueExpression: '{1: 2}'"), want: result{"InvalidValueExpression", int64(4)}},
		"NoJSONItem":  {reason: "Or in a list.", overrides: one("valueExpression: '[1u]'"), want: result{"InvalidValueExpression", int64(4)}},
		"Infinite":    {reason: "Or as a number.", overrides: one("valueExpression: '1.0 / 0.0'"), want: result{"InvalidValueExpression", int64(4)}},
		"Composition": {reason: "The composition is asked.", overrides: one("condition: \"composition.metadata.name == 'app' && composition.metadata.namespace == 'n' && composition.metadata.labels.l == '1' && composition.metadata.annotations['owner'] == 'true' && composition.metadata.deletionTimestamp == null\", value: 3"), want: result{"Active", int64(3)}},
		"Deleting":    {reason: "It is being deleted.", composition: deleting, overrides: one("condition: \"composition.metadata.deletionTimestamp == '1970-01-01T00:00:00Z'\", value: 3"), want: result{"Active", int64(3)}},
		"Bare":        {reason: "One without labels has none, and can be asked.", composition: &metav1.ObjectMeta{}, overrides: one("condition: \"!('l' in composition.metadata.labels)\", value: 3"), want: result{"Active", int64(3)}},
		"Managed":     {reason: "We have not applied it.", overrides: one("condition: pathManagedByEno, value: 3"), want: result{"Inactive", int64(4)}},
		"ManagedIt":   {reason: "But this.", overrides: "[{path: self.spec.min, condition: pathManagedByEno, value: 3}]", want: result{"Active", int64(4)}},
		"Less":        {reason: "Quantities are no strings.", overrides: one("condition: \"compareResourceQuantities(self.spec.cpu, '1') == -1\", value: 3"), want: result{"Active", int64(3)}},
		"Equal":       {reason: "They can be written in several ways.", overrides: one("condition: \"compareResourceQuantities(self.spec.cpu, '0.5') == 0\", value: 3"), want: result{"Active", int64(3)}},
		"More":        {reason: "And as numbers.", overrides: one("condition: \"compareResourceQuantities(self.spec.big, self.spec.cpu) == 1 && compareResourceQuantities(self.spec.ratio, '500m') == 0\", value: 3"), want: result{"Active", int64(3)}},
		"NoQuantity":  {reason: "A word is none.", overrides: one("condition: \"compareResourceQuantities('much', '1') > 0\", value: 3"), want: result{"InvalidCondition", int64(4)}},
		"NoQuantity2": {reason: "Nor is a list.", overrides: one("condition: \"compareResourceQuantities(self.spec.args, '1') > 0\", value: 3"), want: result{"InvalidCondition", int64(4)}},
		"Order":       {reason: "The last one counts.", overrides: "[{path: self.spec.replicas, value: 1}, {path: self.spec.replicas, value: 2}]", want: result{"Active, Active", int64(2)}},
		"Builds":      {reason: "One sees what those before it did.", overrides: "[{path: self.spec.replicas, value: {}}, {path: self.spec.replicas.a, value: 1}]", want: result{"Active, Active", map[string]any{"a": int64(1)}}},
		"Some":        {reason: "One that fails does not keep the others from being done.", overrides: "[{path: self.spec.far.away, value: 1}, {path: 'self.spec.list[1]', value: 1}, {path: 'self.spec.list.x', value: 1}, {path: self.spec.replicas, value: 2}]", want: result{"MissingParent, IndexOutOfRange, PathTypeMismatch, Active", int64(2)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := reader.Read(overridden(t, tc.overrides), nil)
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{}
			if data, err := json.Marshal(object(t, live)); err != nil || utiljson.Unmarshal(data, &o.Object) != nil {
				t.Fatal(err)
			}
			before := o.DeepCopy()
			if tc.absent {
				o = nil
			}
			with := composition
			if tc.composition != nil {
				with = tc.composition
			}
			now, states, err := r.Override(o, with)
			if err != nil {
				t.Fatal(err)
			}
			got := result{Replicas: now.Object.Object["spec"].(map[string]any)["replicas"]}
			var all []string
			for _, s := range states {
				all = append(all, string(s.State))
				if s.State.Failed() != (s.State != delivery.Active && s.State != delivery.Inactive) || !strings.Contains(s.String(), string(s.State)) {
					t.Errorf("%s: %t", s, s.State.Failed())
				}
			}
			got.States = strings.Join(all, ", ")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%v\n-want, +got:\n%s", tc.reason, states, diff)
			}
			if _, ok := now.Object.GetAnnotations()[enov1.AnnotationOverrides]; ok || !now.Overridden() {
				t.Errorf("%s\nThe overrides were applied as a part of the object, or are not known any more.", tc.reason)
			}
			if o != nil && cmp.Diff(before, o) != "" {
				t.Errorf("%s\nThe live object was changed.", tc.reason)
			}
			if again := r.Object.Object["spec"].(map[string]any)["replicas"]; again != int64(4) {
				t.Errorf("%s\nThe manifest itself was changed.", tc.reason)
			}
		})
	}
}

// TestOverrideSettings has overrides of settings.
func TestOverrideSettings(t *testing.T) {
	at := func(annotation string) string { return `self.metadata.annotations["` + annotation + `"]` }
	change := func(annotation, value string) string {
		return `[{path: '` + at(annotation) + `', value: ` + value + `}]`
	}
	cases := map[string]struct {
		reason, overrides string
		composition       map[string]string
		check             func(r *delivery.Resource) error
	}{
		"Disabled": {reason: "It is left alone.", overrides: change(enov1.AnnotationDisableReconciliation, `"true"`), check: func(r *delivery.Resource) error {
			if a := delivery.Decide(r, delivery.Situation{}); a.Verb != delivery.Leave {
				return errors.New(string(a.Verb))
			}

			return nil
		}},
		"Fallback": {reason: "The composition specifies what it does not.", overrides: change("x", `"y"`), composition: map[string]string{enov1.AnnotationReplace: "true"}, check: func(r *delivery.Resource) error {
			if !r.Replace || r.Object.GetAnnotations()["x"] != "y" {
				return errors.New("it is not replaced")
			}

			return nil
		}},
		"Wrong": {reason: "A setting that is wrong is said.", overrides: change(enov1.AnnotationReplace, `"yes"`), check: func(r *delivery.Resource) error {
			if len(r.Warnings()) != 1 {
				return errors.New("there is no warning")
			}

			return nil
		}},
		"Groups": {reason: "Groups stay, since others wait for them.", overrides: change(enov1.AnnotationReadinessGroup, `"7"`), check: func(r *delivery.Resource) error {
			if r.ReadinessGroup != 0 {
				return errors.New("it has moved")
			}

			return nil
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := reader.Read(overridden(t, tc.overrides), tc.composition)
			if err != nil {
				t.Fatal(err)
			}
			now, _, err := r.Override(nil, &metav1.ObjectMeta{})
			if err == nil {
				err = tc.check(now)
			}
			if err != nil {
				t.Errorf("%s\n%v", tc.reason, err)
			}
		})
	}
}

func TestOverrideRejects(t *testing.T) {
	patch := `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a, annotations: {eno.azure.io/overrides: '[{"path": "self.patch.kind", "value": "Node"}]'}}, patch: {apiVersion: v1, kind: Pod, ops: []}}`
	cases := map[string]struct {
		reason, want string
		manifest     enov1.Manifest
	}{
		"Unquoted": {reason: "Annotations are strings.", manifest: overridden(t, `[{path: self.metadata.annotations.x, value: true}]`), want: "put values such as true and 1 in quotes"},
		"Target":   {reason: "It must stay the same object, in every way.", manifest: manifest(t, patch), want: "it must still be Patch of Pod a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := reader.Read(tc.manifest, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Override(nil, &metav1.ObjectMeta{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nOverride(...): %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
	plain := read(t, with("T"))
	if same, states, err := plain.Override(nil, nil); same != plain || states != nil || err != nil || plain.Overridden() {
		t.Error("one without overrides is another with them")
	}
}

func TestReadOverridesRejects(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Empty":     {reason: "Nothing is no list.", text: "", want: `annotation eno.azure.io/overrides: cannot use "": write a JSON list`},
		"Object":    {reason: "One override is not a list either.", text: `{"path": "self.a"}`, want: "write a JSON list"},
		"Syntax":    {reason: "JSON has no comma there.", text: `[{"path": "self.a",}]`, want: "invalid character"},
		"String":    {reason: "An override is an object.", text: `["self.a"]`, want: `annotation eno.azure.io/overrides[0]: cannot use "\"self.a\""`},
		"Field":     {reason: "A condition by another name would always hold.", text: `[{"path": "self.a"}, {"path": "self.a", "when": "false"}]`, want: `annotation eno.azure.io/overrides[1]: cannot use "{\"path\": \"self.a\", \"when\": \"false\"}": write path, condition, and value or valueExpression: json: unknown field "when"`},
		"NoPath":    {reason: "It must be known where.", text: `[{"value": 1}]`, want: `annotation eno.azure.io/overrides[0].path: cannot use ""`},
		"Path":      {reason: "In a way that can be read.", text: `[{"path": "self.a[", "value": 1}]`, want: `overrides[0].path: cannot use "self.a[": write a path such as self.spec.replicas: at position 8 the text ends`},
		"Name":      {reason: "It must stay the same object.", text: `[{"path": "self.metadata.name", "value": "b"}]`, want: "it identifies the object"},
		"Namespace": {reason: "Also if that is hidden.", text: `[{"path": "self['metadata']['namespace']", "value": "b"}]`, want: "it identifies the object"},
		"Metadata":  {reason: "Or more than that.", text: `[{"path": "self.metadata", "value": {}}]`, want: "it identifies the object"},
		"Kind":      {reason: "And of the same kind.", text: `[{"path": "self.kind", "value": "b"}]`, want: "it identifies the object"},
		"Both":      {reason: "There is one value.", text: `[{"path": "self.a", "value": 1, "valueExpression": "2"}]`, want: `overrides[0].valueExpression: cannot use "2": leave out either`},
		"Condition": {reason: "It must compile.", text: `[{"path": "self.a", "condition": "self."}]`, want: `overrides[0].condition: cannot use "self.": write a CEL expression about self, composition and pathManagedByEno: ERROR`},
		"Variable":  {reason: "And be about what there is.", text: `[{"path": "self.a", "condition": "object.a == 1"}]`, want: "undeclared reference to 'object'"},
		"Value":     {reason: "So must this.", text: `[{"path": "self.a", "valueExpression": "("}]`, want: `overrides[0].valueExpression: cannot use "("`},
		"All":       {reason: "All that is wrong is said.", text: `[{"path": "a"}, {"path": "b"}]`, want: `overrides[1].path: cannot use "b"`},
		"Long":      {reason: "An error is not as long as what is wrong.", text: strings.Repeat("x", 1000), want: `x...": write`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := manifest(t, with("T", enov1.AnnotationOverrides, tc.text))
			if err := errors.Join(reader.Check(m.Manifest)...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s\nCheck(...): %v, want %s", tc.reason, err, tc.want)
			}
			r, err := reader.Read(m, nil)
			if err != nil || len(r.Warnings()) == 0 || r.Overridden() {
				t.Errorf("%s\nRead(...): %v; the overrides are not ignored with a warning", tc.reason, err)
			}
		})
	}
	for _, text := range []string{"[]", "null", `[{"path": "self.a", "value": null, "valueExpression": "1"}]`} {
		if all := reader.Check(manifest(t, with("T", enov1.AnnotationOverrides, text)).Manifest); len(all) > 0 {
			t.Errorf("%s: %v", text, all)
		}
	}
}

// TestRelease has overrides that remove fields, which are left to other field managers.
func TestRelease(t *testing.T) {
	r, err := reader.Read(overridden(t, `[{path: self.spec.replicas, value: null}, {path: 'self.spec.list[name="x"].cpu', value: null, condition: "false"}, {path: self.spec.new, value: 1}]`), nil)
	if err != nil {
		t.Fatal(err)
	}
	now, _, err := r.Override(nil, &metav1.ObjectMeta{})
	if err != nil {
		t.Fatal(err)
	}
	before := &unstructured.Unstructured{Object: object(t, "{spec: {replicas: 3, list: [{name: x, cpu: 1}], old: 1}}")}
	got := now.Release(before)
	if diff := cmp.Diff(object(t, "{spec: {list: [{name: x, cpu: 1}], old: 1}}"), got.Object); diff != "" {
		t.Errorf("Release(...): -want, +got:\n%s", diff)
	}
	if !now.Releases() || r.Releases() || r.Release(before) != before || now.Release(nil) != nil {
		t.Error("only what an active override has removed is released")
	}
}
