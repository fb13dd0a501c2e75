package model

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// IsOf reports whether a view, if there is one, is still that of a version.
func (v *Composition) IsOf(now Version) bool {
	return v != nil && v.Version == now && !v.Rescoped.Load()
}

// IsOfSlices reports whether a view, if there is one, is of the present slices of a composition.
func (v *Composition) IsOfSlices(c *enov1.Composition) bool {
	return v != nil && v.UID == c.UID && v.SliceNames == SlicesOf(c.Status.CurrentSynthesis)
}

// IsRead reports whether a view, if there is one, has the current slices of a composition.
func (v *Composition) IsRead(c *enov1.Composition) bool {
	return v != nil && v.UID == c.UID && v.SliceNames == SlicesOf(c.Status.CurrentSynthesis)
}

// A Version identifies the view of a composition, to see whether it is current.
type Version struct {
	UID types.UID
	// SliceNames identify a synthesis: one that changes nothing takes them over.
	SliceNames          string
	Settings            string
	Deleting, Abandoned bool
	// Foreign is true if another delivery delivers the composition.
	Foreign bool
	// Suspended is why nothing is written, "" if something may be.
	Suspended string
	// Account is what objects are written as, the zero value if that is the manager.
	Account tenancy.Account
}

// SlicesOf names the slices of a synthesis.
func SlicesOf(s *enov1.Synthesis) string {
	var all strings.Builder
	for _, ref := range s.ResourceSlices {
		all.WriteString(ref.Name + " ")
	}

	return all.String()
}

// SettingsOf are the annotations that manifests fall back to.
func SettingsOf(c *enov1.Composition) string {
	var all []string
	for _, name := range append(decide.Inherited(), enov1.AnnotationPrune, enov1.AnnotationConfirmPrune, enov1.AnnotationPruneFirst) {
		if value, ok := c.Annotations[name]; ok {
			all = append(all, name+"="+value)
		}
	}

	return strings.Join(all, "\n")
}
