package compositions

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
)

// An Objects is objects of the delivery API.
type Objects struct {
	Compositions map[types.NamespacedName]*enov1.Composition
	Slices       map[types.NamespacedName]*enov1.ResourceSlice
	Symphonies   map[types.NamespacedName]*enov1.Symphony

	// Scopes knows which kinds of the cluster are namespaced. Without it, identities have
	// the namespaces of the manifests.
	Scopes identity.Scopes
}

// NewObjects returns a set without objects.
func NewObjects() *Objects {
	return &Objects{
		Compositions: map[types.NamespacedName]*enov1.Composition{},
		Slices:       map[types.NamespacedName]*enov1.ResourceSlice{},
		Symphonies:   map[types.NamespacedName]*enov1.Symphony{},
	}
}

// SlicesOf are the slices of a synthesis that were read.
func (d *Objects) SlicesOf(c *enov1.Composition, s *enov1.Synthesis) []*enov1.ResourceSlice {
	if s == nil {
		return nil
	}

	var all []*enov1.ResourceSlice

	for _, ref := range s.ResourceSlices {
		if slice := d.Slices[types.NamespacedName{Namespace: c.Namespace, Name: RefName(ref)}]; slice != nil {
			all = append(all, slice)
		}
	}

	return all
}

// RefName returns the name of a slice, "" if there is none.
func RefName(ref *enov1.ResourceSliceRef) string {
	if ref == nil {
		return ""
	}

	return ref.Name
}

// Sorted are the compositions by namespace and name.
func (d *Objects) Sorted() []*enov1.Composition {
	return slices.SortedFunc(maps.Values(d.Compositions), func(a, b *enov1.Composition) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// SymphonyOf is the name of the symphony that a composition is a part of, "" if
// it is on its own.
func SymphonyOf(c *enov1.Composition) string {
	for _, o := range c.OwnerReferences {
		if group, _, _ := strings.Cut(o.APIVersion, "/"); o.Kind == enov1.SymphonyKind && group == enov1.GroupVersion.Group {
			return o.Name
		}
	}

	return ""
}

// Suspended is the suspension of a composition, nil if there is none.
func Suspended(c *enov1.Composition) *decide.Suspension {
	text, ok := c.Annotations[enov1.AnnotationSuspend]
	if !ok {
		return nil
	}

	s := decide.ParseSuspension(text)

	return &s
}
