package delivery

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// isOf reports whether a view, if there is one, is still that of a version.
func (v *view) isOf(now version) bool {
	return v != nil && v.version == now && !v.rescoped.Load()
}

// isOfSlices reports whether a view, if there is one, is of the present slices of a composition.
func (v *view) isOfSlices(c *enov1.Composition) bool {
	return v != nil && v.uid == c.UID && v.slices == slicesOf(c.Status.CurrentSynthesis)
}

// isRead reports whether a view, if there is one, has the current slices of a composition.
func (v *view) isRead(c *enov1.Composition) bool {
	return v != nil && v.uid == c.UID && v.slices == slicesOf(c.Status.CurrentSynthesis)
}

// A version tells whether a view is still that of its composition.
type version struct {
	uid types.UID
	// slices identify a synthesis: one that changes nothing takes them over.
	slices              string
	settings            string
	deleting, abandoned bool
	// elsewhere : somebody else delivers the composition.
	elsewhere bool
	// suspended is why nothing is written, "" if something may be.
	suspended string
	// account is what objects are written as, the zero value if that is the manager.
	account tenancy.Account
}

// slicesOf names the slices of a synthesis.
func slicesOf(s *enov1.Synthesis) string {
	var all strings.Builder
	for _, ref := range s.ResourceSlices {
		all.WriteString(ref.Name + " ")
	}

	return all.String()
}

// settingsOf are the annotations that manifests fall back to.
func settingsOf(c *enov1.Composition) string {
	var all []string
	for _, name := range append(decide.Inherited(), enov1.AnnotationPrune, enov1.AnnotationConfirmPrune, enov1.AnnotationPruneFirst) {
		if value, ok := c.Annotations[name]; ok {
			all = append(all, name+"="+value)
		}
	}

	return strings.Join(all, "\n")
}
