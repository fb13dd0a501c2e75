package delivery

import (
	"fmt"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// narrow takes out of a view what somebody else delivers. What that is to become is
// none of our business, and nobody waits for it here. But it is known to be wanted.
func (l *loader) narrow(v *view, c *enov1.Composition, all []enov1.ResourceSlice) {
	if v.elsewhere {
		v.items = nil
		clear(v.byID)

		return
	}
	if l.filter == nil {
		return
	}
	of, at := about(c), 0
	for n := range all {
		for _, manifest := range all[n].Spec.Resources {
			it := v.items[at]
			at++
			if hidden(it) {
				continue // it is wrong whoever delivers it
			}
			admits, err := l.filter.Admits(manifest.Manifest, of)
			if admits {
				continue
			}
			if err != nil {
				l.metrics.unfiltered.Inc()
				it.problem = fmt.Errorf("it is left alone: cannot evaluate --resource-filter: %w; write it so that it holds for manifests without that field, as in self.metadata.?labels.?team.orValue('')", err)
			}
			delete(v.byID, it.Identity)
			it.Resource, it.of, it.text, it.elsewhere = nil, nil, "", true
		}
	}
}
