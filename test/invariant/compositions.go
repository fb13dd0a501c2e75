package invariant

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/identity"
)

// delivered iterates over compositions, their slices and what they deliver.
func (c *checker) delivered(put func(kind string, o client.Object)) {
	for i := range c.Compositions {
		put(enov1.CompositionKind, &c.Compositions[i])
	}
	for i := range c.Slices {
		put(enov1.ResourceSliceKind, &c.Slices[i])
	}
	for i := range c.Objects {
		put(c.Objects[i].GetKind(), &c.Objects[i])
	}
}

// compositions asks that each is Ready, and that the cluster agrees with its slices.
func (c *checker) compositions() {
	objects := c.objects()
	for _, one := range c.Compositions {
		o := Object{enov1.CompositionKind, one.Namespace, one.Name}
		st := one.Status
		if st.Simplified == nil || st.Simplified.Status != enov1.StatusReady || st.Simplified.Error != "" {
			c.addf(Converged, o, "is %+v", st.Simplified)
		}
		if st.InFlightSynthesis != nil || st.CurrentSynthesis == nil {
			c.addf(Converged, o, "has a synthesis in flight, or none at all")

			continue
		}
		for _, m := range c.manifests(&one) {
			c.manifest(o, m, objects)
		}
	}
}

// manifest asks that the cluster agrees with one of a slice.
func (c *checker) manifest(of Object, m enov1.Manifest, objects map[Object]*unstructured.Unstructured) {
	ref := identity.Read(m.Manifest)
	if ref.IsPatch() {
		c.patched(of, m.Manifest, objects)

		return
	}
	live := objects[Object{ref.Kind, ref.Namespace, ref.Name}]
	var want map[string]any
	switch err := json.Unmarshal([]byte(m.Manifest), &want); {
	case err != nil:
		c.addf(Converged, of, "has a manifest that cannot be read: %v", err)
	case m.Deleted && live != nil && delivery.IsOurs(live.GetManagedFields(), delivery.Manager):
		c.addf(Converged, of, "was to delete %s, which is there still", ref)
	case m.Deleted:
	case live == nil:
		c.addf(Converged, of, "was to make %s, which is not there", ref)
	case !covers(live.Object, undirected(want)):
		c.addf(Converged, of, "has %s in a slice, but the cluster has another one", ref)
	}
}

// objects by name.
func (c *checker) objects() map[Object]*unstructured.Unstructured {
	all := map[Object]*unstructured.Unstructured{}
	for i := range c.Objects {
		o := &c.Objects[i]
		all[Object{o.GetKind(), o.GetNamespace(), o.GetName()}] = o
	}

	return all
}

// manifests are those of the current synthesis of a composition.
func (c *checker) manifests(of *enov1.Composition) []enov1.Manifest {
	var all []enov1.Manifest
	for _, ref := range of.Status.CurrentSynthesis.ResourceSlices {
		i := slices.IndexFunc(c.Slices, func(s enov1.ResourceSlice) bool { return s.Namespace == of.Namespace && s.Name == ref.Name })
		if i < 0 {
			c.addf(Converged, Object{enov1.CompositionKind, of.Namespace, of.Name}, "has lost slice %s", ref.Name)

			continue
		}
		all = append(all, c.Slices[i].Spec.Resources...)
	}

	return all
}

// leftovers checks that each slice is needed, and each object that was applied.
func (c *checker) leftovers() {
	wanted := map[Object]bool{}
	for _, one := range c.Compositions {
		if one.Status.CurrentSynthesis == nil {
			continue
		}
		for _, m := range c.manifests(&one) {
			wanted[targetOf(m.Manifest)] = true
		}
	}
	for i := range c.Objects {
		o := Object{c.Objects[i].GetKind(), c.Objects[i].GetNamespace(), c.Objects[i].GetName()}
		if delivery.IsOurs(c.Objects[i].GetManagedFields(), delivery.Manager) && !wanted[o] {
			c.addf(NoLeftovers, o, "was applied as %s, and is in no slice", delivery.Manager)
		}
	}
	for i := range c.Slices {
		slice := &c.Slices[i]
		if !slices.ContainsFunc(c.Compositions, func(one enov1.Composition) bool {
			return metav1.IsControlledBy(slice, &one) && len(synthesis.Garbage(&one.Status, []*enov1.ResourceSlice{slice})) == 0
		}) {
			c.addf(NoLeftovers, Object{enov1.ResourceSliceKind, slice.Namespace, slice.Name}, "is in no synthesis that is kept")
		}
	}
}

// made compares with the ledger what programs were to make.
func (c *checker) made() {
	objects := c.objects()
	for _, want := range c.ledger.Made {
		o := Object{want.GetKind(), want.GetNamespace(), want.GetName()}
		switch live := objects[o]; {
		case live == nil:
			c.addf(InputsTrue, o, "is not there, but the input asks for it")
		case !covers(live.Object, want.Object):
			c.addf(InputsTrue, o, "is not what the input asks for")
		}
	}
}

// groups asks for the condition that the spec deserves.
func (c *checker) groups() {
	for i := range c.PodGroups {
		pg := &c.PodGroups[i]
		want := podgroup.Valid(pg, metav1.Time{})
		if !slices.Contains(pg.Status.Conditions, want) {
			c.addf(GroupsTrue, Object{v2alpha2.PodGroupKind, pg.Namespace, pg.Name}, "should have the condition %s %s of generation %d, and has %v", want.Type, want.Status, want.ObservedGeneration, pg.Status.Conditions)
		}
	}
}

// covers reports whether something has all that is wanted, and the same. What is wanted
// empty may be absent.
func covers(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return live == nil && len(want) == 0
		}
		for key, value := range want {
			ok = ok && covers(have[key], value)
		}

		return ok
	case []any:
		have, _ := live.([]any)

		return slices.EqualFunc(have, want, covers)
	case float64: // one is read from JSON, the other from a server
		n, ok := live.(int64)

		return live == any(want) || ok && float64(n) == want
	default:
		return live == want
	}
}
