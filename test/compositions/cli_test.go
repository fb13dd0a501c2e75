package compositions_test

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	older = "11111111-0000-4000-8000-000000000000"
	newer = "22222222-0000-4000-8000-000000000000"
)

// gate has an init container of which another client holds all but the image. It
// has no replicas, so that no controller has anything to do with it.
const gate = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: gate}
spec:
  replicas: 0
  serviceName: gate
  selector: {matchLabels: {app: gate}}
  template:
    metadata: {labels: {app: gate}}
    spec:
      initContainers:
      - {name: base-os-bash, image: "base:1", command: [sh]}
      containers:
      - {name: gate, image: "gate:1"}
`

const (
	named = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: gate, annotations: {eno.azure.io/readiness-group: "1"}}
spec: {template: {spec: {initContainers: [{name: base-os-bash, image: "base:2"}]}}}
`
	dropped = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: gate}
`
	settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {eno.azure.io/x: "y"}}, data: {a: %s}}`
	extra    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {b: two}}`
)

func set(value string) string { return strings.Replace(settings, "%s", value, 1) }

// apply is what a delivery would do.
func (w *world) apply(text string) *unstructured.Unstructured {
	w.Helper()
	o := w.object(text)
	o.SetAnnotations(nil)
	o.SetLabels(nil)
	must(w.T, w.c.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(eno), client.ForceOwnership))

	return o
}

// version is that of a stored object.
func (w *world) version(o *unstructured.Unstructured) string {
	w.Helper()
	must(w.T, w.c.Get(w.Context(), client.ObjectKeyFromObject(o), o))

	return o.GetResourceVersion()
}

func TestDiff(t *testing.T) {
	w := newWorld(t)
	w.compose(enov1.CompositionStatus{CurrentSynthesis: w.slice("web-1", newer, w.manifest(set("new")), w.manifest(extra))})

	out := w.delivery(1, "diff", "web")
	w.says(out, "+  a: new", "+  b: two", "synthesis 22222222 (current)", "2 new")
	if strings.Contains(out, "eno.azure.io") {
		t.Errorf("it shows what is meant for the applier:\n%s", out)
	}

	live := w.apply(set("old"))
	before := w.version(live)
	w.apply(extra)
	out = w.delivery(1, "diff", "web")
	w.says(out, "-  a: old", "+  a: new", "1 changed, 1 unchanged")
	for _, noise := range []string{"managedFields", "resourceVersion", "uid:", "creationTimestamp"} {
		if strings.Contains(out, noise) {
			t.Errorf("it shows %s:\n%s", noise, out)
		}
	}
	if now := w.version(live); now != before {
		t.Errorf("something was written: %s, then %s", before, now)
	}

	w.apply(set("new"))
	w.says(w.delivery(0, "diff", "web"), "2 unchanged")
	w.says(w.delivery(2, "diff", "nowhere"), `composition "nowhere" was not found`)
}

// TestNamedLikeCommands has compositions that are called as commands are.
func TestNamedLikeCommands(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"diff", "history", "rollback"} {
		c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
		c.Spec.Synthesizer.Name = "synth"
		must(t, w.typed.Create(w.Context(), c))
		w.says(w.delivery(0, "composition/"+name), name)
		w.says(w.delivery(0, "--", name), name)
		w.says(w.delivery(2, "diff", name), "composition "+w.ns+"/"+name+" has no manifests yet")
		w.says(w.delivery(2, "diff", "compositions.eno.azure.io/"+name), "composition "+w.ns+"/"+name+" has no manifests yet")
	}
	w.says(w.delivery(2, "composition/nowhere"), `composition "nowhere" was not found`)
}

// TestDiffDecides has what only the delivery itself can decide.
func TestDiffDecides(t *testing.T) {
	w := newWorld(t)
	theirs := w.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {x: "1"}}`)
	must(t, w.c.Create(t.Context(), theirs, client.FieldOwner(legacy)))
	foreign := w.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}, data: {x: "1"}}`)
	must(t, w.c.Create(t.Context(), foreign, client.FieldOwner(legacy)))
	w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: scaled, labels: {by: hand}}, data: {size: "7"}}`)
	w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: whole}, data: {a: "1", more: "1"}}`)
	gone := w.manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}`)
	gone.Deleted = true
	w.compose(enov1.CompositionStatus{CurrentSynthesis: w.slice("web-1", newer, gone,
		w.manifest(`{apiVersion: v1, kind: ConfigMap, data: {size: "1"}, metadata: {name: scaled, annotations: {eno.azure.io/overrides: '[{"path": "self.data.size", "condition": "composition.metadata.name == ''web''", "valueExpression": "self.data.size"}]'}}}`),
		w.manifest(`{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, metadata: {name: whole, annotations: {eno.azure.io/replace: "true"}}}`),
		w.manifest(`{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: theirs}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: /data/x, value: "2"}]}}`),
		w.manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: bad, annotations: {eno.azure.io/readiness-group: first}}}`),
	)})
	out := w.delivery(1, "diff", "web")
	w.says(out, "it is left alone: another client created it", "override 0 (self.data.size) is Active", "-  x: \"1\"\n+  x: \"2\"",
		`annotation eno.azure.io/readiness-group: cannot use "first"`, "1 changed, 1 left alone, 1 new")
	if strings.Contains(out, "size:") {
		t.Errorf("it shows a change that an override prevents:\n%s", out)
	}
}

func TestDiffBlocked(t *testing.T) {
	w := newWorld(t)
	must(t, w.c.Create(t.Context(), w.object(gate), client.FieldOwner(legacy)))
	w.apply(named)
	w.compose(enov1.CompositionStatus{
		CurrentSynthesis:  w.slice("web-2", newer, w.manifest(dropped)),
		PreviousSynthesis: w.slice("web-1", older, w.manifest(named)),
	})

	w.says(w.delivery(1, "diff", "web"),
		"the server refuses the apply", "spec.template.spec.initContainers[0].image: Required value",
		"blocked removal: spec.template.spec.initContainers[name=base-os-bash] partial, without image, because of "+legacy+" (Update apps/v1); once eno owns it: removed",
		"1 refused; 1 removal is blocked")
	w.says(w.delivery(1, "diff", "web", "-o", "json"), `"change": "Refused"`, `"fate": "Partial"`, `"manager": "`+legacy+`"`)
	w.says(w.delivery(0, "diff", "web", "--synthesis", "previous"), "1 unchanged")
}

// A rollback makes again what is gone, and deletes what is new.
func TestDiffOfRollback(t *testing.T) {
	w := newWorld(t)
	w.apply(set("new"))
	w.apply(extra)
	gone := strings.Replace(extra, "extra", "gone", 1)
	w.compose(enov1.CompositionStatus{
		CurrentSynthesis:  w.slice("web-2", newer, w.manifest(set("new")), w.manifest(extra)),
		PreviousSynthesis: w.slice("web-1", older, w.manifest(set("old")), w.manifest(gone)),
	})

	w.says(w.delivery(1, "diff", "web", "--synthesis", "1111"), "-  a: new", "+  a: old", "-  name: extra", "+  name: gone", "1 changed, 1 deleted, 1 new")
}

// What is not there yet cannot be rehearsed, and may be made by the same apply.
func TestDiffOfUnknownKinds(t *testing.T) {
	w := newWorld(t)
	w.compose(enov1.CompositionStatus{CurrentSynthesis: w.slice("web-1", newer,
		w.manifest(`{apiVersion: example.com/v1, kind: Gate, metadata: {name: north}, spec: {open: true}}`))})

	w.says(w.delivery(1, "diff", "web"), "+kind: Gate", "it could not be rehearsed", "1 new")
}

func TestDiffWithoutPermissions(t *testing.T) {
	w := newWorld(t)
	w.apply(set("old"))
	w.compose(enov1.CompositionStatus{CurrentSynthesis: w.slice("web-1", newer, w.manifest(set("new")))})
	api := rbacv1.PolicyRule{APIGroups: []string{enov1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}
	w.allow("reader", api, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	w.allow("lister", api)

	w.says(w.delivery(2, "diff", "web", "--as", "reader"), "no right to patch it", `User "reader" cannot patch resource "configmaps"`)
	w.says(w.delivery(2, "diff", "web", "--as", "lister"), "no right to get it", `User "lister" cannot get resource "configmaps"`)
	w.says(w.delivery(2, "diff", "web", "--as", "stranger"), "cannot list compositions.eno.azure.io")
	w.says(w.delivery(1, "rollback", "web", "--to", "2222", "--as", "reader"), "cannot change Composition", "cannot patch resource")
}

// allow gives a user permissions in the namespace, and waits until the API server has heard
// of them.
func (w *world) allow(user string, rules ...rbacv1.PolicyRule) {
	w.Helper()
	meta := metav1.ObjectMeta{Namespace: w.ns, Name: user}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		must(w.T, w.c.Create(w.Context(), o))
	}
	r := rules[0]
	cluster.Eventually(w, user+" has permissions", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.ns, Verb: r.Verbs[0], Group: r.APIGroups[0], Resource: "compositions"},
		}}
		if err := w.c.Create(w.Context(), review); err != nil || !review.Status.Allowed {
			return fmt.Errorf("it has not: %s: %w", review.Status.Reason, err)
		}

		return nil
	})
}

func TestTreeHistoryAndRollback(t *testing.T) {
	w := newWorld(t)
	c := w.compose(enov1.CompositionStatus{
		CurrentSynthesis:  w.slice("web-2", newer, w.manifest(set("new")), w.manifest(extra)),
		PreviousSynthesis: w.slice("web-1", older, w.manifest(set("old"))),
	})
	pinned := func(want string) {
		t.Helper()
		must(t, w.typed.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		if got := c.Annotations[enov1.AnnotationRollback]; got != want {
			t.Errorf("it is pinned to %q, want %q", got, want)
		}
	}

	w.says(w.delivery(0), "/web ", "Reconciling, synthesizer synth, 22222222", "! ConfigMap "+w.ns+"/settings", "2 resources: 2 not ready")
	w.says(w.delivery(0, "web"), "current 22222222", "previous 11111111")
	w.says(w.delivery(2, "nowhere"), `composition "nowhere" was not found`)
	w.says(w.delivery(2, "-o", "xml"), "unknown output format")
	w.says(w.delivery(0, "history", "web"), newer, older, "current", "previous")

	w.says(w.delivery(0, "rollback", "web", "--to", "previous", "--dry-run"), "would be pinned", "nothing was written")
	pinned("")
	w.says(w.delivery(2, "rollback", "web", "--to", "9"), "no synthesis", newer, older)
	w.says(w.delivery(0, "rollback", "web", "--to", "1111"), "is pinned to 11111111", "--resume")
	pinned(older)
	w.says(w.delivery(0, "rollback", "web", "--to", "1111"), "is already pinned")
	w.says(w.delivery(0, "web"), "pinned to 11111111")
	w.says(w.delivery(0, "rollback", "web", "--resume"), "is no longer pinned")
	pinned("")
	w.says(w.delivery(0, "rollback", "web", "--resume"), "is not pinned")
}

// What is delivered in other ways than by an apply is rehearsed in those ways.
func TestDiffOfOtherWrites(t *testing.T) {
	const annotated = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {eno.azure.io/%s}}, data: {a: new}}`
	cases := map[string]struct {
		reason   string
		manifest string
		gone     bool
		code     int
		want     []string
	}{
		"Patch": {
			reason:   "a patch of somebody else's object",
			manifest: `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: settings}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: /data/c, value: three}]}}`,
			code:     1, want: []string{"+  c: three", "ConfigMap", "1 changed"},
		},
		"PatchOfNothing": {
			reason:   "what is not there is not patched",
			manifest: `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: nowhere}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: /data/c, value: three}]}}`,
			want:     []string{"1 unchanged"},
		},
		"BadPatch": {
			reason:   "a patch that does not fit is refused",
			manifest: `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: settings}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: remove, path: /data/z}]}}`,
			code:     1, want: []string{"the server refuses the apply", "1 refused"},
		},
		"Replace": {
			reason:   "what others wrote goes, too",
			manifest: strings.Replace(annotated, "%s", `replace: "true"`, 1),
			code:     1, want: []string{"-  a: old", "-  other: theirs", "+  a: new", "it is replaced as a whole"},
		},
		"Tombstone": {
			reason: "it goes as it is", manifest: set("new"), gone: true,
			code: 1, want: []string{"-  a: old", "-  other: theirs", "1 deleted"},
		},
		"Orphan": {
			reason: "it stays only when the composition is deleted", manifest: strings.Replace(annotated, "%s", "deletion-strategy: orphan", 1), gone: true,
			code: 1, want: []string{"-  a: old", "1 deleted"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			live := w.apply(set("old"))
			must(t, w.c.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"data":{"other":"theirs"}}`)), client.FieldOwner(legacy)))
			before := w.version(live)
			m := w.manifest(tc.manifest)
			m.Deleted = tc.gone
			w.compose(enov1.CompositionStatus{CurrentSynthesis: w.slice("web-1", newer, m)})

			w.says(w.delivery(tc.code, "diff", "web"), tc.want...)
			if now := w.version(live); now != before {
				t.Errorf("%s: something was written: %s, then %s", tc.reason, before, now)
			}
		})
	}
}

// An object of a namespace that is not there yet may be made with it.
func TestDiffOfMissingNamespace(t *testing.T) {
	w := newWorld(t)
	m := w.manifest(extra)
	m.Manifest = strings.Replace(m.Manifest, w.ns, w.ns+"-later", 1)
	w.compose(enov1.CompositionStatus{CurrentSynthesis: w.slice("web-1", newer, m)})

	w.says(w.delivery(1, "diff", "web"), "+  b: two", "it could not be rehearsed: namespaces", "1 new")
}
