package tenancy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

func spec(change func(*enov1.ResourceSliceSpec)) enov1.ResourceSliceSpec {
	s := enov1.ResourceSliceSpec{SynthesisUUID: "1", Resources: []enov1.Manifest{{Manifest: "ab"}, {Manifest: "c", Deleted: true, DroppedBy: "0"}}}
	change(&s)

	return s
}

func TestDigest(t *testing.T) {
	original := spec(func(*enov1.ResourceSliceSpec) {})
	want := tenancy.Digest(&original)
	// It is stored: another version must compute the same.
	if diff := cmp.Diff("sha256:c944a82be7b49d3070cc3c7aa951ee5775fe40143e51ebf30369204eecdffe87", want); diff != "" {
		t.Error(diff)
	}
	cases := map[string]struct {
		reason string
		change func(*enov1.ResourceSliceSpec)
	}{
		"Synthesis": {"It is of another synthesis.", func(s *enov1.ResourceSliceSpec) { s.SynthesisUUID = "2" }},
		"Manifest":  {"A manifest differs.", func(s *enov1.ResourceSliceSpec) { s.Resources[0].Manifest = "ac" }},
		"Boundary":  {"The same characters are distributed in another way.", func(s *enov1.ResourceSliceSpec) { s.Resources[0].Manifest, s.Resources[1].Manifest = "a", "bc" }},
		"Order":     {"The order decides which state is of which manifest.", func(s *enov1.ResourceSliceSpec) { s.Resources[0], s.Resources[1] = s.Resources[1], s.Resources[0] }},
		"Deleted":   {"An object is deleted instead of applied.", func(s *enov1.ResourceSliceSpec) { s.Resources[0].Deleted = true }},
		"Requested": {"A deletion counts as requested.", func(s *enov1.ResourceSliceSpec) { s.Resources[1].Requested = true }},
		"DroppedBy": {"A deletion counts as confirmed.", func(s *enov1.ResourceSliceSpec) { s.Resources[1].DroppedBy = "1" }},
		"Fewer":     {"A manifest is missing.", func(s *enov1.ResourceSliceSpec) { s.Resources = s.Resources[:1] }},
		"More":      {"There is a further one.", func(s *enov1.ResourceSliceSpec) { s.Resources = append(s.Resources, enov1.Manifest{}) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := spec(tc.change)
			if tenancy.Digest(&changed) == want {
				t.Errorf("%s The digest is the same", tc.reason)
			}
		})
	}
}

func TestSliceProblem(t *testing.T) {
	owner := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: enov1.CompositionKind, Name: "app", UID: uid, Controller: new(true)}}
	}
	now := metav1.Now()
	cases := map[string]struct {
		reason   string
		owners   []metav1.OwnerReference
		digest   string
		deleting bool
		want     string
	}{
		"Own":       {"It is as it was created.", owner("u"), "sha256:1", false, ""},
		"Eno":       {"Eno records no digest.", owner("u"), "", false, ""},
		"Later":     {"A later version computed the digest in another way, and was rolled back.", owner("u"), "sha512:2", false, ""},
		"Unowned":   {"Any user may have created it.", nil, "sha256:1", false, "ResourceSlice s has no controller reference"},
		"Orphaned":  {"The garbage collector removes references while a Composition is deleted.", nil, "sha256:1", true, ""},
		"Changed":   {"It was created again with other content.", owner("u"), "sha256:2", false, "the spec of ResourceSlice s is not the one"},
		"Restored":  {"It is from a backup.", owner("v"), "sha256:1", false, "UID v"},
		"Dependent": {"An owner that is no controller does not count.", []metav1.OwnerReference{{Kind: enov1.CompositionKind, UID: "u"}}, "sha256:1", false, "no controller reference"},
		"Swapped":   {"Also while the Composition is deleted.", nil, "sha256:2", true, "the spec of ResourceSlice s is not the one"},
		"Stranger":  {"Also while the Composition is deleted.", owner("v"), "sha256:1", true, "UID v"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "u"}}
			if tc.deleting {
				c.DeletionTimestamp = &now
			}
			s := &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s", OwnerReferences: tc.owners}}
			got := tenancy.SliceProblem(c, &enov1.ResourceSliceRef{Name: "s", Digest: tc.digest}, s, "sha256:1")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s Got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
