package delivery

import enov1 "github.com/arbor-control/arbor/api/eno/v1"

// keepUnread keeps the manifests that cannot be read, so that their slice can be restored. It is
// for views that nothing works on yet.
func (v *view) keepUnread(all []enov1.ResourceSlice) {
	place := 0
	for n := range all {
		for _, m := range all[n].Spec.Resources {
			if place == len(v.items) {
				return // another delivery has the composition
			}
			if it := v.items[place]; hidden(it) && !it.elsewhere {
				it.unread = m.DeepCopy()
			}
			place++
		}
	}
}

// recallHooks marks the Patches that have deleted their targets in this synthesis, if a slice has
// lost its states while no manager ran, and the composition has recorded that all was reconciled.
// All other work can be repeated.
func (v *view) recallHooks(c *enov1.Composition) {
	if v.deleting || c.Status.CurrentSynthesis.Reconciled == nil {
		return
	}
	for _, it := range v.items {
		if !hidden(it) && it.IsPatch() && it.Removes && !it.slice.initialized {
			it.state = enov1.ResourceState{Reconciled: true, Deleted: true, Ready: c.Status.CurrentSynthesis.Reconciled}
		}
	}
}

// manifests are those of a slice, none if not all of them are known.
func (v *view) manifests(s *slice) ([]enov1.Manifest, error) {
	all := make([]enov1.Manifest, 0, s.count)
	for _, it := range v.items {
		switch {
		case it.slice != s:
		case it.elsewhere || hidden(it) && it.unread == nil:
			return nil, nil
		case hidden(it):
			all = append(all, *it.unread)
		default:
			m, err := it.Manifest(it.text.object())
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
	}

	return all, nil
}
