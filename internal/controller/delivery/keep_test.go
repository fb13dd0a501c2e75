package delivery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// An object of a later group is kept as it was applied last, unless a Patch of the same
// synthesis deletes or changes it first: the two would undo each other, and a hook would
// run again.
func TestKeeps(t *testing.T) {
	const (
		job   = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate","namespace":"n","annotations":{"eno.azure.io/readiness-group":"2"}}}`
		other = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"n","annotations":{"eno.azure.io/readiness-group":"2"}}}`
		patch = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"migrate","namespace":"n","annotations":{"eno.azure.io/readiness-group":"1"}},` +
			`"patch":{"apiVersion":"batch/v1","kind":"Job","ops":[{"op":"add","path":"/metadata/deletionTimestamp","value":"now"}]}}`
	)
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "s"}
	slice := enov1.ResourceSlice{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{{Manifest: patch}, {Manifest: job}, {Manifest: other}}}}
	v := idle().newView(c, []enov1.ResourceSlice{slice})
	for i, want := range []bool{false, false, true} {
		it := v.items[i]
		if it.problem != nil {
			t.Fatal(it.problem)
		}
		it.memory.desired, it.memory.tracked = it.text, true
		if got := v.keeps(it); got != want {
			t.Errorf("%s is kept: %t, want %t", it.Identity, got, want)
		}
	}
}
