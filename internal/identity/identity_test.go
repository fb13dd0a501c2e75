package identity_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
)

// scopes knows some kinds, as a cluster does.
func scopes(group, kind string) (namespaced, known bool) {
	switch kind + "." + group {
	case "ConfigMap.", "Deployment.apps":
		return true, true
	case "Namespace.", "CustomResourceDefinition.apiextensions.k8s.io":
		return false, true
	}

	return false, false
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason   string
		manifest string
		want     identity.Identity
		text     string
	}{
		"Core":    {"The core group has no name.", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`, identity.Identity{Kind: "ConfigMap", Namespace: "n", Name: "a"}, "ConfigMap n/a"},
		"Group":   {"Versions of a group are one object.", `{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"namespace":"n","name":"a"}}`, identity.Identity{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "a"}, "Deployment n/a"},
		"Cluster": {"Not every object has a namespace.", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`, identity.Identity{Kind: "Namespace", Name: "a"}, "Namespace a"},
		"Patch": {
			reason:   "A Patch has the group and kind of its target, and its namespace and name are those of the target.",
			manifest: `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"namespace":"n","name":"a"},"patch":{"apiVersion":"apps/v1","kind":"Deployment","ops":[]}}`,
			want:     identity.Identity{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "a", Patch: 1}, text: "Patch of Deployment.apps n/a",
		},
		"PatchOfCore":  {"The core group is not named.", `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a"},"patch":{"apiVersion":"v1","kind":"Pod"}}`, identity.Identity{Kind: "Pod", Name: "a", Patch: 1}, "Patch of Pod a"},
		"NewerPatch":   {"It is one in every version.", `{"apiVersion":"eno.azure.io/v2","kind":"Patch","metadata":{"name":"a"},"patch":{"apiVersion":"v1","kind":"Pod"}}`, identity.Identity{Kind: "Pod", Name: "a", Patch: 1}, "Patch of Pod a"},
		"AnotherPatch": {"Another group may have a kind of this name.", `{"apiVersion":"b/v1","kind":"Patch","metadata":{"name":"a"},"patch":{"apiVersion":"v1","kind":"Pod"}}`, identity.Identity{Group: "b", Kind: "Patch", Name: "a"}, "Patch a"},
		"NoTarget":     {"A Patch without target is still one.", `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a"}}`, identity.Identity{Name: "a", Patch: 1}, "Patch of  a"},
		"NoName":       {"What is missing is left out.", `{"kind":"ConfigMap"}`, identity.Identity{Kind: "ConfigMap"}, "ConfigMap"},
		"BadField":     {"The fields that can be read count.", `{"apiVersion":7,"kind":"ConfigMap","metadata":{"name":"a","namespace":[]},"patch":[1]}`, identity.Identity{Kind: "ConfigMap", Name: "a"}, "ConfigMap a"},
		"Garbage":      {"There is nothing to read.", `{`, identity.Identity{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := identity.Read(tc.manifest)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRead(...): -want, +got:\n%s", tc.reason, diff)
			}
			var object map[string]any
			_ = json.Unmarshal([]byte(tc.manifest), &object) // nil has no identity
			if diff := cmp.Diff(got, identity.Of(object)); diff != "" {
				t.Errorf("Of(...) differs from Read(...): -read, +of:\n%s", diff)
			}
			if diff := cmp.Diff(tc.text, got.String()); diff != "" {
				t.Errorf("%s\nString(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAPI compares the constants with the API, which this package does without.
func TestAPI(t *testing.T) {
	if !identity.IsPatch(enov1.GroupVersion.String(), enov1.PatchKind) {
		t.Errorf("IsPatch(%q, %q) is false", enov1.GroupVersion, enov1.PatchKind)
	}
}

func TestNormalize(t *testing.T) {
	const crd, crdVersion = "CustomResourceDefinition", "apiextensions.k8s.io/v1"
	cases := map[string]struct {
		reason string
		id     identity.Identity
		scopes identity.Scopes
		want   identity.Identity
		known  bool
	}{
		"Namespaced":    {"The namespace counts.", identity.New("v1", "ConfigMap", "a", "x"), scopes, identity.New("v1", "ConfigMap", "a", "x"), true},
		"ClusterScoped": {"The API server ignores the namespace.", identity.New(crdVersion, crd, "a", "x"), scopes, identity.New(crdVersion, crd, "", "x"), true},
		"None":          {"Without a namespace there is nothing to know.", identity.New("b/v1", "Stone", "", "x"), scopes, identity.New("b/v1", "Stone", "", "x"), true},
		"Unknown":       {"The CRD is not installed yet: the namespace stays.", identity.New("b/v1", "Stone", "a", "x"), scopes, identity.New("b/v1", "Stone", "a", "x"), false},
		"NoCluster":     {"Synthesis does not know scopes.", identity.New(crdVersion, crd, "a", "x"), nil, identity.New(crdVersion, crd, "a", "x"), false},
		"Patch":         {"A Patch is where its target is.", identity.NewPatch(crdVersion, crd, "a", "x"), scopes, identity.NewPatch(crdVersion, crd, "", "x"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, known := tc.id.Normalize(tc.scopes)
			if diff := cmp.Diff(tc.want, got); diff != "" || known != tc.known {
				t.Errorf("%s\nNormalize(...): known %t, want %t; -want, +got:\n%s", tc.reason, known, tc.known, diff)
			}
		})
	}
}

// TestTombstones has the manifests of two syntheses, and the objects to delete.
func TestTombstones(t *testing.T) {
	const crd, crdVersion = "CustomResourceDefinition", "apiextensions.k8s.io/v1"
	config, patch := identity.New("v1", "ConfigMap", "n", "x"), identity.NewPatch("v1", "ConfigMap", "n", "x")
	cases := map[string]struct {
		reason        string
		before, after []identity.Identity
		want          []identity.Identity
	}{
		"Dropped":       {"What no manifest is about is deleted.", []identity.Identity{config}, nil, []identity.Identity{config}},
		"Kept":          {"What a manifest is about stays.", []identity.Identity{config}, []identity.Identity{config}, nil},
		"Moved":         {"In another namespace it is another object.", []identity.Identity{config}, []identity.Identity{identity.New("v1", "ConfigMap", "m", "x")}, []identity.Identity{config}},
		"MovedCRD":      {"A chart moves from namespace a to b: its cluster-scoped objects stay.", []identity.Identity{identity.New(crdVersion, crd, "a", "x")}, []identity.Identity{identity.New(crdVersion, crd, "b", "x")}, nil},
		"PatchDropped":  {"A Patch leaves no tombstone.", []identity.Identity{patch}, nil, nil},
		"BecomesPatch":  {"A resource that becomes a Patch of itself is not deleted.", []identity.Identity{config}, []identity.Identity{patch}, nil},
		"PatchMovedCRD": {"Neither if the Patch names another namespace.", []identity.Identity{identity.New(crdVersion, crd, "a", "x")}, []identity.Identity{identity.NewPatch(crdVersion, crd, "b", "x")}, nil},
		"PatchOfOther":  {"A Patch of another object keeps nothing.", []identity.Identity{config}, []identity.Identity{identity.NewPatch("v1", "Secret", "n", "x")}, []identity.Identity{config}},
		"BecomesWhole":  {"A Patch that becomes the object leaves nothing to delete.", []identity.Identity{patch}, []identity.Identity{config}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kept := identity.Kept{}
			for _, id := range tc.after {
				id, _ = id.Normalize(scopes)
				kept.Add(id)
			}
			var got []identity.Identity
			for _, id := range tc.before {
				if id, _ = id.Normalize(scopes); kept.LeavesTombstone(id) {
					got = append(got, id)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ntombstones: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNumber has several Patches of one target next to the target itself.
func TestNumber(t *testing.T) {
	object := identity.New("v1", "ConfigMap", "n", "x")
	first := identity.NewPatch("v1", "ConfigMap", "n", "x")
	all := map[identity.Identity]int{}
	var names []string
	for i, id := range []identity.Identity{object, first, first, first} {
		id = identity.Number(id, all)
		all[id] = i
		names = append(names, id.String())
		if id.Target() != object {
			t.Errorf("Target() of %s: %+v", id, id.Target())
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap n/x", "Patch of ConfigMap n/x", "Patch of ConfigMap n/x (2)", "Patch of ConfigMap n/x (3)"}, names); diff != "" {
		t.Errorf("Patches are told apart: -want, +got:\n%s", diff)
	}
	if got := identity.Number(object, all); got != object {
		t.Errorf("Number(...) of an object: %s; an object is there once", got)
	}
}
