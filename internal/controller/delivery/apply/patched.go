package apply

import (
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// isPatched reports whether the operations of a Patch would leave the object that was
// read as it is. Only the server knows about those that cannot be carried out.
func isPatched(i *model.Item, s situation) bool {
	if !i.IsPatch() || !s.Drifted || s.Live == nil {
		return false
	}
	ops, err := jsonpatch.DecodePatch(i.Ops)
	if err != nil {
		return false
	}
	before, err := json.Marshal(s.Live.Object)
	if err != nil {
		return false
	}
	after, err := ops.Apply(before)

	return err == nil && jsonpatch.Equal(before, after)
}
