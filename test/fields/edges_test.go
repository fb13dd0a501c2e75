package fields_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

// config is a ConfigMap with these data.
func config(data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {%s}\n", data)
}

func data(o *unstructured.Unstructured) map[string]string {
	all, _, _ := unstructured.NestedStringMap(o.Object, "data")

	return all
}

// TestEdges are corners of the server that a rewrite of managed fields meets.
// All that are known, and what goes into them:
//
//	 1 one entry of each identity     TestEdges/OneEntryOfAnIdentity
//	 2 one bad entry of many          TestEdges/InvalidEntry, and TestVerify of internal/ownership
//	 3 versions of old                TestEdges/UnknownVersion, TestOldVersion
//	 4 versions side by side          TestEdges/OtherVersion
//	 5 no entries at all              TestEdges/Reset
//	 6 subresources                   TestEdges/Subresources, TestModes
//	 7 races                          TestRaces, TestConcurrent, TestLostAnswers
//	 8 an item, and not its siblings  TestEdges/Siblings, TestSeed, TestSilent, TestKinds
//	 9 owned by no manager, and not there        TestEdges/Swept, TestEdges/Ghosts, TestCustomResources/Last…
//	10 sets                           TestCustomResources/Set, TestEdges/Denied
//	11 held as one                    TestEdges/Lifted, TestCustomResources/Atomic…, TestFlips
//	12 without a schema               TestCustomResources/Plain, TestCustomResources/Unknown
//	13 several keys, and defaults     TestEdges/SeveralKeys, TestCustomResources/DefaultedKey
//	14 the manager's own updates      TestEdges/OwnUpdates, TestRandomDesired
//	15 managers of any name           TestEdges/AncientChanges, TestEdges/BeforeFirstApply, TestManyManagers
//	16 what no manager asked for          TestModes, TestEdges/NotNeeded, TestUnsettled, TestRandomDesired
//	17 the annotation of kubectl      TestEdges/LastApplied
//	18 empty sets                     TestEdges/EmptySets
//	19 times                          TestEdges/Idempotent
//	20 too large                      TestEdges/TooLarge
//	21 admission                      TestAdmission, TestUnsettled, TestSettled
//	22 what cannot be written         TestEdges/Immutable, TestEdges/Pod, TestInvalid
//	23 who writes entries             TestEdges/NoTraces
//	24 reads without entries          TestEdges/StrippedReads
//	25 records and fights             TestUndo, TestDamping, TestUnsettledForGood
//	26 the order of things            TestRestore, TestUnsettled, TestCrash
//	27 a manager that was renamed     TestEdges/Renamed
//	28 what an object is known by     TestEdges/Identity
func TestEdges(t *testing.T) {
	cases := map[string]struct {
		reason string
		test   func(w *world, m *ownership.Migrator)
	}{
		"OneEntryOfAnIdentity": {
			reason: "Of two Apply entries of one manager the server loses one, so they are merged before they are sent.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				w.merge(eno, o, `{metadata: {labels: {mine: x}}, spec: {template: {spec: {initContainers: [{name: base-os-bash, workingDir: /}]}}}}`)
				w.migrate(m, ownership.Request{Object: o})
				seen := map[fields.Identity]bool{}
				for _, e := range w.entries(w.get(o)) {
					if seen[e.Identity()] {
						w.Errorf("%s is there twice", e.Identity())
					}
					seen[e.Identity()] = true
				}
			},
		},
		"OwnUpdates": {
			reason: "What the applier wrote by another verb is folded in, or it would be its own co-owner forever.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.create(eno, web)
				w.mustApply(eno, strings.ReplaceAll(named, "base:2", "base:1"))
				w.migrate(m, ownership.Request{Desired: w.object(dropped)})
				if got := names(w.get(o), initContainers); len(got) > 0 {
					w.Errorf("init containers are %q", got)
				}
			},
		},
		"InvalidEntry": {
			reason: "The server answers 200 to a list with a bad entry and ignores it; internal/ownership has the unit test that this is seen.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.seed()
				w.rewrite(o, []map[string]any{{"manager": "x", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}})
				w.unchanged(o)
			},
		},
		"UnknownVersion": {
			reason: "The server drops an entry in a version that it does not know when any client writes, which must not fail.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				es := append(w.entries(o), fields.Entry{Manager: "old", Operation: fields.Update, APIVersion: "apps/v9", Fields: w.entries(o)[0].Fields})
				w.rewrite(o, es)
				w.migrate(m, ownership.Request{Object: o})
				if got := managers(w.held(w.get(o))); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "old") }) {
					w.Errorf("managers are %q", got)
				}
			},
		},
		"OtherVersion": {
			reason: "Paths of another version are not mixed in, unless the caller specifies that they mean the same.",
			test: func(w *world, m *ownership.Migrator) {
				w.things()
				w.create(legacy, thing(`items: [{id: a, size: 1, note: some}, {id: b, size: 1}]`))
				const v1, v2 = "fields.example.com/v1", "fields.example.com/v2"
				w.mustApply(eno, strings.ReplaceAll(thing(`items: [{id: a, size: 1}]`), v1, v2))
				request := ownership.Request{Desired: w.object(strings.ReplaceAll(thing(``), v1, v2)), Scopes: scopes("spec.items")}
				p, err := m.Plan(w.Context(), request)
				must(w.T, err)
				if p.Skip != ownership.Done || len(p.Notes) != 1 || p.Notes[0].Reason != fields.OtherVersion {
					w.Errorf("the plan reports %s: %v", p.Skip, p.Notes)
				}
				request.Retag = true
				result := w.migrate(m, request)
				if items, _, _ := unstructured.NestedSlice(result.Object.Object, "spec", "items"); len(items) != 1 || !result.Migrated {
					w.Errorf("items are %v", items)
				}
			},
		},
		"Reset": {
			reason: "In an object without entries the applier gets what it names, and the server's stand-in only the rest, instead of everything.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.create(legacy, web)
				w.rewrite(o, []map[string]any{{}})
				if got := w.get(o).GetManagedFields(); len(got) > 0 {
					w.Fatalf("there are entries: %v", got)
				}
				w.migrate(m, ownership.Request{Desired: w.object(strings.ReplaceAll(named, "base:2", "base:1"))})
				held := w.held(w.get(o))
				if diff := cmp.Diff([]string{"before-first-apply (Update apps/v1)", "eno (Apply)"}, managers(held)); diff != "" {
					w.Errorf("managers: -want, +got:\n%s", diff)
				}
				const image = initContainers + "[name=base-os-bash].image"
				if !slices.Contains(held["eno (Apply)"], image) || slices.Contains(held["before-first-apply (Update apps/v1)"], image) {
					w.Errorf("they have %q", held)
				}
				w.migrate(m, ownership.Request{Desired: w.object(dropped)})
				if got := names(w.get(o), initContainers); !slices.Equal(got, []string{"other"}) {
					w.Errorf("init containers are %q", got)
				}
			},
		},
		"Subresources": {
			reason: "What was written through a subresource is never moved, and managed fields in what is desired do no harm.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.seed()
				scale(w, o, 6)
				desired := w.get(o)
				desired.SetResourceVersion("")
				unstructured.RemoveNestedField(desired.Object, "spec", "replicas")
				unstructured.RemoveNestedField(desired.Object, "status")
				unstructured.RemoveNestedField(desired.Object, "metadata", "creationTimestamp")
				whole := ownership.New(w.c, ownership.Options{Mode: fields.Whole})
				w.migrate(whole, ownership.Request{Desired: desired, Scopes: scopes("spec")})
				after := w.get(o)
				if n, _, _ := unstructured.NestedInt64(after.Object, "spec", "replicas"); n != 6 {
					w.Errorf("there are %d replicas", n)
				}
				if got := w.held(after)["hpa (Update apps/v1 of /scale)"]; !slices.Equal(got, []string{"spec.replicas"}) {
					w.Errorf("hpa has %q", got)
				}
			},
		},
		"Siblings": {
			reason: "An item is moved with all that is in it, and its siblings stay where they are.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				w.migrate(m, ownership.Request{Object: o, Scopes: scopes(initContainers + "[name=base-os-bash]")})
				w.lostOnlyItem(o, w.get(o))
			},
		},
		"Pattern": {
			reason: "Items can be chosen by a pattern of their names, and the annotation of an object can set this.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.create(legacy, strings.Replace(web, "labels: {team: a}", `annotations: {eno.azure.io/migrate-ownership: "spec.template.spec.initContainers[name=~^base-]"}`, 1))
				w.migrate(ownership.New(w.c, ownership.Options{Mode: fields.Whole}), ownership.Request{Object: o})
				if got := below(w.held(w.get(o))["eno (Apply)"], ""); len(got) == 0 || len(below(got, "spec.template.spec.initContainers[name=base-os-bash]")) != len(got) {
					w.Errorf("eno has %q", got)
				}
			},
		},
		"Swept": {
			reason: "Fields without an owner are removed with the list around them; the plan reports it.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.mustApply(eno, web)
				es := w.entries(o)
				unowned, err := fields.ParseFields([]byte(`{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"other\"}":{".":{},"f:name":{},"f:image":{}}}}}}}`))
				must(w.T, err)
				es[0].Fields = es[0].Fields.Difference(unowned)
				w.rewrite(o, es)
				desired := w.object(web)
				unstructured.RemoveNestedField(desired.Object, "spec", "template", "spec", "initContainers")
				p, err := m.Plan(w.Context(), ownership.Request{Desired: desired})
				must(w.T, err)
				var got []string
				for _, r := range p.Now {
					got = append(got, r.String())
				}
				want := []string{initContainers + "[name=base-os-bash]: Removed", initContainers + "[name=other]: Swept"}
				if diff := cmp.Diff(want, got); diff != "" {
					w.Errorf("removals: -want, +got:\n%s", diff)
				}
			},
		},
		"Ghosts": {
			reason: "A path that the object does not have is never moved: it would take the list around it along.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				es := w.entries(o)
				ghost, err := fields.ParseFields([]byte(`{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"ghost\"}":{".":{},"f:name":{}}}}}}}`))
				must(w.T, err)
				for i := range es {
					es[i].Fields = es[i].Fields.Union(ghost)
				}
				w.rewrite(o, es)
				own := below(w.held(w.get(o))["eno (Apply)"], initContainers+"[name=ghost]")
				w.migrate(m, ownership.Request{Object: o})
				if diff := cmp.Diff(own, below(w.held(w.get(o))["eno (Apply)"], initContainers+"[name=ghost]")); diff != "" {
					w.Errorf("ghosts of eno: -before, +after:\n%s", diff)
				}
			},
		},
		"Denied": {
			reason: "Finalizers, owner references and status are never moved, and nothing is even read.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				for _, scope := range []string{"metadata.finalizers", "metadata.ownerReferences", "status", "status.conditions"} {
					_, err := m.MigrateOwnership(w.Context(), o, scope)
					if _, denied := errors.AsType[*fields.Denied](err); !denied {
						w.Errorf("%s: %v", scope, err)
					}
				}
				w.unchanged(o)
			},
		},
		"Lifted": {
			reason: "A scope in something atomic is that, with a note.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.create(legacy, web)
				w.mustApply(eno, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}}}`)
				result := w.migrate(m, ownership.Request{Object: o, Scopes: scopes("spec.selector.matchLabels.app")})
				if len(result.Plan.Notes) != 1 || result.Plan.Notes[0].Reason != fields.Lifted || !result.Migrated {
					w.Errorf("it reports %+v, %v", result, result.Plan.Notes)
				}
			},
		},
		"SeveralKeys": {
			reason: "A port is known by number and protocol, also if the protocol is the server's default.",
			test: func(w *world, m *ownership.Migrator) {
				const service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [%s]}\n"
				o := w.create(legacy, fmt.Sprintf(service, `{name: a, port: 80}, {name: b, port: 80, protocol: UDP}`))
				w.mustApply(eno, fmt.Sprintf(service, `{name: a, port: 80}`))
				w.migrate(m, ownership.Request{Desired: w.object(strings.Replace(fmt.Sprintf(service, ""), "ports: []", "", 1)), Scopes: scopes("spec.ports")})
				if diff := cmp.Diff([]string{"b"}, names(w.get(o), "spec.ports")); diff != "" {
					w.Errorf("ports: -want, +got:\n%s", diff)
				}
			},
		},
		"AncientChanges": {
			reason: "Managers are found by what they hold and not by name: the server gathers old ones under a name of its own.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.create(legacy, config("k: v"))
				for i := range 12 {
					w.merge(fmt.Sprintf("m%d", i), o, fmt.Sprintf(`{data: {k%d: v}}`, i))
				}
				w.mustApply(eno, config("k: v"))
				if got := managers(w.held(w.get(o))); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, fields.AncientChanges) }) {
					w.Fatalf("managers are %q", got)
				}
				w.migrate(m, ownership.Request{Desired: w.object(config("")), Scopes: scopes("data")})
				if _, there := data(w.get(o))["k"]; there || len(data(w.get(o))) != 12 {
					w.Errorf("there is %v", data(w.get(o)))
				}
			},
		},
		"BeforeFirstApply": {
			reason: "The manager that the server makes up for an object without entries is one like any other.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.create(legacy, config("a: x, b: z"))
				w.rewrite(o, []map[string]any{{}})
				w.mustApply(eno, config("a: x"))
				if got := managers(w.held(w.get(o))); !slices.Contains(got, fields.BeforeFirstApply+" (Update v1)") {
					w.Fatalf("managers are %q", got)
				}
				w.migrate(m, ownership.Request{Desired: w.object(config("")), Scopes: scopes("data")})
				if diff := cmp.Diff(map[string]string{"b": "z"}, data(w.get(o))); diff != "" {
					w.Errorf("data: -want, +got:\n%s", diff)
				}
			},
		},
		"LastApplied": {
			reason: "The annotation of kubectl stays kubectl's, also if annotations are in scope.",
			test: func(w *world, m *ownership.Migrator) {
				const last = "kubectl.kubernetes.io/last-applied-configuration"
				o := w.create("kubectl", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {a: x, "+last+": '{}'}}\n")
				w.mustApply(eno, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {a: x}}\n")
				w.migrate(m, ownership.Request{Desired: w.object(config("")), Scopes: scopes("metadata.annotations")})
				if diff := cmp.Diff(map[string]string{last: "{}"}, w.get(o).GetAnnotations()); diff != "" {
					w.Errorf("annotations: -want, +got:\n%s", diff)
				}
			},
		},
		"EmptySets": {
			reason: "A manager that has nothing left is gone, and there is always one that has something.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.create(legacy, config("a: x"))
				w.migrate(ownership.New(w.c, ownership.Options{Mode: fields.Whole}), ownership.Request{Object: o, Scopes: scopes("data")})
				if diff := cmp.Diff([]string{"eno (Apply)"}, managers(w.held(w.get(o)))); diff != "" {
					w.Errorf("managers: -want, +got:\n%s", diff)
				}
			},
		},
		"Idempotent": {
			reason: "Times are not compared, and what is done is not written again.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				w.migrate(m, ownership.Request{Desired: w.object(dropped)})
				before := w.get(o)
				for range 3 {
					w.migrate(m, ownership.Request{Desired: w.object(dropped)})
				}
				w.unchanged(before)
			},
		},
		"TooLarge": {
			reason: "The server drops the entries of an object that is too large with them: that is reported, and nothing is written.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.object(config(""))
				all := map[string]any{}
				for i := range 24000 {
					all[fmt.Sprintf("key-%032d", i)] = "abcd"
				}
				o.Object["data"] = all
				must(w.T, w.c.Create(w.Context(), o, client.FieldOwner(legacy)))
				before := w.get(o)
				if n := len(before.GetManagedFields()); n > 0 {
					w.Fatalf("there are %d entries", n)
				}
				whole := ownership.New(w.c, ownership.Options{Mode: fields.Whole})
				result, err := whole.MigrateOwnership(w.Context(), o, "data")
				if ownership.ReasonOf(err) != ownership.Untracked || result.Attempts != 1 {
					w.Errorf("after %d attempts it reports %v", result.Attempts, err)
				}
				w.unchanged(before)
			},
		},
		"Immutable": {
			reason: "The entries of what cannot be changed can be: an immutable ConfigMap, and an object that is being deleted.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.create(legacy, strings.Replace(config("a: x"), "metadata: {name: c}", "immutable: true\nmetadata: {name: c, finalizers: [example.com/stay]}", 1))
				w.mustApply(eno, config("a: x"))
				must(w.T, w.c.Delete(w.Context(), o))
				before := w.get(o)
				result := w.migrate(m, ownership.Request{Object: o, Scopes: scopes("data")})
				after := w.get(o)
				if !result.Migrated || after.GetGeneration() != before.GetGeneration() || before.GetDeletionTimestamp() == nil {
					w.Errorf("it reports %+v", result)
				}
				w.merge("janitor", o, `{metadata: {finalizers: null}}`)
			},
		},
		"Pod": {
			reason: "So can those of a pod, of which hardly anything else can.",
			test: func(w *world, m *ownership.Migrator) {
				const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%s}\nspec: {%s}\n"
				containers := `schedulerName: nobody, containers: [{name: a, image: "a:1", command: [sh]}, {name: b, image: "b:1"}]`
				cluster.Eventually(w.T, "pods can be made", func() error {
					return w.c.Create(w.Context(), w.object(fmt.Sprintf(pod, "", containers)), client.FieldOwner(legacy))
				})
				o := w.mustApply(eno, fmt.Sprintf(pod, "", `containers: [{name: a, image: "a:1"}]`))
				before := w.get(o)
				w.migrate(m, ownership.Request{Object: o, Scopes: scopes("spec.containers")})
				after := w.get(o)
				if got := below(w.held(after)[legacy+" (Update v1)"], "spec.containers[name=a]"); len(got) > 0 || after.GetGeneration() != before.GetGeneration() {
					w.Errorf("%s has %q", legacy, got)
				}
				if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
					w.Errorf("spec: -before, +after:\n%s", diff)
				}

				// The apply that it was moved for is rejected, since containers stay, and
				// ownership is as it was.
				result, err := m.Migrate(w.Context(), ownership.Request{Desired: w.object(fmt.Sprintf(pod, ", labels: {by: eno}", "")), Scopes: scopes("spec.containers")})
				if !apierrors.IsInvalid(err) || result.Applied {
					w.Errorf("it reports %v: %+v", err, result)
				}
				if diff := cmp.Diff(w.held(after), w.held(w.get(o))); diff != "" {
					w.Errorf("held: -before, +after:\n%s", diff)
				}
			},
		},
		"NoTraces": {
			reason: "A client that writes entries does not own fields by that.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				w.migrate(m, ownership.Request{Object: o})
				want := []string{legacy + " (Update apps/v1)", "eno (Apply)"}
				if diff := cmp.Diff(want, managers(w.held(w.get(o)))); diff != "" {
					w.Errorf("managers: -want, +got:\n%s", diff)
				}
			},
		},
		"StrippedReads": {
			reason: "A cache leaves managed fields out; the server is asked then.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.seed()
				w.migrate(ownership.New(&spy{Client: w.c, blind: true}, ownership.Options{}), ownership.Request{Desired: w.object(dropped)})
				after := w.get(o)
				if diff := cmp.Diff([]string{"other"}, names(after, initContainers)); diff != "" {
					w.Errorf("init containers: -want, +got:\n%s", diff)
				}
				w.lostOnlyItem(o, after)
			},
		},
		"Renamed": {
			reason: "An applier that had another name takes from its old self what it no longer wants.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.mustApply("eno-old", web)
				desired := w.object(web)
				unstructured.RemoveNestedField(desired.Object, "spec", "template", "spec", "initContainers")
				w.migrate(m, ownership.Request{Desired: desired, Previous: w.object(web)})
				if got := names(w.get(o), initContainers); len(got) > 0 {
					w.Errorf("init containers are %q", got)
				}
			},
		},
		"Identity": {
			reason: "What an object is known by is in no set, even if all of it is in scope.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.create(legacy, config("a: x"))
				w.rewrite(o, []map[string]any{{}})
				w.migrate(ownership.New(w.c, ownership.Options{Mode: fields.Whole}), ownership.Request{Object: o, Scopes: []fields.Scope{{}}})
				if diff := cmp.Diff(map[string][]string{"eno (Apply)": {"data.a"}}, w.held(w.get(o))); diff != "" {
					w.Errorf("held: -want, +got:\n%s", diff)
				}
			},
		},
		"Absent": {
			reason: "There is nothing to migrate of what does not exist, and what is desired is made.",
			test: func(w *world, m *ownership.Migrator) {
				result := w.migrate(m, ownership.Request{Object: w.object(web)})
				if result.Skipped != ownership.Absent || result.Object != nil {
					w.Errorf("it reports %+v", result)
				}
				result = w.migrate(m, ownership.Request{Desired: w.object(web)})
				if result.Skipped != ownership.Absent || !result.Applied {
					w.Errorf("it reports %+v", result)
				}
			},
		},
		"NoScope": {
			reason: "A part that the object does not have is skipped, as is a kind without a default.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.seed()
				c := w.create(legacy, config("a: x"))
				for _, r := range []ownership.Request{{Object: o, Scopes: scopes("spec.template.spec.volumes")}, {Object: c}} {
					if result := w.migrate(m, r); result.Skipped != ownership.NoScope {
						w.Errorf("it reports %+v", result)
					}
				}
				w.unchanged(o)
			},
		},
		"NotNeeded": {
			reason: "If the apply does all it should, other owners are left in peace.",
			test: func(w *world, m *ownership.Migrator) {
				o := w.create(legacy, web)
				result := w.migrate(m, ownership.Request{Desired: w.object(strings.ReplaceAll(named, "base:2", "base:1"))})
				if result.Skipped != ownership.NotNeeded || !result.Applied {
					w.Errorf("it reports %+v", result)
				}
				w.keptNothingLost(o, w.get(o))
			},
		},
		"Forbidden": {
			reason: "A user who may not patch gets an error, and nothing is changed.",
			test: func(w *world, _ *ownership.Migrator) {
				o := w.seed()
				as := rest.CopyConfig(server.Config)
				as.Impersonate = rest.ImpersonationConfig{UserName: "reader"}
				for _, text := range []string{
					`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]}`,
					`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]}`,
				} {
					w.create("admin", text)
				}
				c, err := client.New(as, client.Options{Mapper: w.c.RESTMapper()})
				must(w.T, err)
				cluster.Eventually(w.T, "the reader may read", func() error {
					return c.Get(w.Context(), client.ObjectKeyFromObject(o), o.DeepCopy())
				})
				for _, r := range []ownership.Request{{Object: o}, {Desired: w.object(dropped)}} {
					_, err = ownership.New(c, ownership.Options{}).Migrate(w.Context(), r)
					if ownership.ReasonOf(err) != ownership.Forbidden || !apierrors.IsForbidden(err) {
						w.Errorf("it reports %v", err)
					}
				}
				w.unchanged(o)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.test(w, ownership.New(w.c, ownership.Options{}))
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

// keptNothingLost expects the other manager to hold all that it held.
func (w *world) keptNothingLost(before, after *unstructured.Unstructured) {
	w.Helper()
	const it = legacy + " (Update apps/v1)"
	if diff := cmp.Diff(w.held(before)[it], w.held(after)[it]); diff != "" {
		w.Errorf("%s: -before, +after:\n%s", it, diff)
	}
}
