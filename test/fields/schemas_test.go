package fields_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

// schemaOf is that of an object of which only the spec matters.
func schemaOf(spec string) string { return fmt.Sprintf(`{type: object, properties: {spec: %s}}`, spec) }

// define serves a kind of the test's own, with a schema by version; the last is
// stored. It returns when the server knows it: until there is such an object as
// probe says, made by the last version in a dry run.
func (w *world) define(schemas []string, probe string, there func(*unstructured.Unstructured) bool) {
	w.Helper()
	var versions []string
	for i, schema := range schemas {
		versions = append(versions, fmt.Sprintf(`{name: v%d, served: true, storage: %t, schema: {openAPIV3Schema: %s}}`, i+1, i == len(schemas)-1, schema))
	}
	crd := w.object(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions: [%[2]s]
`, w.ns, strings.Join(versions, ", ")))
	crd.SetNamespace("")
	_, err := w.apply("crd", crd)
	must(w.T, err)
	cluster.Eventually(w.T, "gadgets are served as they should be", func() error {
		o := w.object(w.gadget(len(schemas), probe))
		o.SetName("probe")
		o, err := w.apply("prober", o, client.DryRunAll)
		if err != nil {
			return err
		}
		if !there(o) {
			return fmt.Errorf("they are not: %v, %v", o.Object["spec"], w.held(o))
		}

		return nil
	})
}

// gadget is one in that version.
func (w *world) gadget(version int, spec string) string {
	return fmt.Sprintf("apiVersion: %s.example.com/v%d\nkind: Gadget\nmetadata: {name: x}\nspec: {%s}\n", w.ns, version, spec)
}

// spec is a field of an object's.
func spec(o *unstructured.Unstructured, name string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", name)

	return v
}

// TestOldVersion (3) is about entries in a version that lacks a field which a
// newer one has a default for. The server can merge nothing then.
func TestOldVersion(t *testing.T) {
	const (
		one = `{type: object, properties: {a: {type: string}, b: {type: string}}}`
		two = `{type: object, properties: {a: {type: string}, b: {type: string}, mode: {type: string, default: plain}}}`
	)
	cases := map[string]struct {
		reason string
		made   func(w *world) *unstructured.Unstructured
		mode   fields.Mode
		// want is what is left of the spec, or rejected why nothing is done.
		want    map[string]any
		refused ownership.Reason
	}{
		"Own": {
			reason: "The applier's own entry is in the old version.",
			made:   func(w *world) *unstructured.Unstructured { return w.mustApply(eno, w.gadget(1, "a: x, b: x")) },
			want:   map[string]any{"b": "x", "mode": "plain"},
		},
		"Others": {
			reason: "All that there is was written in the old version, and all of it is moved.",
			made: func(w *world) *unstructured.Unstructured {
				o := w.create(legacy, w.gadget(1, "a: x, b: x"))
				w.mustApply(eno, w.gadget(1, "a: x"))

				return o
			},
			mode: fields.Whole, want: map[string]any{"b": "x", "mode": "plain"},
		},
		"OthersRest": {
			reason: "Another manager would keep a part in the old version, with which the server can write no entries at all. So nothing is written.",
			made: func(w *world) *unstructured.Unstructured {
				o := w.create(legacy, w.gadget(1, "a: x, b: x"))
				w.mustApply(eno, w.gadget(1, "a: x"))

				return o
			},
			refused: ownership.Untracked,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.define([]string{schemaOf(one)}, "a: x", func(*unstructured.Unstructured) bool { return true })
			o := tc.made(w)
			w.define([]string{schemaOf(one), schemaOf(two)}, "a: x", func(o *unstructured.Unstructured) bool { return spec(o, "mode") != nil })
			o.SetAPIVersion(w.ns + ".example.com/v2")
			// The first write in the new version has the default stored.
			w.mustApply("toucher", strings.Replace(w.gadget(2, ""), "{name: x}", "{name: x, labels: {touched: x}}", 1))
			desired := w.object(w.gadget(2, "b: x"))
			_, err := w.apply(eno, desired, client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), "field not declared in schema") {
				t.Fatalf("%s\nbefore, the server reports %v", tc.reason, err)
			}
			before := w.get(o)
			m := ownership.New(w.c, ownership.Options{Mode: tc.mode})
			if _, err := m.Migrate(t.Context(), ownership.Request{Desired: desired, Scopes: scopes("spec")}); err == nil {
				t.Errorf("%s\nversions were mixed without being asked", tc.reason)
			}
			w.unchanged(before)
			_, err = m.Migrate(t.Context(), ownership.Request{Desired: desired, Scopes: scopes("spec"), Retag: true})
			if ownership.ReasonOf(err) != tc.refused || (err != nil) != (tc.refused != "") {
				t.Fatalf("%s\nit says %v", tc.reason, err)
			}
			if tc.refused != "" {
				w.unchanged(before)

				return
			}
			if diff := cmp.Diff(any(tc.want), w.get(o).Object["spec"]); diff != "" {
				t.Errorf("%s\nspec: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFlips (11) has the schema change under entries: what was held by parts is
// held as one, and the other way round.
func TestFlips(t *testing.T) {
	const (
		granular = `{type: object, properties: {m: {type: object, additionalProperties: {type: string}}, rest: {type: string}}}`
		atomic   = `{type: object, properties: {m: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}, rest: {type: string}}}`
	)
	isAtomic := func(w *world) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			return slices.Equal(w.held(o)["prober (Apply)"], []string{"spec.m"})
		}
	}
	cases := map[string]struct {
		reason   string
		from, to string
		atomic   bool
		scope    string
		want     any
	}{
		"ToAtomic": {
			reason: "What both held by parts is held as one, and goes as one.", from: granular, to: atomic, atomic: true, scope: "spec.m", want: nil,
		},
		"ToAtomicPart": {
			reason: "A scope in it is all of it then.", from: granular, to: atomic, atomic: true, scope: "spec.m.a", want: nil,
		},
		"ToGranular": {
			reason: "What both held as one is held by parts, and its part goes.", from: atomic, to: granular, scope: "spec.m", want: nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			there := isAtomic(w)
			w.define([]string{schemaOf(tc.from)}, "m: {a: x}", func(o *unstructured.Unstructured) bool { return there(o) != tc.atomic })
			o := w.create(legacy, w.gadget(1, "m: {a: x}, rest: x"))
			w.mustApply(eno, w.gadget(1, "m: {a: x}"))
			w.define([]string{schemaOf(tc.to)}, "m: {a: x}", func(o *unstructured.Unstructured) bool { return there(o) == tc.atomic })
			m := ownership.New(w.c, ownership.Options{})
			desired := w.object(w.gadget(1, "rest: x"))
			w.migrate(m, ownership.Request{Desired: desired, Scopes: scopes(tc.scope)})
			after := w.get(o)
			if diff := cmp.Diff(tc.want, spec(after, "m")); diff != "" || spec(after, "rest") != "x" {
				t.Errorf("%s\nspec: -want, +got:\n%s%v", tc.reason, diff, w.held(after))
			}
			if again := w.migrate(m, ownership.Request{Desired: desired, Scopes: scopes(tc.scope)}); again.Migrated {
				t.Errorf("%s\nit was migrated twice", tc.reason)
			}
			w.unchanged(after)
		})
	}
}

// TestInvalid (22) has an object that the schema does not take any more, so that
// the server takes no write of it at all.
func TestInvalid(t *testing.T) {
	w := newWorld(t)
	const (
		loose  = `{type: object, properties: {banned: {type: string}, spec: {type: object, properties: {a: {type: string}}}}}`
		strict = `{type: object, properties: {banned: {type: string}, spec: {type: object, properties: {a: {type: string}, b: {type: string, default: there}}}}, not: {required: [banned]}}`
	)
	w.define([]string{loose}, "a: x", func(*unstructured.Unstructured) bool { return true })
	o := w.create(legacy, w.gadget(1, "a: x")+"banned: x\n")
	w.mustApply(eno, w.gadget(1, "a: x"))
	before := w.get(o)
	w.define([]string{strict}, "a: x", func(o *unstructured.Unstructured) bool { return spec(o, "b") != nil })
	for name, r := range map[string]ownership.Request{
		"Move":  {Object: o, Scopes: scopes("spec")},
		"Apply": {Desired: w.object(w.gadget(1, "")), Scopes: scopes("spec")},
	} {
		result, err := ownership.New(w.c, ownership.Options{}).Migrate(t.Context(), r)
		if ownership.ReasonOf(err) != ownership.Rejected || result.Attempts != 1 || result.Migrated {
			t.Errorf("%s: it reports %v: %+v", name, err, result)
		}
	}
	w.unchanged(before)
}
