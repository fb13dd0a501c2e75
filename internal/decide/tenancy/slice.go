package tenancy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// digestPrefix names how a digest is computed. Digests with another prefix are of a later version
// and cannot be compared.
const digestPrefix = "sha256:"

// Digest returns the digest of the spec of a ResourceSlice. Two specs have the same digest if, and
// only if, they are equal.
func Digest(spec *enov1.ResourceSliceSpec) string {
	h := sha256.New()
	add(h, spec.SynthesisUUID)
	for _, m := range spec.Resources {
		add(h, m.Manifest)
		add(h, m.DroppedBy)
		fmt.Fprintf(h, "%t,%t;", m.Deleted, m.Requested)
	}

	return digestPrefix + hex.EncodeToString(h.Sum(nil))
}

// add adds a text with its length, so that no other sequence of texts has the same bytes.
func add(h hash.Hash, text string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(text)))
	h.Write(size[:])
	_, _ = io.WriteString(h, text) // a hash accepts everything
}

// SliceProblem returns why a ResourceSlice does not belong to a synthesis of a Composition whose
// status has ref, or "" if it does. digest is that of the slice's spec.
//
// The status names slices of the namespace, in which users may be able to create slices: of the
// name of one that was deleted, for example. A slice that does not belong to the synthesis counts
// as lost.
func SliceProblem(c *enov1.Composition, ref *enov1.ResourceSliceRef, s *enov1.ResourceSlice, digest string) string {
	switch owner := metav1.GetControllerOfNoCopy(s); {
	// With --cascade=orphan, the garbage collector removes the owner references of the slices of
	// a Composition that is being deleted.
	case owner == nil && c.DeletionTimestamp == nil:
		return fmt.Sprintf("ResourceSlice %s has no controller reference to the Composition", s.Name)
	case owner != nil && owner.UID != c.UID:
		return fmt.Sprintf("ResourceSlice %s has a controller reference to %s %s with UID %s, and the UID of the Composition is %s", s.Name, owner.Kind, owner.Name, owner.UID, c.UID)
	case strings.HasPrefix(ref.Digest, digestPrefix) && ref.Digest != digest:
		return fmt.Sprintf("the spec of ResourceSlice %s is not the one that was synthesized: its digest is %s instead of %s", s.Name, digest, ref.Digest)
	default:
		return ""
	}
}
