package fields_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/engine/fields"
)

// drawn returns a tree as lines: path, kind, state, holders.
func drawn(tree *fields.Tree) []string {
	var all []string
	for n := range tree.Root().All() {
		if n == tree.Root() {
			continue
		}
		ghost := ""
		if !n.Live {
			ghost = " ghost"
		}
		text := fmt.Sprintf("%s %s %s%s", fields.FormatPath(n.Path()), n.Kind, n.State, ghost)
		for _, id := range tree.Identities(n.Holders) {
			text += " " + id.Manager
		}
		all = append(all, text)
	}

	return all
}

func TestTree(t *testing.T) {
	cases := map[string]struct {
		reason  string
		live    string
		entries fields.Entries
		want    []string
	}{
		"States": {
			reason: "every field has its owners, and what is above them a summary",
			live:   `{spec: {a: 1, b: 2, c: 3, d: {e: 4, f: 5}, g: {h: 6, i: 7}}}`,
			entries: fields.Entries{
				applied(t, "eno", `{"f:spec":{"f:a":{},"f:b":{},"f:d":{"f:e":{},"f:f":{}},"f:g":{"f:h":{}}}}`),
				updated(t, "legacy", `{"f:spec":{"f:b":{},"f:g":{"f:i":{}}}}`),
			},
			want: []string{
				"spec Struct Split", "spec.a Leaf Sole eno", "spec.b Leaf CoOwned eno legacy", "spec.c Leaf Unowned",
				"spec.d Struct Sole", "spec.d.e Leaf Sole eno", "spec.d.f Leaf Sole eno",
				"spec.g Struct Split", "spec.g.h Leaf Sole eno", "spec.g.i Leaf Sole legacy",
			},
		},
		"Identifying": {
			reason:  "fields that identify an object are in no set, and so in no tree",
			live:    `{apiVersion: v1, kind: K, metadata: {name: n, namespace: s, uid: u, generation: 1, resourceVersion: "1", creationTimestamp: t, managedFields: [], labels: {a: b}}, spec: {name: x}}`,
			entries: nil,
			want:    []string{"metadata Struct Unowned", "metadata.labels Struct Unowned", "metadata.labels.a Leaf Unowned", "spec Struct Unowned", "spec.name Leaf Unowned"},
		},
		"Ghosts": {
			reason:  "a path that the object does not have is in the tree, and marked",
			live:    `{spec: {list: [{name: a}]}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:gone":{},"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:x":{}},"k:{\"name\":\"b\"}":{".":{}}}}}`)},
			want: []string{
				"spec Struct Split", "spec.gone Leaf Sole ghost eno", "spec.list Items Split", "spec.list[name=a] Struct Split eno",
				"spec.list[name=a].name Leaf Unowned", "spec.list[name=a].x Leaf Sole ghost eno", "spec.list[name=b] Leaf Sole ghost eno",
			},
		},
		"Atomic": {
			reason:  "an atomic field has no children",
			live:    `{spec: {selector: {matchLabels: {a: b}}, command: [x, y], empty: {}, none: []}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:selector":{},"f:command":{},"f:empty":{},"f:none":{}}}`)},
			want: []string{
				"spec Struct Sole", "spec.command Atomic Sole eno", "spec.empty Leaf Sole eno", "spec.none Leaf Sole eno", "spec.selector Atomic Sole eno",
			},
		},
		"LabelsAreNotAtomic": {
			reason:  "labels and annotations are held one by one in all objects, even if only a husk is left of their map",
			live:    `{metadata: {labels: {a: b}, annotations: {c: d}}}`,
			entries: fields.Entries{updated(t, "husk", `{"f:metadata":{"f:labels":{},"f:annotations":{}}}`)},
			want: []string{
				"metadata Struct Split", "metadata.annotations Struct Split husk", "metadata.annotations.c Leaf Unowned",
				"metadata.labels Struct Split husk", "metadata.labels.a Leaf Unowned",
			},
		},
		"Opaque": {
			reason:  "the keys of a list are unknown if no manager names an item, even if the items have names",
			live:    `{spec: {list: [{name: a}], preserved: {inner: [{name: a}]}}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:preserved":{"f:inner":{}}}}`)},
			want:    []string{"spec Struct Split", "spec.list Opaque Unowned", "spec.preserved Struct Sole", "spec.preserved.inner Atomic Sole eno"},
		},
		"LearntFromSibling": {
			reason: "keys of a list in one item apply to that list in all items",
			live:   `{spec: {list: [{name: a, ports: [{port: 1}]}, {name: b, ports: [{port: 2}], args: [x]}]}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:args":{},`+
				`"f:ports":{"k:{\"port\":1}":{".":{},"f:port":{}}}}}}}`)},
			want: []string{
				"spec Struct Split", "spec.list Items Split",
				"spec.list[name=a] Struct Sole eno", "spec.list[name=a].args Leaf Sole ghost eno", "spec.list[name=a].name Leaf Sole eno",
				"spec.list[name=a].ports Items Sole", "spec.list[name=a].ports[port=1] Struct Sole eno", "spec.list[name=a].ports[port=1].port Leaf Sole eno",
				"spec.list[name=b] Struct Unowned", "spec.list[name=b].args Atomic Unowned", "spec.list[name=b].name Leaf Unowned",
				"spec.list[name=b].ports Items Unowned", "spec.list[name=b].ports[port=2] Struct Unowned", "spec.list[name=b].ports[port=2].port Leaf Unowned",
			},
		},
		"SetValues": {
			reason:  "values of a set are items",
			live:    `{spec: {args: [x, z]}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:args":{"v:\"x\"":{},"v:\"y\"":{}}}}`)},
			want:    []string{"spec Struct Split", "spec.args Items Split", "spec.args[=x] Leaf Sole eno", "spec.args[=y] Leaf Sole ghost eno", "spec.args[=z] Leaf Unowned"},
		},
		"SeveralKeys": {
			reason:  "all keys must match, and numbers are numbers; an item without one of the keys is identified by the rest",
			live:    `{spec: {ports: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP}, {port: 81}]}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{}},"k:{\"port\":81}":{".":{}},"k:{\"port\":80}":{".":{}}}}}`)},
			want: []string{
				"spec Struct Split", "spec.ports Items Split", "spec.ports[port=80] Leaf Sole ghost eno",
				"spec.ports[port=80,protocol=TCP] Struct Unowned", "spec.ports[port=80,protocol=TCP].port Leaf Unowned", "spec.ports[port=80,protocol=TCP].protocol Leaf Unowned",
				"spec.ports[port=80,protocol=UDP] Struct Split eno", "spec.ports[port=80,protocol=UDP].port Leaf Sole eno", "spec.ports[port=80,protocol=UDP].protocol Leaf Unowned",
				"spec.ports[port=81] Struct Split eno", "spec.ports[port=81].port Leaf Unowned",
			},
		},
		"OddItems": {
			reason:  "an item without what it should be known by has a position, and of two with one key the first counts",
			live:    `{spec: {list: [{name: a, x: 1}, {name: a, x: 2}, {x: 3}, text]}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"i:7":{}}}}`)},
			want: []string{
				"spec Struct Split", "spec.list Items Split", "spec.list[name=a] Struct Split eno", "spec.list[name=a].name Leaf Sole eno", "spec.list[name=a].x Leaf Unowned",
				"spec.list[2] Struct Unowned", "spec.list[2].x Leaf Unowned", "spec.list[3] Leaf Unowned", "spec.list[7] Leaf Sole ghost eno",
			},
		},
		"AtomicItems": {
			reason:  "an item can be held as a whole too, as owner references are",
			live:    `{metadata: {ownerReferences: [{uid: u, name: n}]}}`,
			entries: fields.Entries{updated(t, "x", `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"u\"}":{}}}}`)},
			want:    []string{"metadata Struct Sole", "metadata.ownerReferences Items Sole x", "metadata.ownerReferences[uid=u] Atomic Sole x"},
		},
		"TwoEntriesOfOne": {
			reason:  "entries are merged first",
			live:    `{spec: {a: 1, b: 2}}`,
			entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:a":{}}}`), applied(t, "eno", `{"f:spec":{"f:b":{}}}`)},
			want:    []string{"spec Struct Sole", "spec.a Leaf Sole eno", "spec.b Leaf Sole eno"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			diff(t, tc.reason, tc.want, drawn(fields.New(object(t, tc.live), tc.entries)))
		})
	}
}

func TestTreeOfNothing(t *testing.T) {
	es := fields.Entries{applied(t, "eno", `{"f:spec":{}}`)}
	for _, live := range []any{nil, "text", map[string]any{}, []any{}} {
		diff(t, "all that is held is a ghost", []string{"spec Leaf Sole ghost eno"}, drawn(fields.New(live, es)))
	}
}

func TestTreeReadsAllNumbers(t *testing.T) {
	es := fields.Entries{applied(t, "eno", `{"f:ports":{"k:{\"port\":80}":{".":{}},"k:{\"port\":1.5}":{".":{}}}}`)}
	for _, eighty := range []any{80, int32(80), int64(80), uint64(80), 80.0, json.Number("80")} {
		tree := fields.New(map[string]any{"ports": []any{map[string]any{"port": eighty}, map[string]any{"port": json.Number("1.5")}}}, es)
		if text := strings.Join(drawn(tree), "\n"); strings.Contains(text, "ghost") {
			t.Errorf("%T: %s", eighty, text)
		}
	}
}

func TestTreeWalkEnds(t *testing.T) {
	tree := fields.New(object(t, `{a: {b: 1}, c: 2}`), nil)
	seen := 0
	for range tree.Root().All() {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 || len(tree.Entries()) != 0 {
		t.Errorf("%d nodes seen, want 3", seen)
	}
}

const initContainers = "spec.template.spec.initContainers"

// deployment has two init containers. A deployer applied one field of the first; another manager
// created the object.
const deployment = `
apiVersion: v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    spec:
      initContainers:
      - {name: base-os-bash, image: "base:1", command: [sh], imagePullPolicy: Always, resources: {}, securityContext: {}}
      - {name: injected, image: "proxy:1"}
`

func splitEntries(t testing.TB) fields.Entries {
	t.Helper()

	return fields.Entries{
		applied(t, "eno", `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"base-os-bash\"}":{"f:image":{}}}}}}}`),
		updated(t, "Go-http-client", `{"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:initContainers":{".":{},`+
			`"k:{\"name\":\"base-os-bash\"}":{".":{},"f:command":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},"f:securityContext":{}}}}}}}`),
	}
}

func TestCheckOwnership(t *testing.T) {
	fully := applied(t, "eno", `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"base-os-bash\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`)
	scale := updated(t, "autoscaler", `{"f:spec":{"f:replicas":{}}}`)
	scale.Subresource = "scale"
	cases := map[string]struct {
		reason  string
		live    string
		entries fields.Entries
		scope   string
		want    fields.Ownership
	}{
		"Split": {
			reason: "two managers have parts of one item", entries: splitEntries(t), scope: initContainers,
			want: fields.Ownership{ScopeExists: true, OtherManagers: []string{"Go-http-client"}},
		},
		"Fully": {
			reason: "only the applier has fields there; fields without an owner do not matter", entries: fields.Entries{fully}, scope: initContainers,
			want: fields.Ownership{ScopeExists: true, FullyOwned: true},
		},
		"OthersElsewhere": {
			reason: "fields of other managers outside of the scope do not matter", entries: fields.Entries{fully, updated(t, "x", `{"f:spec":{"f:replicas":{}}}`)}, scope: initContainers,
			want: fields.Ownership{ScopeExists: true, FullyOwned: true},
		},
		"NoEntries": {
			reason: "an object without entries has no owner", scope: initContainers,
			want: fields.Ownership{ScopeExists: true},
		},
		"NoScope": {
			reason: "a missing scope cannot be owned", entries: splitEntries(t), scope: "spec.template.spec.containers",
			want: fields.Ownership{},
		},
		"NoItem": {
			reason: "an item that does not exist", entries: splitEntries(t), scope: initContainers + "[name=gone]",
			want: fields.Ownership{},
		},
		"GhostOnly": {
			reason: "a scope that is only in an entry does not exist", entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:paused":{}}}`)}, scope: "spec.paused",
			want: fields.Ownership{},
		},
		"OthersGhost": {
			reason: "ghosts of other managers do not matter", entries: fields.Entries{fully, updated(t, "x", `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"gone\"}":{".":{}}}}}}}`)}, scope: initContainers,
			want: fields.Ownership{ScopeExists: true, FullyOwned: true},
		},
		"OneItem": {
			reason: "an item without an owner is not fully owned", entries: splitEntries(t), scope: initContainers + "[name=injected]",
			want: fields.Ownership{ScopeExists: true},
		},
		"OwnUpdates": {
			reason: "a field that the applier did not apply belongs to another entry", entries: fields.Entries{fully, updated(t, "eno", `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{".":{}}}}}}`)}, scope: initContainers,
			want: fields.Ownership{ScopeExists: true, OwnUpdates: true},
		},
		"Subresource": {
			reason: "entries of a subresource are never moved, and so do not matter", entries: fields.Entries{applied(t, "eno", `{"f:spec":{"f:replicas":{}}}`), scale}, scope: "spec",
			want: fields.Ownership{ScopeExists: true, FullyOwned: true, Subresources: []fields.Identity{scale.Identity()}},
		},
		"Lifted": {
			reason: "below what is held as a whole, that counts", entries: splitEntries(t), scope: "spec.selector.matchLabels.app",
			want: fields.Ownership{ScopeExists: true, OtherManagers: []string{"Go-http-client"}, Lifted: []fieldPath{path("spec", "selector")}},
		},
		"NotLifted": {
			reason: "but only if what is asked for is there", entries: splitEntries(t), scope: "spec.selector.matchExpressions",
			want: fields.Ownership{},
		},
		"Opaque": {
			reason: "an item of a list without an owner exists", live: `{spec: {list: [{name: a, kinds: [x]}]}}`, scope: "spec.list[name=a].kinds[=x]",
			want: fields.Ownership{ScopeExists: true},
		},
		"NotOpaque": {
			reason: "or is not", live: `{spec: {list: [{name: a, kinds: [x]}]}}`, scope: "spec.list[name=a].kinds[=y]",
			want: fields.Ownership{},
		},
		"Denied": {
			reason: "finalizers are never moved, and so do not count in all of metadata", live: `{metadata: {labels: {a: b}, finalizers: [x]}}`, scope: "metadata",
			entries: fields.Entries{applied(t, "eno", `{"f:metadata":{"f:labels":{"f:a":{}}}}`), updated(t, "x", `{"f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}}}`)},
			want:    fields.Ownership{ScopeExists: true, FullyOwned: true},
		},
		"AskedFor": {
			reason: "unless they are what is asked for", live: `{metadata: {labels: {a: b}, finalizers: [x]}}`, scope: "metadata.finalizers",
			entries: fields.Entries{applied(t, "eno", `{"f:metadata":{"f:labels":{"f:a":{}}}}`), updated(t, "x", `{"f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}}}`)},
			want:    fields.Ownership{ScopeExists: true, OtherManagers: []string{"x"}},
		},
		"ServersOwn": {
			reason: "managers that the server named are managers like any other", entries: fields.Entries{fully, updated(t, fields.BeforeFirstApply, `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{".":{}}}}}}`), updated(t, fields.AncientChanges, `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{".":{}}}}}}`)}, scope: initContainers,
			want: fields.Ownership{ScopeExists: true, OtherManagers: []string{"ancient-changes", "before-first-apply"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.live == "" {
				tc.live = deployment
			}
			got := fields.New(object(t, tc.live), tc.entries).CheckOwnership(fields.MustParseScope(tc.scope), "eno")
			diff(t, tc.reason, tc.want, got)
		})
	}
}
