package delivery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

// TestManifest writes manifests of resources, and reads them again.
func TestManifest(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		mark   enov1.Manifest
	}{
		"Plain": {reason: "Nothing but an object.", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {x: \"1\"}}"},
		"Settings": {
			reason: "Settings are annotations, next to those of the object.",
			text:   "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b, annotations: {own: kept, eno.azure.io/deletion-strategy: orphan, eno.azure.io/readiness-group: \"7\", arbor-control.dev/prune: never}}, spec: {replicas: 4}}",
		},
		"Invalid": {reason: "Settings that cannot be used are warned about again.", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, annotations: {eno.azure.io/readiness-group: first}}}"},
		"Overrides": {
			reason: "Overrides are a setting, too.",
			text:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, annotations: {eno.azure.io/overrides: '[{"path": "self.data.x", "value": "2"}]'}}, data: {x: "1"}}`,
		},
		"Tombstone": {
			reason: "Who asked for its deletion is kept.", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}",
			mark: enov1.Manifest{Deleted: true, Requested: true, DroppedBy: "uuid"},
		},
		"Patch": {
			reason: "A Patch has its target, and operations.",
			text:   `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a, namespace: b, annotations: {eno.azure.io/readiness-group: "1"}}, patch: {apiVersion: apps/v1, kind: Deployment, ops: [{op: add, path: /metadata/deletionTimestamp, value: "2020-01-01T00:00:00Z"}]}}`,
		},
		"EmptyPatch": {reason: "Or none.", text: "{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a}, patch: {apiVersion: v1, kind: Node}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := tc.mark
			m.Manifest = manifest(t, tc.text).Manifest
			first, err := reader.Read(m, nil)
			if err != nil {
				t.Fatal(err)
			}
			written, err := first.Manifest(first.Object)
			if err != nil {
				t.Fatal(err)
			}
			second, err := reader.Read(written, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, second, cmpopts.IgnoreUnexported(delivery.Resource{}, delivery.Settings{})); diff != "" {
				t.Errorf("%s -first, +second:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(fmt.Sprint(first.Warnings()), fmt.Sprint(second.Warnings())); diff != "" {
				t.Errorf("%s: warnings -first, +second:\n%s", tc.reason, diff)
			}
			if again, err := second.Manifest(second.Object); err != nil || again != written {
				t.Errorf("%s: it is written as\n%v, then as\n%v (%v)", tc.reason, written, again, err)
			}
			for _, key := range []string{enov1.AnnotationOverrides, enov1.AnnotationDeletionStrategy, enov1.AnnotationReadinessGroup, enov1.AnnotationPrune} {
				if strings.Contains(m.Manifest, key) != strings.Contains(written.Manifest, key) {
					t.Errorf("%s: annotation %s is lost: %s", tc.reason, key, written.Manifest)
				}
			}
		})
	}
}

// TestCheckNamespace has resources with and without a namespace.
func TestCheckNamespace(t *testing.T) {
	scopes := func(kind schema.GroupVersionKind) (namespaced, known bool) {
		return kind.Kind == "ConfigMap", kind.Kind != "Thing"
	}
	cases := map[string]struct {
		reason string
		text   string
		scopes delivery.Scopes
		want   string
	}{
		"Has":     {reason: "It has one.", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}", scopes: scopes},
		"Lacks":   {reason: "It has none, and needs one.", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", scopes: scopes, want: "metadata.namespace is missing: ConfigMap is a namespaced kind; have the synthesizer write metadata.namespace"},
		"Cluster": {reason: "A cluster-scoped object has none.", text: "{apiVersion: v1, kind: Node, metadata: {name: a}}", scopes: scopes},
		"Unknown": {reason: "The kind may be installed later.", text: "{apiVersion: v1, kind: Thing, metadata: {name: a}}", scopes: scopes},
		"NoScopes": {
			reason: "Scopes are not known at all.", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		},
		"Patch": {
			reason: "The target of a Patch needs one, too.", scopes: scopes, want: "metadata.namespace is missing: ConfigMap is a namespaced kind; have the synthesizer write metadata.namespace",
			text: "{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a}, patch: {apiVersion: v1, kind: ConfigMap}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := read(t, tc.text).CheckNamespace(tc.scopes); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReadVersions has stored manifests whose apiVersion cannot be one: the API server does not
// know which kind is meant.
func TestReadVersions(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: a/b/c, kind: ConfigMap, metadata: {name: a, namespace: b}}":                                  `cannot read the manifest of ConfigMap b/a: apiVersion "a/b/c" is invalid: write GROUP/VERSION`,
		"{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a}, patch: {apiVersion: a/b/c, kind: Thing}}": `cannot read Patch a: patch.apiVersion "a/b/c" is invalid: write GROUP/VERSION`,
	} {
		if _, err := reader.Read(manifest(t, text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

// TestAfterWrite has writes that the server has accepted.
func TestAfterWrite(t *testing.T) {
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}"
	const patch = "{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a, namespace: b}, patch: {apiVersion: v1, kind: ConfigMap}}"
	there, going := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	going.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
	cases := map[string]struct {
		reason, text string
		live         *unstructured.Unstructured
		want         delivery.Verb
	}{
		"Written":      {"The object is as it was written.", text, there, delivery.Nothing},
		"Going":        {"It is gone soon, and is created again then.", text, going, delivery.Wait},
		"NoTarget":     {"A Patch without target has nothing to wait for.", patch, nil, delivery.Nothing},
		"PatchWritten": {"Nor has one that was applied.", patch, there, delivery.Nothing},
		"PatchGoing":   {"A Patch does not create its target.", patch, going, delivery.Nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := delivery.AfterWrite(read(t, tc.text), tc.live); got.Verb != tc.want || got.Reason == "" {
				t.Errorf("%s: got %+v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
