package model

import enov1 "github.com/arbor-control/arbor/api/eno/v1"

// keepUnread keeps the manifests that cannot be read, so that their slice can be restored. It is
// for views that nothing works on yet.
func (v *Composition) keepUnread(all []enov1.ResourceSlice) {
	place := 0
	for n := range all {
		for _, m := range all[n].Spec.Resources {
			if place == len(v.Items) {
				return // another delivery has the composition
			}
			if it := v.Items[place]; IsInvalid(it) && !it.Foreign {
				it.Invalid = m.DeepCopy()
			}
			place++
		}
	}
}

// RestorePatchStates marks the Patches that have deleted their targets in this synthesis, if a slice has
// lost its states while no manager ran, and the composition has recorded that all was reconciled.
// All other work can be repeated.
func (v *Composition) RestorePatchStates(c *enov1.Composition) {
	if v.Deleting || c.Status.CurrentSynthesis.Reconciled == nil {
		return
	}
	for _, it := range v.Items {
		if !IsInvalid(it) && it.IsPatch() && it.Removes && !it.Slice.Initialized {
			it.State = enov1.ResourceState{Reconciled: true, Deleted: true, Ready: c.Status.CurrentSynthesis.Reconciled}
		}
	}
}

// Manifests are those of a slice, none if not all of them are known.
func (v *Composition) Manifests(s *Slice) ([]enov1.Manifest, error) {
	all := make([]enov1.Manifest, 0, s.Count)
	for _, it := range v.Items {
		switch {
		case it.Slice != s:
		case it.Foreign || IsInvalid(it) && it.Invalid == nil:
			return nil, nil
		case IsInvalid(it):
			all = append(all, *it.Invalid)
		default:
			m, err := it.Manifest(it.Packed.Unpack())
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
	}

	return all, nil
}
