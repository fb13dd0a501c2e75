package delivery

import (
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// corrected records that an object was corrected, for the status of its composition. s is
// what was known before.
func (w *worker) corrected(v *view, it *item, s situation) {
	c := enov1.Correction{
		Time: w.timestamp(), Manager: s.seen.writer, Deleted: s.seen.known && !s.seen.present,
		APIVersion: it.Object.GetAPIVersion(), Kind: it.Object.GetKind(), Namespace: it.Object.GetNamespace(), Name: it.Object.GetName(),
	}
	if s.seen.present && s.seen.uid != it.memory.uid {
		c.Deleted = true // and another client has created it again
	}
	if wait, ok := v.corrections.note(c, w.now()); ok {
		time.AfterFunc(wait, func() { w.status.corrected(v) })
	}
}
