package symphony

import (
	"fmt"
	"slices"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A variation is known by its Synthesizer, so one that uses another Synthesizer has a new
// composition. Its objects are mostly those of the old one, and move: an object that is
// in a synthesis of another composition is not deleted. So the old composition stays until
// new ones are synthesized.
//
// It does not stay until they are delivered: while both want an object, each corrects what
// the other applies.

// retire decides which surplus compositions are deleted now. The rest is kept.
func (p *plan) retire() (now, kept []*enov1.Composition) {
	for _, c := range p.surplus {
		if p.hasHeir(c) {
			kept = append(kept, c)
		} else {
			now = append(now, c)
		}
	}

	return now, kept
}

// hasHeir reports whether a composition that has no manifests yet may get objects of a
// surplus one.
func (p *plan) hasHeir(c *enov1.Composition) bool {
	if c.Status.CurrentSynthesis == nil {
		return false // it has no objects
	}

	return slices.ContainsFunc(p.parts, func(t part) bool {
		switch {
		case t.have == nil:
			return true
		case t.have.Status.CurrentSynthesis != nil:
			return isEmpty(t.have) && !isEmpty(c) && succeeds(t.have, c)
		}

		// To one that is older, nothing moves. Times are stored in seconds.
		return c.Spec.Synthesizer.Name == nameOf(t.variation) || !t.have.CreationTimestamp.Before(&c.CreationTimestamp)
	})
}

// isEmpty reports whether the current synthesis of a composition has neither manifests nor
// tombstones. Pruning guards tombstones.
func isEmpty(c *enov1.Composition) bool { return len(c.Status.CurrentSynthesis.ResourceSlices) == 0 }

// succeeds reports whether a composition was created in place of a surplus one. Other compositions
// can have no manifests for good reason, which must not keep removed variations.
func succeeds(heir, c *enov1.Composition) bool {
	return slices.Contains(strings.Fields(heir.Annotations[enov1.AnnotationSucceeds]), c.Name)
}

// predecessors returns the names of the surplus compositions that a new one is created in
// place of.
func (p *plan) predecessors() string {
	var names []string
	for _, c := range p.kept {
		duplicate := slices.ContainsFunc(p.parts, func(t part) bool { return nameOf(t.variation) == c.Spec.Synthesizer.Name })
		if !duplicate {
			names = append(names, c.Name)
		}
	}

	return strings.Join(names, " ")
}

// strip returns changes that remove labels and annotations from kept compositions which move to
// another one: one variation sets them, and another one explicitly has none. So they are never on
// two compositions at once.
func (p *plan) strip() []Change {
	labels := p.moving(func(v *enov1.Variation) map[string]string { return v.Labels })
	annotations := p.moving(func(v *enov1.Variation) map[string]string { return v.Annotations })
	var all []Change
	for _, c := range p.kept {
		to := c.DeepCopy()
		changed := remove(to.Labels, labels)
		if remove(to.Annotations, annotations) || changed {
			all = append(all, Change{c, to})
		}
	}

	return all
}

// moving returns the keys that move from one composition to another, with empty values.
func (p *plan) moving(of func(*enov1.Variation) map[string]string) map[string]string {
	set, unset := map[string]bool{}, map[string]bool{}
	for i := range p.parts {
		for key, value := range of(p.parts[i].variation) {
			if value == "" {
				unset[key] = true
			} else {
				set[key] = true
			}
		}
	}
	keys := map[string]string{}
	for key := range unset {
		if set[key] && !enov1.IsSetting(key) {
			keys[key] = ""
		}
	}

	return keys
}

// keeping names the compositions that are deleted later, "" if there are none.
func (p *plan) keeping() string {
	if len(p.kept) == 0 {
		return ""
	}
	all := make([]string, 0, len(p.kept))
	for _, c := range p.kept {
		all = append(all, fmt.Sprintf("Composition %s/%s", c.Namespace, c.Name))
	}

	return "; deleted once all new compositions have manifests: " + few(all)
}
