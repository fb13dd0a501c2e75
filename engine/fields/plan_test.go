package fields_test

import (
	"errors"
	"testing"

	"github.com/arbor-control/arbor/engine/fields"
)

// item is a path of the first init container.
func item(rest string) string { return initContainers + "[name=base-os-bash]" + rest }

func all(prefix string, rest ...string) []string {
	var out []string
	for _, r := range rest {
		out = append(out, prefix+r)
	}

	return out
}

func TestPlan(t *testing.T) {
	eno := func(text string) fields.Entry { return applied(t, "eno", text) }
	other := func(text string) fields.Entry { return updated(t, "other", text) }
	in := func(version string, e fields.Entry) fields.Entry {
		e.APIVersion = version

		return e
	}
	through := func(subresource string, e fields.Entry) fields.Entry {
		e.Subresource = subresource

		return e
	}
	const list = `{apiVersion: v1, spec: {list: [{name: a, image: i, extra: e}, {name: b, image: j}], replicas: 3}}`
	const itemA = `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{},"f:extra":{}}}}}`
	cases := map[string]struct {
		reason  string
		live    string
		entries fields.Entries
		request fields.Request
		scope   string
		want    map[string][]string
		notes   []string
	}{
		"SplitItem": {
			reason: "an item that the applier has a part of is moved with its key and all that is in it; the list, and fields elsewhere, stay",
			live:   deployment, entries: splitEntries(t), scope: initContainers,
			want: map[string][]string{
				"eno (Apply)":                all(item(""), "", ".command", ".image", ".imagePullPolicy", ".name", ".resources", ".securityContext"),
				"Go-http-client (Update v1)": {"spec.replicas", "spec.selector", initContainers},
			},
		},
		"OneItem": {
			reason: "a scope of one item", live: deployment, entries: splitEntries(t), scope: item(""),
			want: map[string][]string{
				"eno (Apply)":                all(item(""), "", ".command", ".image", ".imagePullPolicy", ".name", ".resources", ".securityContext"),
				"Go-http-client (Update v1)": {"spec.replicas", "spec.selector", initContainers},
			},
		},
		"OneField": {
			reason: "a scope of one field moves that field and not what it is in", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`), other(itemA)}, scope: "spec.list[name=a].image",
			want: map[string][]string{"eno (Apply)": {"spec.list[name=a].image"}, "other (Update v1)": {"spec.list[name=a]", "spec.list[name=a].extra", "spec.list[name=a].name"}},
		},
		"NotMine": {
			reason: "an item that only other managers ever named stays with them", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), other(itemA)}, scope: "spec.list",
			want: map[string][]string{"eno (Apply)": {"spec.replicas"}, "other (Update v1)": all("spec.list[name=a]", "", ".extra", ".image", ".name")},
		},
		"NamedBefore": {
			reason: "an item that the applier named before is moved as a whole, even if it has nothing of it now", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), other(itemA)}, scope: "spec.list",
			request: fields.Request{Previous: set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`), Next: set(t, `{"f:spec":{"f:replicas":{}}}`)},
			want:    map[string][]string{"eno (Apply)": append([]string{"spec.replicas"}, all("spec.list[name=a]", "", ".extra", ".image", ".name")...)},
		},
		"StillNamed": {
			reason: "of an item that is still named, what the applier does not name stays theirs: its next apply would remove it", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`), other(itemA)}, scope: "spec.list",
			request: fields.Request{Next: set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}}}}}`)},
			want:    map[string][]string{"eno (Apply)": all("spec.list[name=a]", "", ".image", ".name"), "other (Update v1)": {"spec.list[name=a].extra"}},
		},
		"SpecNeeded": {
			reason: "in a large scope only fields that the applier names or named are moved: replicas stay with the manager that set them", live: list,
			entries: fields.Entries{eno(itemA), other(`{"f:spec":{"f:replicas":{},"f:list":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}`)}, scope: "spec",
			want: map[string][]string{
				"eno (Apply)":       all("spec.list[name=a]", "", ".extra", ".image", ".name"),
				"other (Update v1)": {"spec.list", "spec.replicas", "spec.list[name=b]", "spec.list[name=b].name"},
			},
		},
		"SpecWhole": {
			reason: "unless the whole scope is asked for, from all managers", live: list,
			entries: fields.Entries{eno(itemA), other(`{"f:spec":{"f:replicas":{},"f:list":{".":{},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}`), updated(t, "third", `{"f:spec":{"f:list":{"k:{\"name\":\"b\"}":{"f:image":{}}}},"f:x":{}}`)}, scope: "spec",
			request: fields.Request{Mode: fields.Whole},
			want: map[string][]string{
				"eno (Apply)":       {"spec.list", "spec.replicas", "spec.list[name=a]", "spec.list[name=b]", "spec.list[name=a].extra", "spec.list[name=a].image", "spec.list[name=a].name", "spec.list[name=b].image", "spec.list[name=b].name"},
				"third (Update v1)": {"x"},
			},
		},
		"ByPattern": {
			reason: "items by a pattern, and no siblings", live: list,
			entries: fields.Entries{other(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}`)}, scope: "spec.list[name=~^b]",
			request: fields.Request{Mode: fields.Whole, Time: "2026-01-01T00:00:00Z"},
			want:    map[string][]string{"eno (Apply)": all("spec.list[name=b]", "", ".name"), "other (Update v1)": all("spec.list[name=a]", "", ".name")},
		},
		"Ghosts": {
			reason: "a path that the object does not have is not moved", live: list,
			entries: fields.Entries{eno(itemA), other(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:old":{}},"k:{\"name\":\"gone\"}":{".":{},"f:name":{}}}}}`)}, scope: "spec.list",
			request: fields.Request{Mode: fields.Whole},
			want: map[string][]string{
				"eno (Apply)":       all("spec.list[name=a]", "", ".extra", ".image", ".name"),
				"other (Update v1)": {"spec.list[name=gone]", "spec.list[name=a].old", "spec.list[name=gone].name"},
			},
		},
		"OwnUpdates": {
			reason: "fields that the applier updated become applied, only in the scope", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), updated(t, "eno", `{"f:spec":{"f:replicas":{},"f:list":{".":{},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}`)}, scope: "spec.list",
			want: map[string][]string{"eno (Apply)": {"spec.list", "spec.replicas", "spec.list[name=b]", "spec.list[name=b].name"}, "eno (Update v1)": {"spec.replicas"}},
		},
		"OnlyOwnUpdates": {
			reason: "also if it never applied anything", live: list,
			entries: fields.Entries{updated(t, "eno", `{"f:spec":{"f:replicas":{}}}`)}, scope: "spec",
			want: map[string][]string{"eno (Apply)": {"spec.replicas"}},
		},
		"OtherVersion": {
			reason: "paths of another version are not mixed in", live: list,
			entries: fields.Entries{eno(itemA), in("v0", other(itemA))}, scope: "spec.list",
			want:  map[string][]string{"eno (Apply)": all("spec.list[name=a]", "", ".extra", ".image", ".name"), "other (Update v0)": all("spec.list[name=a]", "", ".extra", ".image", ".name")},
			notes: []string{"other (Update v0) keeps spec.list[name=a], spec.list[name=a].extra, spec.list[name=a].image, spec.list[name=a].name: they are in version v0, which cannot be mixed with the object's"},
		},
		"Retag": {
			reason: "with Retag, the caller asserts that they mean the same", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{},"f:list":{"k:{\"name\":\"a\"}":{".":{}}}}}`), in("v0", other(`{"f:spec":{"f:targetCPU":{},"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`))}, scope: "spec.list",
			request: fields.Request{Retag: true},
			want:    map[string][]string{"eno (Apply)": append([]string{"spec.replicas"}, all("spec.list[name=a]", "", ".name")...), "other (Update v0)": {"spec.targetCPU"}},
			notes:   []string{"other (Update v0) was in version v0 and is read in the version of the object: spec.list[name=a], spec.list[name=a].name"},
		},
		"OwnOtherVersion": {
			reason: "nothing can be moved into an entry of another version; an apply in this one would put that right", live: list,
			entries: fields.Entries{in("v0", eno(itemA)), other(itemA)}, scope: "spec.list",
			want:  map[string][]string{"eno (Apply) in v0": all("spec.list[name=a]", "", ".extra", ".image", ".name"), "other (Update v1)": all("spec.list[name=a]", "", ".extra", ".image", ".name")},
			notes: []string{"eno (Apply) keeps its fields: they are in version v0, which cannot be mixed with the object's"},
		},
		"RetagOwn": {
			reason: "retagged, it holds the fields that this version has, and notes the missing ones", live: list,
			entries: fields.Entries{in("v0", eno(`{"f:spec":{"f:targetCPU":{},"f:replicas":{}}}`)), other(`{"f:spec":{"f:replicas":{}}}`)}, scope: "spec",
			request: fields.Request{Retag: true},
			want:    map[string][]string{"eno (Apply)": {"spec.replicas"}},
			notes:   []string{"eno (Apply) was in version v0 and is read in the version of the object: spec.targetCPU"},
		},
		"Subresource": {
			reason: "entries of a subresource are left alone", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), through("scale", other(`{"f:spec":{"f:replicas":{}}}`))}, scope: "spec",
			request: fields.Request{Mode: fields.Whole},
			want:    map[string][]string{"eno (Apply)": {"spec.replicas"}, "other (Update v1 of /scale)": {"spec.replicas"}},
			notes:   []string{"other (Update v1 of /scale) keeps spec.replicas: fields written through a subresource are not moved"},
		},
		"OwnSubresource": {
			reason: "even the applier's own", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), through("scale", eno(`{"f:spec":{"f:replicas":{}}}`))}, scope: "spec",
			want:  map[string][]string{"eno (Apply)": {"spec.replicas"}, "eno (Apply of /scale)": {"spec.replicas"}},
			notes: []string{"eno (Apply of /scale) keeps spec.replicas: fields written through a subresource are not moved"},
		},
		"ServersOwn": {
			reason: "fields are also moved from managers that the server named", live: list,
			entries: fields.Entries{eno(itemA), updated(t, fields.BeforeFirstApply, itemA), updated(t, fields.AncientChanges, itemA)}, scope: "spec.list",
			want: map[string][]string{"eno (Apply)": all("spec.list[name=a]", "", ".extra", ".image", ".name")},
		},
		"SetValue": {
			reason: "a value of a set, and no other", live: `{apiVersion: v1, spec: {args: [x, u]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:args":{"v:\"x\"":{}}}}`), other(`{"f:spec":{"f:args":{".":{},"v:\"u\"":{},"v:\"x\"":{}}}}`)}, scope: "spec.args",
			want: map[string][]string{"eno (Apply)": {"spec.args[=x]"}, "other (Update v1)": {"spec.args", "spec.args[=u]"}},
		},
		"Lifted": {
			reason: "a scope inside an atomic field is widened to it, with a note", live: deployment, entries: splitEntries(t), scope: "spec.selector.matchLabels",
			request: fields.Request{Mode: fields.Whole},
			want: map[string][]string{
				"eno (Apply)":                {"spec.selector", item(".image")},
				"Go-http-client (Update v1)": append([]string{"spec.replicas", initContainers}, all(item(""), "", ".command", ".imagePullPolicy", ".name", ".resources", ".securityContext")...),
			},
			notes: []string{"spec.selector can only be held as a whole; the scope is widened to it"},
		},
		"UntypedList": {
			reason: "a list without keys is one, whatever is in it; names alone make no keys", live: `{apiVersion: v1, spec: {free: {list: [{name: a}]}}}`,
			entries: fields.Entries{other(`{"f:spec":{"f:free":{"f:list":{}}}}`)}, scope: "spec.free.list[name=a]",
			request: fields.Request{Mode: fields.Whole},
			want:    map[string][]string{"eno (Apply)": {"spec.free.list"}},
			notes:   []string{"spec.free.list can only be held as a whole; the scope is widened to it"},
		},
		"Opaque": {
			reason: "nothing can be moved from a list of which no manager holds anything", live: list,
			entries: fields.Entries{other(`{"f:spec":{"f:replicas":{}}}`)}, scope: "spec.list[name=a]",
			request: fields.Request{Mode: fields.Whole},
			want:    map[string][]string{"other (Update v1)": {"spec.replicas"}},
			notes:   []string{"spec.list is a list of which no manager names an item, so the keys of its items are unknown"},
		},
		"SeveralKeys": {
			reason: "a port is its number and its protocol", live: `{apiVersion: v1, spec: {ports: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP}]}}`,
			entries: fields.Entries{other(`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}`)}, scope: "spec.ports[port=80,protocol=UDP]",
			request: fields.Request{Mode: fields.Whole},
			want:    map[string][]string{"eno (Apply)": all("spec.ports[port=80,protocol=UDP]", "", ".port", ".protocol"), "other (Update v1)": all("spec.ports[port=80,protocol=TCP]", "", ".port")},
		},
		"Annotations": {
			reason: "annotations of other managers stay with them", live: `{apiVersion: v1, metadata: {annotations: {a.b/mine: x, kubectl.kubernetes.io/last-applied-configuration: z}}}`,
			entries: fields.Entries{eno(`{"f:metadata":{"f:annotations":{"f:a.b/mine":{}}}}`), other(`{"f:metadata":{"f:annotations":{".":{},"f:a.b/mine":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`)}, scope: "metadata.annotations",
			want: map[string][]string{"eno (Apply)": {`metadata.annotations["a.b/mine"]`}, "other (Update v1)": {"metadata.annotations", `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`}},
		},
		"NeverMoved": {
			reason: "finalizers and owners are left out of a scope that has them", live: `{apiVersion: v1, metadata: {labels: {a: b}, finalizers: [x], ownerReferences: [{uid: u}]}, status: {x: 1}}`,
			entries: fields.Entries{other(`{"f:metadata":{"f:labels":{"f:a":{}},"f:finalizers":{".":{},"v:\"x\"":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}},"f:status":{"f:x":{}}}`)}, scope: "*",
			request: fields.Request{Mode: fields.Whole},
			want:    map[string][]string{"eno (Apply)": {"metadata.labels.a"}, "other (Update v1)": {"metadata.finalizers", "metadata.finalizers[=x]", "metadata.ownerReferences[uid=u]", "status.x"}},
			notes:   []string{"metadata.finalizers is in the scope and is never moved", "metadata.ownerReferences is in the scope and is never moved", "status is in the scope and is never moved"},
		},
		"TwoOfOne": {
			reason: "several entries of one identity are one", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), eno(itemA), other(itemA)}, scope: "spec.list",
			want: map[string][]string{"eno (Apply)": append([]string{"spec.replicas"}, all("spec.list[name=a]", "", ".extra", ".image", ".name")...)},
		},
		"Orphan": {
			reason: "an item without an owner, of which the applier gets fields, becomes its own; otherwise it could remove only those fields", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`), other(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:extra":{}}},"f:replicas":{}}}`)}, scope: "spec.list",
			want: map[string][]string{"eno (Apply)": all("spec.list[name=a]", "", ".extra", ".image"), "other (Update v1)": {"spec.replicas"}},
		},
		"OrphanStillNamed": {
			reason: "if it still names the item, its next apply does that", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`)}, scope: "spec.list",
			request: fields.Request{Next: set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}}}}}`)},
			want:    map[string][]string{"eno (Apply)": {"spec.list[name=a].image"}},
		},
		"OrphanNamedBefore": {
			reason: "a field without an owner that it named before becomes its own too: no other manager could remove it", live: `{apiVersion: v1, metadata: {labels: {old: x, theirs: z}}, spec: {x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{}}}`)}, scope: "metadata",
			request: fields.Request{Previous: set(t, `{"f:metadata":{"f:labels":{"f:old":{},"f:gone":{}}},"f:spec":{"f:x":{}}}`), Next: set(t, `{"f:spec":{"f:x":{}}}`)},
			want:    map[string][]string{"eno (Apply)": {"metadata.labels.old", "spec.x"}},
		},
		"OrphanNotMine": {
			reason: "an item without any owner gets none, even with mode Whole", live: list,
			entries: fields.Entries{other(itemA)}, scope: "spec.list", request: fields.Request{Mode: fields.Whole},
			want: map[string][]string{"eno (Apply)": all("spec.list[name=a]", "", ".extra", ".image", ".name")},
		},
		"NoEntriesNeeded": {
			reason: "an object without entries gets one, with what the applier names and named", live: list, scope: "spec",
			request: fields.Request{Previous: set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`), Next: set(t, `{"f:spec":{"f:list":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}},"k:{\"name\":\"new\"}":{".":{},"f:name":{}}}}}`)},
			want:    map[string][]string{"eno (Apply)": {"spec.list[name=a]", "spec.list[name=b]", "spec.list[name=a].extra", "spec.list[name=a].image", "spec.list[name=a].name", "spec.list[name=b].name"}},
			notes:   []string{"the object has no entries; this makes the first"},
		},
		"NoEntriesWhole": {
			reason: "or with all of the scope; a list with unknown keys is atomic", live: list, scope: "spec",
			request: fields.Request{Mode: fields.Whole},
			want:    map[string][]string{"eno (Apply)": {"spec.list", "spec.replicas"}},
			notes:   []string{"spec.list is a list of which no manager names an item, so the keys of its items are unknown", "the object has no entries; this makes the first"},
		},
		"NoEntriesNothing": {
			reason: "or with nothing, which makes no entry", live: list, scope: "spec",
			want: map[string][]string{},
		},
		"NoScope": {
			reason: "a missing field is not moved", live: list, entries: fields.Entries{other(itemA)}, scope: "spec.nothing",
			request: fields.Request{Mode: fields.Whole},
			want:    map[string][]string{"other (Update v1)": all("spec.list[name=a]", "", ".extra", ".image", ".name")},
		},
		"Release": {
			reason: "released fields have no owner, and the applier keeps its own", live: list,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`), other(itemA)}, scope: "spec.list",
			request: fields.Request{Effect: fields.Release},
			want:    map[string][]string{"eno (Apply)": all("spec.list[name=a]", "", ".name")},
		},
		"ReleaseOfAll": {
			reason: "the last entry stays, or the server would forget everything", live: list,
			entries: fields.Entries{other(itemA)}, scope: "spec.list",
			request: fields.Request{Mode: fields.Whole, Effect: fields.Release},
			want:    map[string][]string{"other (Update v1)": all("spec.list[name=a]", "", ".extra", ".image", ".name")},
			notes:   []string{"nothing is changed: no entry would be left, and the server would drop all ownership"},
		},
		"ReleaseOfNothing": {
			reason: "without entries there is nothing to release", live: list, scope: "spec",
			request: fields.Request{Mode: fields.Whole, Effect: fields.Release},
			want:    map[string][]string{},
			notes:   []string{"spec.list is a list of which no manager names an item, so the keys of its items are unknown"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.request.To, tc.request.Scope = "eno", fields.MustParseScope(tc.scope)
			live := object(t, tc.live)
			p, err := fields.NewPlan(live, tc.entries, tc.request)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, tc.reason, tc.want, show(p.Entries))
			diff(t, tc.reason, tc.notes, texts(p.Notes))
			if p.Changed() == fields.Equal(tc.entries, p.Entries) {
				t.Errorf("%s: changed is %t", tc.reason, p.Changed())
			}
			if err := p.Entries.Check(); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			again, err := fields.NewPlan(live, p.Entries, tc.request)
			if err != nil || again.Changed() && tc.request.Effect != fields.Release {
				t.Errorf("%s: a second plan has changes too, error %v:\n%v", tc.reason, err, show(again.Entries))
			}
			for _, e := range p.Entries {
				if e.Operation == fields.Apply && e.Manager == "eno" && len(tc.entries) > 0 && tc.request.Time != e.Time {
					t.Errorf("%s: the time is %q", tc.reason, e.Time)
				}
			}
		})
	}
}

func TestPlanKeepsTime(t *testing.T) {
	eno := applied(t, "eno", `{"f:spec":{"f:a":{}}}`)
	eno.Time = "2026-01-01T00:00:00Z"
	p, err := fields.NewPlan(object(t, `{apiVersion: v1, spec: {a: 1}}`), fields.Entries{eno, updated(t, "x", `{"f:spec":{"f:a":{}}}`)},
		fields.Request{To: "eno", Scope: fields.MustParseScope("spec"), Time: "2027-01-01T00:00:00Z"})
	if err != nil || len(p.Entries) != 1 || p.Entries[0].Time != eno.Time {
		t.Errorf("the time of an entry that was there stays: %v, error %v", p, err)
	}
}

func TestPlanErrors(t *testing.T) {
	good := fields.Request{To: "eno", Scope: fields.MustParseScope("spec")}
	live := map[string]any{"apiVersion": "v1"}
	cases := map[string]struct {
		reason  string
		live    any
		entries fields.Entries
		request fields.Request
		want    func(error) bool
	}{
		"Denied":    {reason: "status is never moved", live: live, request: fields.Request{To: "eno", Scope: fields.MustParseScope("status.x")}, want: isA[*fields.Denied]},
		"NoManager": {reason: "a manager must hold it", live: live, request: fields.Request{Scope: good.Scope}, want: is(fields.ErrNoManager)},
		"NoVersion": {reason: "without a version nothing can be compared", live: map[string]any{}, request: good, want: is(fields.ErrNoVersion)},
		"NoObject":  {reason: "nor without an object", live: nil, request: good, want: is(fields.ErrNoVersion)},
		"Defective": {
			reason: "the server would ignore the list, so it is not made", live: live, request: good,
			entries: fields.Entries{{Manager: "x", Operation: fields.Update, Fields: set(t, `{"f:a":{}}`)}}, want: isA[fields.Defects],
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := fields.NewPlan(tc.live, tc.entries, tc.request)
			if !tc.want(err) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func isA[E error](err error) bool {
	var e E

	return errors.As(err, &e)
}

// TestPlanThenApply checks that, after the move, the server's own code removes what it could not
// remove before, and nothing else.
func TestPlanThenApply(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: Thing, metadata: {name: thing}, spec: {replicas: four, containers: [{name: a, image: i, command: [c]}, {name: b, image: j}]}}`)
	wanted := object(t, `{apiVersion: v1, kind: Thing, metadata: {name: thing}}`)
	for name, other := range map[string]string{
		"Partial": `{"f:spec":{"f:replicas":{},"f:containers":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:command":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
		"Kept":    `{"f:spec":{"f:replicas":{},"f:containers":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{},"f:command":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			es := fields.Entries{applied(t, "eno", `{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}}}}}`), updated(t, "legacy", other)}
			before, err := apply(t, live, wanted, es)
			if err != nil || !scalars(before)["a"] {
				t.Fatalf("the item went without a move: %v, error %v", before, err)
			}
			p, err := fields.NewPlan(live, es, fields.Request{To: "eno", Scope: fields.MustParseScope("spec.containers"), Next: fieldSet(wanted)})
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "it is foretold", []string{"spec.containers[name=a]: Removed"}, texts(fields.New(live, p.Entries).Removals("eno", nil, fieldSet(wanted))))
			after, err := apply(t, live, wanted, p.Entries)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "the item is removed, and everything else stays",
				object(t, `{apiVersion: v1, kind: Thing, metadata: {name: thing}, spec: {replicas: four, containers: [{name: b, image: j}]}}`), after)
		})
	}
}
