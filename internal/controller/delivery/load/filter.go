package load

import (
	"fmt"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// applyFilter removes the manifests from a view that another delivery applies. Nothing here waits
// for them, but their objects count as wanted.
func (l *Loader) applyFilter(v *model.Composition, c *enov1.Composition, all []enov1.ResourceSlice) {
	if v.Foreign {
		v.Items = nil
		clear(v.ByID)

		return
	}
	if l.Filter == nil {
		return
	}
	of, at := model.ExpressionMetadata(c), 0
	for n := range all {
		for _, manifest := range all[n].Spec.Resources {
			it := v.Items[at]
			at++
			if model.IsInvalid(it) {
				continue // it is wrong for every delivery
			}
			admits, err := l.Filter.Admits(manifest.Manifest, of)
			if admits {
				continue
			}
			if err != nil {
				l.Metrics.Unfiltered.Inc()
				it.Problem = fmt.Errorf("it is left alone: cannot evaluate --resource-filter: %w; write it so that it holds for manifests without that field, as in self.metadata.?labels.?team.orValue('')", err)
			}
			delete(v.ByID, it.Identity)
			it.Resource, it.Original, it.Packed, it.Foreign = nil, nil, "", true
		}
	}
}
