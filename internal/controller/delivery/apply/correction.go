package apply

import (
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// corrected records that an object was corrected, for the status of its composition. s is
// what was known before.
func (w *Worker) corrected(v *model.Composition, it *model.Item, s situation) {
	c := enov1.Correction{
		Time: w.Timestamp(), Manager: s.seen.Writer, Deleted: s.seen.Known && !s.seen.Present,
		APIVersion: it.Object.GetAPIVersion(), Kind: it.Object.GetKind(), Namespace: it.Object.GetNamespace(), Name: it.Object.GetName(),
	}
	if s.seen.Present && s.seen.UID != it.Memory.UID {
		c.Deleted = true // and another client has created it again
	}
	if wait, ok := v.Corrections.Note(c, w.Now()); ok {
		time.AfterFunc(wait, func() { w.Status.Corrected(v) })
	}
}
