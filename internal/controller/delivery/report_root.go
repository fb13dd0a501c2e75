package delivery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/kube"
)

// refuse writes what is wrong with the manifests that nothing can be done about.
// Of those there is nothing that could be deleted either.
func (d *Deliverer) refuse(v *view) {
	for _, it := range v.items {
		if !hidden(it) || it.elsewhere {
			d.hint(v, it)

			continue
		}
		s := enov1.ResourceState{}
		twice, ok := it.problem.(*duplicateError) //nolint:errorlint // nobody wraps it
		if v.deleting || ok && twice.tombstone {
			now := d.timestamp()
			s = enov1.ResourceState{Reconciled: true, Deleted: true, Ready: &now}
		} else {
			text := clip(it.problem.Error())
			s.ReconciliationError = &text
		}
		if s, changed, _ := v.settle(it, s); changed {
			d.status.set(v, it, s)
		}
	}
}

// hint says that there is no telling who delivers a manifest, unless somebody does.
func (d *Deliverer) hint(v *view, it *item) {
	if !it.elsewhere || it.problem == nil {
		return
	}
	text := clip(it.problem.Error())
	if s, changed := v.settleIf(it, func(s enov1.ResourceState) bool { return !isKnown(s) }, enov1.ResourceState{ReconciliationError: &text}); changed {
		d.status.hint(v, it, s)
	}
}

// showDrift has the condition Drifted of a new view written. After a restart, objects are
// inspected first, or the condition would disappear for a moment.
func (d *Deliverer) showDrift(v, old *view, c *enov1.Composition) {
	switch {
	case meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionDrifted) == nil:
	case old == nil && d.drift == DriftReport:
		time.AfterFunc(2*inspectPause, func() { d.status.drifted(v) })
	default:
		d.status.drifted(v)
	}
}

// block reports tombstones that wait for a confirmation. Workers may still delete one of
// them, if they have begun before it was blocked.
func (d *Deliverer) block(v *view) {
	if v.pruning.blocked == "" {
		return
	}
	remains := func(s enov1.ResourceState) bool { return !s.Deleted }
	for _, it := range v.items {
		if hidden(it) || !it.IsGuarded() || it.first {
			continue
		}
		text := "it is not deleted: see the condition " + enov1.ConditionPruneBlocked
		if s, changed := v.settleIf(it, remains, enov1.ResourceState{ReconciliationError: &text}); changed {
			d.publish(v, it, s)
		}
	}
}

// warn reports the settings of a new synthesis that are ignored.
func (d *Deliverer) warn(v, old *view) {
	if old != nil && old.slices == v.slices && old.settings == v.settings {
		return
	}
	var all []string
	for _, it := range v.items {
		if hidden(it) {
			continue
		}
		for _, w := range it.Warnings() {
			all = append(all, fmt.Sprintf("%s: %s", it.Identity, kube.DiscreetText(w.Error(), it.text.object().Object)))
		}
	}
	if len(all) > 0 {
		d.events.record(v.owner, nil, corev1.EventTypeWarning, reasonIgnored, joined(all))
	}
}

// cannotRead records that a composition cannot be read, and what can be known of it.
func (d *Deliverer) cannotRead(ctx context.Context, c *enov1.Composition, because error) {
	name, current := client.ObjectKeyFromObject(c), slicesOf(c.Status.CurrentSynthesis)
	if !d.isNewlyUnreadable(name, current) {
		return
	}
	if d.markUnreadable(name, current, d.remains(ctx, c)) {
		d.events.record(c.DeepCopy(), nil, corev1.EventTypeWarning, "Unreadable",
			fmt.Sprintf("the composition is not delivered, and others delete objects without knowing what it wants in %s: %v", d.grace, because))
	}
}
