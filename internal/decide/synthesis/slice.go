package synthesis

import (
	"encoding/json"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
)

// softCap is how many bytes of manifests a slice has. More than that it has only
// if one manifest alone is larger.
const softCap = 512 << 10

// maxStored is how many bytes the manifests of a slice take as they are stored: as
// texts in JSON, where some characters take six bytes. The API server stores no object
// that is larger than 1.5 MiB, and the status needs the rest.
const maxStored = 1 << 20

// maxResources is how many manifests a slice has at most: the status has a state for
// each, and both must fit into one object.
const maxResources = 500

// A head is the part of a manifest that identifies its object, and how that is deleted.
type head struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		identity.Metadata

		Annotations struct {
			DeletionStrategy *string `json:"eno.azure.io/deletion-strategy,omitempty"` //nolint:tagliatelle // it is the name of an annotation
		} `json:"annotations,omitzero"`
	} `json:"metadata,omitzero"`
	// Patch is the target of a Patch.
	Patch identity.Target `json:"patch,omitzero"`
}

func headOf(manifest string) head {
	var h head
	_ = json.Unmarshal([]byte(manifest), &h) // a stored manifest was checked before
	if !identity.IsPatch(h.APIVersion, h.Kind) {
		h.Patch = identity.Target{}
	}

	return h
}

// Head is the part of a manifest that [identity.Read] and Measure need. It is a tenth of
// it, or less.
func Head(manifest string) string {
	data, err := json.Marshal(headOf(manifest))
	if err != nil {
		return manifest // texts can always be encoded
	}

	return string(data)
}

// Manifests returns what the slices of a new synthesis have: its manifests, then a tombstone for
// everything that the current synthesis has and the new one has not. Tombstones of the current
// synthesis are carried over unless a slice reports that the object is deleted. For Patches, see
// [identity.Kept]. Scopes are not known here: see package identity. uuid is that of the new
// synthesis, and by is its origin: a tombstone stays that of the synthesis that introduced it.
func Manifests(fresh []string, current []*enov1.ResourceSlice, uuid string, by Request) []enov1.Manifest {
	var all []enov1.Manifest
	kept := identity.Kept{}
	for _, m := range fresh {
		all = append(all, enov1.Manifest{Manifest: m})
		kept.Add(identity.Read(m))
	}
	for _, slice := range current {
		for i, m := range slice.Spec.Resources {
			id := identity.Read(m.Manifest)
			if !kept.LeavesTombstone(id) || m.Deleted && stateOf(slice, i).Deleted {
				continue
			}
			kept.Add(id) // one tombstone is enough
			dropped := enov1.Manifest{Manifest: m.Manifest, Deleted: true, Requested: by.covers(m), DroppedBy: uuid}
			if m.Deleted {
				dropped.DroppedBy = m.DroppedBy
			}
			all = append(all, dropped)
		}
	}

	return all
}

// Copied returns the manifests of an earlier synthesis, without its tombstones.
func Copied(from []*enov1.ResourceSlice) []string {
	var all []string
	for _, slice := range from {
		for _, m := range slice.Spec.Resources {
			if !m.Deleted {
				all = append(all, m.Manifest)
			}
		}
	}

	return all
}

// Cut distributes manifests over slices, in their order.
func Cut(manifests []enov1.Manifest) [][]enov1.Manifest {
	var (
		cuts         [][]enov1.Manifest
		size, stored int
	)
	for _, m := range manifests {
		n := Stored(m.Manifest)
		if len(cuts) == 0 || size+len(m.Manifest) > softCap || stored+n > maxStored || len(cuts[len(cuts)-1]) == maxResources {
			cuts, size, stored = append(cuts, nil), 0, 0
		}
		cuts[len(cuts)-1] = append(cuts[len(cuts)-1], m)
		size, stored = size+len(m.Manifest), stored+n
	}

	return cuts
}

// Stored is how many bytes a manifest takes in a slice.
func Stored(manifest string) int {
	data, err := json.Marshal(manifest)
	if err != nil {
		return len(manifest) // texts can always be encoded
	}

	return len(data)
}

// Largest returns the manifest that takes the most bytes in a slice, and how many.
func Largest(manifests []enov1.Manifest) (identity.Identity, int) {
	var (
		largest identity.Identity
		most    int
	)
	for _, m := range manifests {
		if n := Stored(m.Manifest); n > most {
			largest, most = identity.Read(m.Manifest), n
		}
	}

	return largest, most
}

// stateOf is the state of a manifest in its slice; the zero value if the slice is behind.
func stateOf(s *enov1.ResourceSlice, i int) enov1.ResourceState {
	if i >= len(s.Status.Resources) {
		return enov1.ResourceState{}
	}

	return s.Status.Resources[i]
}
