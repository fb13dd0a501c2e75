package synthesis

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/identity"
)

// TestSlim reduces a slice, once and again. Everything but the manifests stays, and so do what is
// measured by them and the digest of the whole spec.
func TestSlim(t *testing.T) {
	reason := "held by a finalizer"
	full := &enov1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "s", UID: "u", ResourceVersion: "7", Finalizers: []string{enov1.Finalizer}, Labels: map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{Kind: enov1.CompositionKind, Name: "c", UID: "c-u", Controller: new(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "x"}},
		},
		Spec: enov1.ResourceSliceSpec{SynthesisUUID: "1", Resources: []enov1.Manifest{
			{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","labels":{"x":"y"}},"data":{"large":"text"}}`},
			{Manifest: `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a","namespace":"n"},"patch":{"apiVersion":"v1","kind":"ConfigMap","ops":[]}}`},
			{Manifest: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"old"}}`, Deleted: true},
			{Manifest: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w","namespace":"n"},"spec":{}}`},
		}},
		Status: enov1.ResourceSliceStatus{Resources: []enov1.ResourceState{{Reconciled: true}, {Reconciled: true}, {}, {ReconciliationError: &reason}}},
	}
	want := full.DeepCopy()
	digest := tenancy.Digest(&full.Spec)
	want.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: digest, Operation: "Digest"}}
	for i, head := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`,
		`{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"namespace":"n","name":"a"},"patch":{"apiVersion":"v1","kind":"ConfigMap"}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"old"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"w"}}`,
	} {
		want.Spec.Resources[i].Manifest = head
	}
	measured := decide.Measure([]*enov1.ResourceSlice{full.DeepCopy()})
	for _, time := range []string{"once", "twice"} {
		got, err := Slim(full)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Slim(...) %s: -want, +got:\n%s", time, diff)
		}
	}
	if diff := cmp.Diff(measured, decide.Measure([]*enov1.ResourceSlice{full})); diff != "" {
		t.Errorf("Measure(Slim(...)): -want, +got:\n%s", diff)
	}
	if got := digestOf(full); got != digest {
		t.Errorf("digestOf(...): %s, want that of the whole spec, %s", got, digest)
	}
	if got, err := Slim("tombstone"); got != "tombstone" || err != nil {
		t.Errorf("Slim(...) of something else: %v, %v", got, err)
	}
}

// TestSlimBroken is about manifests that cannot be parsed. Their object is not known, before or
// after.
func TestSlimBroken(t *testing.T) {
	for _, text := range []string{"", "{", `[]`, `{"kind":1}`, `{"metadata":{"name":"a"}}`, fmt.Sprintf("%q", "text")} {
		if got, want := identity.Read(decide.Head(text)), identity.Read(text); got != want {
			t.Errorf("identity.Read(Head(%s)): %+v, want %+v", text, got, want)
		}
	}
}
