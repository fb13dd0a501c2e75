package delivery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/apply"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/kube"
)

// reportInvalid writes what is wrong with the manifests that nothing can be done about.
// Of those there is nothing that could be deleted either.
func (d *Deliverer) reportInvalid(v *model.Composition) {
	for _, it := range v.Items {
		if !model.IsInvalid(it) || it.Foreign {
			d.hint(v, it)

			continue
		}
		s := enov1.ResourceState{}
		twice, ok := it.Problem.(*model.DuplicateError) //nolint:errorlint // nobody wraps it
		if v.Deleting || ok && twice.Tombstone {
			now := d.Timestamp()
			s = enov1.ResourceState{Reconciled: true, Deleted: true, Ready: &now}
		} else {
			text := event.Clip(it.Problem.Error())
			s.ReconciliationError = &text
		}
		if s, changed, _ := v.Settle(it, s); changed {
			d.Status.Set(v, it, s)
		}
	}
}

// hint records that it is unknown which delivery applies a manifest, unless one does.
func (d *Deliverer) hint(v *model.Composition, it *model.Item) {
	if !it.Foreign || it.Problem == nil {
		return
	}
	text := event.Clip(it.Problem.Error())
	if s, changed := v.SettleIf(it, func(s enov1.ResourceState) bool { return !model.IsRecorded(s) }, enov1.ResourceState{ReconciliationError: &text}); changed {
		d.Status.Hint(v, it, s)
	}
}

// showDrift has the condition Drifted of a new view written. After a restart, objects are
// inspected first, or the condition would disappear for a moment.
func (d *Deliverer) showDrift(v, old *model.Composition, c *enov1.Composition) {
	switch {
	case meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionDrifted) == nil:
	case old == nil && d.Drift == DriftReport:
		time.AfterFunc(2*model.InspectPause, func() { d.Status.Drifted(v) })
	default:
		d.Status.Drifted(v)
	}
}

// reportBlocked reports tombstones that wait for a confirmation. Workers may still delete one of
// them, if they have begun before it was blocked.
func (d *Deliverer) reportBlocked(v *model.Composition) {
	if v.PruneSet.Blocked == "" {
		return
	}
	remains := func(s enov1.ResourceState) bool { return !s.Deleted }
	for _, it := range v.Items {
		if model.IsInvalid(it) || !it.IsGuarded() || it.PruneNow {
			continue
		}
		text := "it is not deleted: see the condition " + enov1.ConditionPruneBlocked
		if s, changed := v.SettleIf(it, remains, enov1.ResourceState{ReconciliationError: &text}); changed {
			d.Publish(v, it, s)
		}
	}
}

// warn reports the settings of a new synthesis that are ignored.
func (d *Deliverer) warn(v, old *model.Composition) {
	if old != nil && old.SliceNames == v.SliceNames && old.Settings == v.Settings {
		return
	}
	var all []string
	for _, it := range v.Items {
		if model.IsInvalid(it) {
			continue
		}
		for _, w := range it.Warnings() {
			all = append(all, fmt.Sprintf("%s: %s", it.Identity, kube.DiscreetText(w.Error(), it.Packed.Unpack().Object)))
		}
	}
	if len(all) > 0 {
		d.Events.Record(v.Owner, nil, corev1.EventTypeWarning, apply.ReasonIgnored, event.Join(all))
	}
}

// reportUnreadable records that a composition cannot be read, and what can be known of it.
func (d *Deliverer) reportUnreadable(ctx context.Context, c *enov1.Composition, because error) {
	name, current := client.ObjectKeyFromObject(c), model.SlicesOf(c.Status.CurrentSynthesis)
	if !d.IsNewlyUnreadable(name, current) {
		return
	}
	if d.MarkUnreadable(name, current, d.ReadableObjects(ctx, c)) {
		d.Events.Record(c.DeepCopy(), nil, corev1.EventTypeWarning, "Unreadable",
			fmt.Sprintf("the composition is not delivered, and in %s other compositions delete objects without knowing what it wants: %v", d.Grace, because))
	}
}
