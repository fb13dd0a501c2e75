package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/rehearsal"
)

// comparing is the command on a composition with manifests, and on a server.
func comparing(t *testing.T, s *serverInMemory, manifests ...string) func(genericiooptions.IOStreams) *cobra.Command {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")

	list := []any{}
	for _, m := range manifests {
		text, gone := strings.CutPrefix(m, "gone ")
		list = append(list, map[string]any{"manifest": text, "deleted": gone})
	}

	objects := documents(t, `
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: web}
status: {currentSynthesis: {uuid: 22222222-aaaa, synthesized: "2026-03-02T11:00:10Z", resourceSlices: [{name: s}]}}
---
apiVersion: eno.azure.io/v1
kind: ResourceSlice
metadata: {namespace: shop, name: s}
spec: {}
`)
	objects[1]["spec"].(map[string]any)["resources"] = list

	return func(streams genericiooptions.IOStreams) *cobra.Command {
		return New(streams, clitest.Cluster(clitest.Holding(objects...)), reaching(s), time.Now)
	}
}

// live is a server with objects that are written as JSON. It merges data, and
// adds what a server adds.
func live(t *testing.T, texts ...string) *serverInMemory {
	t.Helper()

	s := &serverInMemory{objects: map[identity.Ref]map[string]any{}}

	for _, text := range texts {
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}

		s.objects[identity.RefOf(o)] = o
	}

	s.rehearse = func(w rehearsal.Write) (map[string]any, error) {
		w.Object["status"] = map[string]any{"new": true}
		w.Object["metadata"].(map[string]any)["generation"] = int64(9)

		return w.Object, nil
	}

	return s
}

func TestDeliveryDiff(t *testing.T) {
	const (
		old = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"c","resourceVersion":"5","uid":"u","managedFields":[{"manager":"eno","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}]},"data":{"a":"old"}}`
		now = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"c","annotations":{"eno.azure.io/readiness-group":"1"}},"data":{"a":"new"}}`
		key = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"k"},"data":{"a":%q,"b":"c2FtZQ=="}}`
	)

	tests := map[string]struct {
		reason    string
		live      []string
		manifests []string
		fails     error
		want      clitest.Result
	}{
		"Changed": {
			reason: "only what people write is compared", live: []string{old}, manifests: []string{now},
			want: clitest.Result{Code: command.ExitFound, ErrOut: "synthesis 22222222 (current) of shop/web: 1 changed\n", Out: `diff -u -N LIVE/v1.ConfigMap.shop.c MERGED/v1.ConfigMap.shop.c
--- LIVE/v1.ConfigMap.shop.c
+++ MERGED/v1.ConfigMap.shop.c
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  a: old
+  a: new
 kind: ConfigMap
 metadata:
   name: c
`},
		},
		"Same": {
			reason: "no difference is no output", live: []string{old}, manifests: []string{old},
			want: clitest.Result{ErrOut: "synthesis 22222222 (current) of shop/web: 1 unchanged\n"},
		},
		"NewAndGone": {
			reason: "additions and deletions are whole objects, and what is gone already is nothing", live: []string{old},
			manifests: []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"d"}}`, "gone " + old, "gone " + strings.Replace(old, `"c"`, `"e"`, 1)},
			want: clitest.Result{Code: command.ExitFound, ErrOut: "synthesis 22222222 (current) of shop/web: 1 deleted, 1 new, 1 unchanged\n", Out: `diff -u -N LIVE/v1.ConfigMap.shop.d MERGED/v1.ConfigMap.shop.d
--- LIVE/v1.ConfigMap.shop.d
+++ MERGED/v1.ConfigMap.shop.d
@@ -0,0 +1,5 @@
+apiVersion: v1
+kind: ConfigMap
+metadata:
+  name: d
+  namespace: shop
diff -u -N LIVE/v1.ConfigMap.shop.c MERGED/v1.ConfigMap.shop.c
--- LIVE/v1.ConfigMap.shop.c
+++ MERGED/v1.ConfigMap.shop.c
@@ -1,7 +0,0 @@
-apiVersion: v1
-data:
-  a: old
-kind: ConfigMap
-metadata:
-  name: c
-  namespace: shop
`},
		},
		"Secret": {
			reason: "it is seen which values differ, and no value", live: []string{fmt.Sprintf(key, "b2xk")}, manifests: []string{fmt.Sprintf(key, "bmV3")},
			want: clitest.Result{Code: command.ExitFound, ErrOut: "synthesis 22222222 (current) of shop/web: 1 changed\n", Out: `diff -u -N LIVE/v1.Secret.shop.k MERGED/v1.Secret.shop.k
--- LIVE/v1.Secret.shop.k
+++ MERGED/v1.Secret.shop.k
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  a: (not shown) before
+  a: (not shown) after
   b: (not shown)
 kind: Secret
 metadata:
`},
		},
		"NoRight": {
			reason: "a missing right is said of the object", live: []string{old}, manifests: []string{now},
			fails: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New(`User "ada" cannot patch resource`)),
			want: clitest.Result{
				Code: command.ExitBlind, ErrOut: "synthesis 22222222 (current) of shop/web: 1 unknown\n",
				Out: `# ConfigMap shop/c: cannot be compared: no right to patch it: configmaps "c" is forbidden: User "ada" cannot patch resource` + "\n",
			},
		},
		"Denied": {
			reason: "admission is no missing right", live: []string{old}, manifests: []string{now},
			fails: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New("quiet, please")),
			want: clitest.Result{
				Code: command.ExitFound, ErrOut: "synthesis 22222222 (current) of shop/web: 1 refused\n",
				Out: `# ConfigMap shop/c: the server refuses the apply: configmaps "c" is forbidden: quiet, please` + "\n",
			},
		},
		"LeftAlone": {
			reason: "what the applier leaves alone is not compared", live: []string{old},
			manifests: []string{
				strings.Replace(now, "readiness-group\":\"1", "disable-reconciliation\":\"true", 1), strings.Replace(now, "readiness-group\":\"1", "disable-updates\":\"true", 1),
				"gone " + strings.NewReplacer("readiness-group\":\"1", "disable-reconciliation\":\"true", `"name":"c"`, `"name":"d"`).Replace(now),
			},
			want: clitest.Result{ErrOut: "synthesis 22222222 (current) of shop/web: 3 left alone\n", Out: `# ConfigMap shop/c: it is left alone: its reconciliation is disabled
# ConfigMap shop/c: it is left alone: it is there, and its updates are disabled
# ConfigMap shop/d: it is left alone: its reconciliation is disabled
`},
		},
		"ClusterScoped": {
			reason: "a chart that moves to another namespace keeps its cluster-scoped objects, as delivery does",
			live:   []string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"view"}}`},
			manifests: []string{
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"namespace":"b","name":"view"}}`,
				`gone {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"namespace":"a","name":"view"}}`,
			},
			want: clitest.Result{ErrOut: "synthesis 22222222 (current) of shop/web: 1 unchanged\n"},
		},
		"Unreadable": {
			reason: "a manifest that is none", manifests: []string{"{"},
			want: clitest.Result{
				Code: command.ExitBlind, ErrOut: "synthesis 22222222 (current) of shop/web: 1 unknown\n",
				Out: "# (no kind): cannot be compared: cannot read the manifest: unexpected end of JSON input\n",
			},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := live(t, tc.live...)
			if tc.fails != nil {
				s.rehearse = func(rehearsal.Write) (map[string]any, error) { return nil, tc.fails }
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, comparing(t, s, tc.manifests...), "", "diff", "web", "-n", "shop")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What an apply drops and cannot remove is named, with who holds it.
func TestDeliveryDiffBlocked(t *testing.T) {
	web := clitest.Stored(t, "../fields/testdata/web.yaml")
	s := &serverInMemory{objects: map[identity.Ref]map[string]any{identity.RefOf(web): web}}
	s.rehearse = func(rehearsal.Write) (map[string]any, error) {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{
			field.Required(field.NewPath("spec.template.spec.initContainers[0].image"), ""),
		})
	}
	build := comparing(t, s, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`)

	want := clitest.Result{
		Code: command.ExitFound, ErrOut: "synthesis 22222222 (current) of shop/web: 1 refused; 1 removal is blocked\n",
		Out: `# Deployment shop/web: the server refuses the apply: Deployment.apps "web" is invalid: spec.template.spec.initContainers[0].image: Required value
# Deployment shop/web: blocked removal: spec.template.spec.initContainers[name=base-os-bash] partial, without image, because of Go-http-client (Update apps/v1); once eno owns it: removed
`,
	}
	if diff := cmp.Diff(want, clitest.Run(t, build, "", "diff", "web", "-n", "shop")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	var v rehearsal.DiffView
	if err := json.Unmarshal([]byte(clitest.Run(t, build, "", "diff", "web", "-n", "shop", "-o", "json").Out), &v); err != nil {
		t.Fatal(err)
	}

	if got := v.Objects[0].Blocked; len(got) != 1 || got[0].Now.Fate != fields.Partial || got[0].After.Fate != fields.Removed {
		t.Errorf("got %+v, want one removal that is blocked now and not after", got)
	}
}

func TestDeliveryDiffSynthesis(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")

	s := live(t)
	objects := documents(t, shop)
	build := func(streams genericiooptions.IOStreams) *cobra.Command {
		return New(streams, clitest.Cluster(clitest.Holding(objects...)), reaching(s), time.Now)
	}

	for _, o := range documents(t, `
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}, data: {a: new}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: web, managedFields: [{manager: eno, operation: Apply, apiVersion: v1}]}}`) {
		s.objects[identity.RefOf(o)] = o
	}

	tests := map[string]struct {
		reason string
		args   []string
		want   clitest.Result
	}{
		"Previous": {
			reason: "a rollback changes, makes again and deletes",
			args:   []string{"web", "--synthesis", "previous"},
			want:   clitest.Result{Code: command.ExitFound, ErrOut: "synthesis 11111111 (previous) of shop/web: 2 unchanged, 1 changed, 1 deleted, 1 new\n"},
		},
		"Gone": {
			reason: "manifests may be gone", args: []string{"web", "--synthesis", "11100"},
			want: clitest.Result{Code: command.ExitBlind, Err: "cannot compare 11100000: its manifests are gone (web-0)"},
		},
		"Unknown": {
			reason: "code 1 means something else here", args: []string{"nowhere"},
			want: clitest.Result{Code: command.ExitBlind, Err: `composition "nowhere" was not found in shop namespace: look in another namespace with -n, or in all of them with -A`},
		},
		"None": {
			reason: "without manifests there is nothing to compare", args: []string{"ui", "-n", "store"},
			want: clitest.Result{Code: command.ExitBlind, Err: "composition store/ui has no manifests yet: it is PendingSynthesis"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := clitest.Run(t, build, "", append([]string{"diff", "-n", "shop"}, tc.args...)...)
			got.Out = ""

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
