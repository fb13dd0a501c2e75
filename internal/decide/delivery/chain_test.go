package delivery_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

// patching is a Patch of the object that with() makes of kind T.
func patching(group int, path string) string {
	return fmt.Sprintf(`{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a, namespace: n, annotations: {eno.azure.io/readiness-group: "%d"}}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: %q, value: x}]}}`, group, path)
}

const patchedMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n, annotations: {eno.azure.io/readiness-group: "1"}}, data: {k: v, "x/y": z}}`

func TestChains(t *testing.T) {
	other := `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: n}}`
	all := []*delivery.Resource{
		read(t, patching(2, "/data/k")), read(t, other), read(t, patching(1, "/data/k")), nil, read(t, patchedMap), read(t, patching(0, "/data/k")),
	}
	if diff := cmp.Diff([][]int{{5, 4, 2, 0}}, delivery.Chains(all)); diff != "" {
		t.Errorf("Chains(...): -want, +got:\n%s", diff)
	}
	s := delivery.NewSchedule(all, false)
	for at, i := range []int{1, 5, 4, 2, 0} {
		if !s.Open(i) {
			t.Errorf("step %d: %d is not open", at, i)
		}
		s.Done(i)
	}
	// With the composition they are deleted in any order.
	s = delivery.NewSchedule(all, true)
	s.Done(1)
	for _, i := range []int{0, 2, 4, 5} {
		if !s.Open(i) {
			t.Errorf("%d is not open", i)
		}
	}
}

func TestSupersedes(t *testing.T) {
	cases := map[string]struct {
		reason, later, earlier string
		want                   bool
	}{
		"SameField":   {"The Patch wins.", patching(1, "/data/k"), patchedMap, true},
		"OtherField":  {"Both hold.", patching(1, "/data/other"), patchedMap, false},
		"Escaped":     {"A slash in a key is written as ~1.", patching(1, "/data/x~1y"), patchedMap, true},
		"Below":       {"The resource has a value where the path leads through.", patching(1, "/data/k/deep"), patchedMap, true},
		"Whole":       {"All of data is one of its fields.", patching(1, "/data"), patchedMap, true},
		"Deletes":     {"There is nothing left to change.", patching(1, "/metadata/deletionTimestamp"), patchedMap, true},
		"Deleted":     {"A hook deletes before it creates.", patchedMap, patching(1, "/metadata/deletionTimestamp"), true},
		"Resource":    {"The later group wins.", patchedMap, patching(0, "/data/k"), true},
		"Patches":     {"The last one wins.", patching(1, "/data/k"), patching(1, "/data/k"), true},
		"PatchBelow":  {"It is a part of the other.", patching(1, "/data/k"), patching(1, "/data"), true},
		"PatchBeside": {"They have nothing in common.", patching(1, "/data/k"), patching(1, "/data/kk"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			earlier := read(t, tc.earlier)
			if got := delivery.Supersedes(read(t, tc.later), earlier, earlier.Object.Object); got != tc.want {
				t.Errorf("%s\nSupersedes(...): %t", tc.reason, got)
			}
		})
	}
}

// A manifest that nothing can be done with, such as the tombstone of an object that is also
// desired, does not count: nothing is pruned before the last manifest is applied, and
// everything then.
func TestHiddenDoesNotCount(t *testing.T) {
	s := delivery.NewSchedule([]*delivery.Resource{{}, {}, nil, {Tombstone: true, Settings: delivery.Settings{Prune: enov1.PruneLast}}}, false)
	s.Applied(2)
	s.Applied(0)
	if s.Open(3) {
		t.Error("an object is pruned although a manifest is not applied")
	}
	s.Applied(1)
	if !s.Open(3) {
		t.Error("an object is not pruned although all manifests are applied")
	}
}
