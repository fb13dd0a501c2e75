package fields_test

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// TestRemovalMatrix has an applier that holds an item with its key and one field, and drops it. The
// fate depends on what another manager holds of the item.
func TestRemovalMatrix(t *testing.T) {
	const live = `{apiVersion: v1, spec: {list: [{name: x, image: i, resources: {cpu: 1}, extra: e}]}}`
	eno := applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:image":{}}}}}`)
	cases := map[string]struct{ reason, other, want string }{
		"Nothing":        {reason: "it is the applier's alone", other: `{}`, want: "spec.list[name=x]: Removed"},
		"Field":          {reason: "a field of an item does not hold the item", other: `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{"f:resources":{"f:cpu":{}}}}}}`, want: "spec.list[name=x]: Removed"},
		"ItemOnly":       {reason: "without its key the item cannot be identified", other: `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{}}}}}`, want: "spec.list[name=x]: Removed"},
		"KeyOnly":        {reason: "the key is a field like any other", other: `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{"f:name":{}}}}}`, want: "spec.list[name=x]: Removed"},
		"ListOnly":       {reason: "the list is not its items", other: `{"f:spec":{"f:list":{}}}`, want: "spec.list[name=x]: Removed"},
		"ItemAndKey":     {reason: "a partial item would stay, and its image is required", other: `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{}}}}}`, want: "spec.list[name=x]: Partial without spec.list[name=x].image, because of other (Update v1)"},
		"ItemAndField":   {reason: "without its key it cannot stay", other: `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:image":{}}}}}`, want: "spec.list[name=x]: Removed"},
		"ItemKeyAndMore": {reason: "nothing is removed, and nothing is reported", other: `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:image":{}}}}}`, want: "spec.list[name=x]: Kept, because of other (Update v1)"},
	}
	for name, tc := range cases {
		for _, operation := range []fields.Operation{fields.Update, fields.Apply} {
			t.Run(name+"/"+string(operation), func(t *testing.T) {
				other := updated(t, "other", tc.other)
				other.Operation = operation
				es := fields.Entries{eno, other}
				got := fields.New(object(t, live), es).Removals("eno", nil, nil)
				want := tc.want
				if operation == fields.Apply {
					want = replaced(want, "Update v1", "Apply")
				}
				diff(t, tc.reason, []string{want}, texts(got))
			})
		}
	}
}

func TestRemovals(t *testing.T) {
	eno := func(text string) fields.Entry { return applied(t, "eno", text) }
	other := func(text string) fields.Entry { return updated(t, "other", text) }
	scale := updated(t, "scaler", `{"f:spec":{"f:replicas":{}}}`)
	scale.Subresource = "scale"
	old := updated(t, "old", `{"f:spec":{"f:replicas":{}}}`)
	old.APIVersion = "v0"
	cases := map[string]struct {
		reason         string
		live           string
		entries        fields.Entries
		previous, next string
		want           []string
	}{
		"StillNamed": {
			reason: "a field that is named again is not reported", live: `{spec: {replicas: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`)}, next: `{"f:spec":{"f:replicas":{}}}`,
		},
		"Field": {
			reason: "a field is removed", live: `{spec: {replicas: 1, paused: true}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{},"f:paused":{}}}`)}, next: `{"f:spec":{"f:paused":{}}}`,
			want: []string{"spec.replicas: Removed"},
		},
		"CoOwnedField": {
			reason: "a field that another manager holds too stays", live: `{spec: {replicas: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), other(`{"f:spec":{"f:replicas":{}}}`)},
			want:    []string{"spec.replicas: Kept, because of other (Update v1)"},
		},
		"ThroughSubresource": {
			reason: "also through a subresource", live: `{spec: {replicas: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), scale},
			want:    []string{"spec.replicas: Kept, because of scaler (Update v1 of /scale)"},
		},
		"InOtherVersion": {
			reason: "also in another version", live: `{spec: {replicas: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), old},
			want:    []string{"spec.replicas: Kept, because of old (Update v0)"},
		},
		"OwnUpdate": {
			reason: "a field that the applier did not apply belongs to another entry", live: `{spec: {replicas: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:replicas":{}}}`), updated(t, "eno", `{"f:spec":{"f:replicas":{}}}`)},
			want:    []string{"spec.replicas: Kept, because of eno (Update v1)"},
		},
		"MapKey": {
			reason: "keys of a map go one by one", live: `{metadata: {labels: {a: x, b: u, c: z}}}`,
			entries: fields.Entries{eno(`{"f:metadata":{"f:labels":{"f:a":{},"f:b":{}}}}`), other(`{"f:metadata":{"f:labels":{".":{},"f:b":{}}}}`)},
			want:    []string{"metadata.labels.a: Removed", "metadata.labels.b: Kept, because of other (Update v1)"},
		},
		"SetValue": {
			reason: "values of a set too, and one that other managers hold stays forever", live: `{spec: {args: [x, u, z]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:args":{"v:\"x\"":{},"v:\"u\"":{}}}}`), other(`{"f:spec":{"f:args":{"v:\"u\"":{}}}}`)},
			want:    []string{"spec.args[=u]: Kept, because of other (Update v1)", "spec.args[=x]: Removed"},
		},
		"Atomic": {
			reason: "an atomic field is removed or stays as a whole", live: `{spec: {selector: {a: b}, command: [x]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:selector":{},"f:command":{}}}`), other(`{"f:spec":{"f:command":{}}}`)},
			want:    []string{"spec.command: Kept, because of other (Update v1)", "spec.selector: Removed"},
		},
		"AtomicItem": {
			reason: "an atomic item stays with its holder, without its key", live: `{spec: {list: [{uid: u, x: v}]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"uid\":\"u\"}":{}}}}`), other(`{"f:spec":{"f:list":{"k:{\"uid\":\"u\"}":{}}}}`)},
			want:    []string{"spec.list[uid=u]: Kept, because of other (Update v1)"},
		},
		"Swept": {
			reason: "a list is removed with its last item, and with it fields without an owner", live: `{spec: {list: [{name: a}, {name: injected}], x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{},"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`)}, next: `{"f:spec":{"f:x":{}}}`,
			want: []string{"spec.list[name=a]: Removed", "spec.list[name=injected]: Swept"},
		},
		"NotSwept": {
			reason: "if another manager holds anything of the list, it stays", live: `{spec: {list: [{name: a}, {name: injected}], x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{},"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`), other(`{"f:spec":{"f:list":{}}}`)},
			want:    []string{"spec.list[name=a]: Removed", "spec.x: Removed"},
		},
		"GhostSweeps": {
			reason: "an applier that holds a missing path removes the list with it", live: `{spec: {list: [{name: injected}], x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{},"f:list":{"k:{\"name\":\"ghost\"}":{".":{},"f:name":{}}}}}`)}, next: `{"f:spec":{"f:x":{}}}`,
			want: []string{"spec.list: Swept"},
		},
		"GhostSweepsDeeper": {
			reason: "also where the applier holds nothing else", live: `{metadata: {name: n, finalizers: [theirs]}, spec: {x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{}},"f:metadata":{"f:finalizers":{"v:\"ghost\"":{}}}}`)}, next: `{"f:spec":{"f:x":{}}}`,
			want: []string{"metadata.finalizers: Swept"},
		},
		"OwnGhost": {
			reason: "a path that does not exist is nothing to remove", live: `{spec: {list: [{name: a}], x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:gone":{}}}}}`), other(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`)},
		},
		"Husk": {
			reason: "a map that was held without its keys is removed with the keys that have no owner", live: `{spec: {map: {a: b}, x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{},"f:map":{}}}`)}, next: `{"f:spec":{"f:x":{}}}`,
			want: []string{"spec.map: Removed"},
		},
		"HuskStays": {
			reason: "and is not worth a word if it stays", live: `{spec: {map: {a: b}, x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{},"f:map":{}}}`), other(`{"f:spec":{"f:map":{"f:a":{}}}}`)}, next: `{"f:spec":{"f:x":{}}}`,
		},
		"OneOfSeveralKeys": {
			reason: "a key with a default has no owner; the other key is enough for the item to stay", live: `{spec: {ports: [{port: 80, protocol: TCP, name: web}]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:name":{}}}}}`), other(`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`)},
			want:    []string{"spec.ports[port=80,protocol=TCP]: Partial without spec.ports[port=80,protocol=TCP].name, because of other (Update v1)"},
		},
		"OtherKey": {
			reason: "a key must match exactly; what only looks like it is another item", live: `{spec: {ports: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP}]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}`), other(`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}`)},
			want:    []string{"spec.ports[port=80,protocol=TCP]: Removed"},
		},
		"SharedHold": {
			reason: "two other managers can hold an item together", live: `{spec: {list: [{name: a, image: i}]}}`,
			entries: fields.Entries{
				eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}}}}}`),
				other(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{}}}}}`), updated(t, "third", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:name":{}}}}}`),
			},
			want: []string{"spec.list[name=a]: Partial without spec.list[name=a].image, because of other (Update v1) and third (Update v1)"},
		},
		"NotTheItem": {
			reason: "an applier that does not hold the item itself cannot remove it, even if no other manager holds it", live: `{spec: {list: [{name: a, image: i, x: 1}]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`), other(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{"f:x":{}}}}}`)},
			want:    []string{"spec.list[name=a]: Partial without spec.list[name=a].image, because of other (Update v1)"},
		},
		"InsideOfItem": {
			reason: "a field of an item that is still named is removed alone", live: `{spec: {list: [{name: a, image: i, env: [{name: e}]}]}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{},"f:env":{"k:{\"name\":\"e\"}":{".":{},"f:name":{}}}}}}}`)},
			next:    `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			want:    []string{"spec.list[name=a].env[name=e]: Removed"},
		},
		"LostBefore": {
			reason: "a field that the applier once named and no longer holds stays forever", live: `{spec: {list: [{name: a}], x: 1}}`,
			entries:  fields.Entries{eno(`{"f:spec":{"f:x":{}}}`), other(`{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`)},
			previous: `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`, next: `{"f:spec":{"f:x":{}}}`,
			want: []string{"spec.list[name=a]: Kept, because of other (Update v1)"},
		},
		"LostByAll": {
			reason: "even without an owner", live: `{metadata: {labels: {old: x}}, spec: {x: 1}}`,
			entries: fields.Entries{eno(`{"f:spec":{"f:x":{}}}`)}, previous: `{"f:metadata":{"f:labels":{"f:old":{}}}}`, next: `{"f:spec":{"f:x":{}}}`,
			want: []string{"metadata.labels.old: Kept"},
		},
		"NeverApplied": {
			reason: "a manager that never applied removes nothing", live: `{spec: {x: 1}}`,
			entries: fields.Entries{other(`{"f:spec":{"f:x":{}}}`)}, next: `{}`,
		},
		"NamedStaysOwned": {
			reason: "metadata itself is never removed, since every apply has a name", live: `{metadata: {name: n, labels: {mine: x}, annotations: {theirs: u}}}`,
			entries: fields.Entries{eno(`{"f:metadata":{"f:labels":{"f:mine":{}}}}`)}, next: `{}`,
			want: []string{"metadata.labels.mine: Removed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var previous, next *fieldpath.Set
			if tc.previous != "" {
				previous = set(t, tc.previous)
			}
			if tc.next != "" {
				next = set(t, tc.next)
			}
			got := fields.New(object(t, tc.live), tc.entries).Removals("eno", previous, next)
			diff(t, tc.reason, tc.want, texts(got))
		})
	}
}

// TestRemovalsSayWhy checks the whole explanation of one partial item.
func TestRemovalsSayWhy(t *testing.T) {
	got := fields.New(object(t, deployment), splitEntries(t)).Removals("eno", nil, nil)
	if len(got) != 1 {
		t.Fatalf("got %v", texts(got))
	}
	item := initContainers + "[name=base-os-bash]"
	diff(t, "it is about the item", item, fields.FormatPath(got[0].Path))
	diff(t, "the removed field is required", []string{item + ".image"}, fields.FormatPaths(got[0].Removed))
	diff(t, "a container without an image would stay",
		[]string{item, item + ".command", item + ".imagePullPolicy", item + ".name", item + ".resources", item + ".securityContext"}, fields.FormatPaths(got[0].Stays))
	diff(t, "one is in the way", 1, len(got[0].Because))
	diff(t, "and holds this of the item", []string{item, item + ".command", item + ".imagePullPolicy", item + ".name", item + ".resources", item + ".securityContext"},
		fields.FormatPaths(got[0].Because[0].Fields))
}

func TestDesired(t *testing.T) {
	entries := fields.Entries{
		applied(t, "eno", `{"f:spec":{"f:selector":{},"f:args":{"v:\"x\"":{}},"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:command":{},`+
			`"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}}}`),
	}
	live := object(t, `{spec: {selector: {a: b}, containers: [{name: a, command: [c], ports: [{port: 80, protocol: TCP}, {port: 81, protocol: TCP}, {port: 81, protocol: UDP}]}]}}`)
	cases := map[string]struct {
		reason, object string
		want           []string
	}{
		"Nothing":     {reason: "nothing is desired", object: `{}`},
		"Identifying": {reason: "fields that identify the object are in no set", object: `{apiVersion: v1, kind: K, metadata: {name: n, labels: {a: b}}}`, want: []string{"metadata.labels.a"}},
		"Empty":       {reason: "an empty map or list is a value", object: `{spec: {a: {}, b: [], c: null}}`, want: []string{"spec.a", "spec.b", "spec.c"}},
		"Atomic":      {reason: "an atomic field is one path", object: `{spec: {selector: {a: b, c: d}}}`, want: []string{"spec.selector"}},
		"Set":         {reason: "a set is its values", object: `{spec: {args: [x, u]}}`, want: []string{"spec.args[=u]", "spec.args[=x]"}},
		"Unknown":     {reason: "a list with unknown keys is one path", object: `{spec: {volumes: [{name: v}]}}`, want: []string{"spec.volumes"}},
		"NewItem": {
			reason: "a new item is held like the other items, with everything in it", object: `{spec: {containers: [{name: new, command: [x], ports: [{port: 1, protocol: UDP}]}]}}`,
			want: []string{
				"spec.containers[name=new]", "spec.containers[name=new].command", "spec.containers[name=new].name",
				"spec.containers[name=new].ports[port=1,protocol=UDP]", "spec.containers[name=new].ports[port=1,protocol=UDP].port", "spec.containers[name=new].ports[port=1,protocol=UDP].protocol",
			},
		},
		"KeyLeftOut": {
			reason: "a key that is left out is that of the live item", object: `{spec: {containers: [{name: a, ports: [{port: 80}]}]}}`,
			want: []string{
				"spec.containers[name=a]", "spec.containers[name=a].name",
				"spec.containers[name=a].ports[port=80,protocol=TCP]", "spec.containers[name=a].ports[port=80,protocol=TCP].port",
			},
		},
		"KeyUnclear": {
			reason: "unless there are several, or none", object: `{spec: {containers: [{name: a, ports: [{port: 81}, {port: 82}]}, {name: b, ports: [{port: 80}]}]}}`,
			want: []string{
				"spec.containers[name=a]", "spec.containers[name=b]", "spec.containers[name=a].name",
				"spec.containers[name=a].ports[port=81]", "spec.containers[name=a].ports[port=82]", "spec.containers[name=a].ports[port=81].port", "spec.containers[name=a].ports[port=82].port",
				"spec.containers[name=b].name", "spec.containers[name=b].ports[port=80]", "spec.containers[name=b].ports[port=80].port",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			diff(t, tc.reason, tc.want, fields.FormatPaths(fields.New(live, entries).Desired(object(t, tc.object))))
		})
	}
	diff(t, "a value that is not an object has no fields", 0, fields.New(live, entries).Desired("text").Size())
}

// TestDesiredAgreesWithSchema checks that the set is that of the schema if every field of the
// object is held.
func TestDesiredAgreesWithSchema(t *testing.T) {
	for round := range rounds / 3 {
		w := newWorld(uint64(round))
		live := w.object(7)
		tree := fields.New(live, nil, fieldSet(live))
		if got, want := tree.Desired(live), fieldSet(live); !got.Equals(want) {
			t.Fatalf("round %d: %s: -schema, +got:\n%v\n%v", round, mustJSON(t, live), want.Difference(got), got.Difference(want))
		}
	}
}
