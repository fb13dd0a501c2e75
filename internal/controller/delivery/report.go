package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	// maxReported is how many objects an ownership report names.
	maxReported = 20
	// maxPaths is how many fields an event names.
	maxPaths = 5
	// maxMessage is how long a text in a status may be.
	maxMessage = 1024 // and a note of an event must not be longer

	// Events are a courtesy; a cluster that is down must not be drowned in them.
	eventsPerSecond = 1
	eventsAtOnce    = 25

	action = "Deliver"
)

// Reasons of events about ownership. They are those of package ownership, which
// has its events on the objects.
const (
	reasonMigrated  = "OwnershipMigrated"
	reasonFailed    = "OwnershipNotMigrated"
	reasonContested = "OwnershipContested"
	reasonSplit     = "OwnershipSplit"
)

// reasonIgnored is that of events about settings that are ignored.
const reasonIgnored = "SettingIgnored"

// A finding is what came of the ownership of an object. The zero value is that
// there is nothing to be said.
type finding struct {
	// state and message are for the report, reason is that of the event.
	state, message, reason string
	// moves are what others hold, or held.
	moves []fields.Move
}

// owned notes a finding, and tells people if it is another than before.
func (d *Deliverer) owned(v *view, it *item, f finding) {
	f.message = kube.DiscreetText(f.message, it.secrets(nil)...)
	state := f.state
	o := enov1.OwnershipObject{
		APIVersion: it.Object.GetAPIVersion(), Kind: it.Object.GetKind(), Namespace: it.Object.GetNamespace(), Name: it.Object.GetName(),
		State: state, Message: clip(f.message),
	}
	had, changed := v.report.note(it.Identity, o)
	if !changed {
		return
	}
	d.status.report(v)
	// Each attempt may fail in other words, and has failed all the same.
	if again := state == enov1.OwnershipFailed && had.State == state; state != "" && !again && d.courtesy.Allow() {
		d.recorder.Eventf(v.owner, it.Object, f.eventType(), f.reason, action, "%s", clip(fmt.Sprintf("%s: %s", it.Identity, f.note())))
	}
}

func (f finding) eventType() string {
	if f.state == enov1.OwnershipMigrated {
		return corev1.EventTypeNormal
	}

	return corev1.EventTypeWarning
}

// note is the message with the fields that it is about, for people who have not
// seen the object.
func (f finding) note() string {
	var paths []string
	for _, m := range f.moves {
		if m.From.Manager == "" {
			continue
		}
		for _, p := range fields.FormatPaths(m.Fields) {
			if !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
	}
	more := ""
	if n := len(paths) - maxPaths; n > 0 {
		paths, more = paths[:maxPaths], fmt.Sprintf(" and %d more", n)
	}
	about := strings.Join(paths, ", ") + more
	switch {
	case about == "":
		return f.message
	case f.state == enov1.OwnershipFailed:
		// The server may have much to say.
		return fmt.Sprintf("%s of %s could not be moved: %s", about, sources(f.moves), f.message)
	default:
		return f.message + ": " + about
	}
}

// A report is what was found about the ownership of objects. It may be used by any
// number of goroutines: workers of an earlier view still write to it when there is a
// new one.
type report struct {
	mu  sync.Mutex
	all map[decide.Identity]enov1.OwnershipObject
}

func newReport() *report { return &report{all: map[decide.Identity]enov1.OwnershipObject{}} }

// note records a finding, and returns the one before and whether it is another. A
// finding without state removes one that was not resolved by a migration.
func (r *report) note(id decide.Identity, o enov1.OwnershipObject) (had enov1.OwnershipObject, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	had, ok := r.all[id]
	switch {
	case o.State == "" && (!ok || had.State == enov1.OwnershipMigrated), had == o:
		return had, false
	case o.State == "":
		delete(r.all, id)
	default:
		r.all[id] = o
	}

	return had, true
}

// remembers takes over what an earlier process reported.
func (v *view) remembers(c *enov1.Composition) {
	v.report.mu.Lock()
	defer v.report.mu.Unlock()
	if c.Status.Ownership == nil || len(v.report.all) > 0 {
		return
	}
	for _, o := range c.Status.Ownership.Objects {
		id := identity.New(o.APIVersion, o.Kind, o.Namespace, o.Name)
		if _, ok := v.byID[id]; ok {
			v.report.all[id] = o
		}
	}
}

// ownership is the report of a view.
func (v *view) ownership() *enov1.OwnershipReport {
	v.report.mu.Lock()
	defer v.report.mu.Unlock()
	r := &enov1.OwnershipReport{}
	for id, o := range v.report.all {
		if _, ok := v.byID[id]; !ok {
			continue
		}
		switch o.State {
		case enov1.OwnershipSplit:
			r.Split++
		case enov1.OwnershipMigrated:
			r.Migrated++
		default:
			r.Failed++
		}
		r.Objects = append(r.Objects, o)
	}
	slices.SortFunc(r.Objects, func(a, b enov1.OwnershipObject) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	r.Objects = r.Objects[:min(len(r.Objects), maxReported)]

	return r
}

func (w *statusWriter) writeReport(ctx context.Context, v *view) error {
	data, err := json.Marshal(map[string]any{"status": map[string]any{"ownership": v.ownership()}})
	if err != nil {
		return err
	}
	err = w.client.Status().Patch(ctx, v.owner.DeepCopy(), client.RawPatch(types.MergePatchType, data))
	if client.IgnoreNotFound(err) != nil {
		w.metrics.writeErrors.WithLabelValues(opPatch).Inc()

		return fmt.Errorf("cannot write the ownership report of composition %s: %w", v.name, err)
	}

	return nil
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
	if len(all) == 0 || !d.courtesy.Allow() {
		return
	}
	d.recorder.Eventf(v.owner, nil, corev1.EventTypeWarning, reasonIgnored, action, "%s", clip(joined(all)))
}

// joined is the first few of some texts.
func joined(all []string) string {
	more := ""
	if n := len(all) - maxPaths; n > 0 {
		all, more = all[:maxPaths], fmt.Sprintf("; and %d more", n)
	}

	return strings.Join(all, "; ") + more
}

// warnOverridden reports the settings that are ignored as overrides make them.
func (d *Deliverer) warnOverridden(v *view, it *item, r *decide.Resource, live *unstructured.Unstructured) {
	var all []string
	for _, w := range r.Warnings() {
		all = append(all, kube.DiscreetText(w.Error(), it.secrets(live)...))
	}
	if len(all) > 0 {
		d.tell(v, it, reasonIgnored, joined(all))
	}
}

// tell says on the composition that a resource is stuck, once for each reason.
func (d *Deliverer) tell(v *view, it *item, reason, message string) {
	if message = clip(message); it.memory.told == message || !d.courtesy.Allow() {
		return
	}
	it.memory.told = message
	// Events about the same two objects are counted as one.
	d.recorder.Eventf(v.owner, it.Object, corev1.EventTypeWarning, reason, action, "%s", clip(fmt.Sprintf("%s: %s", it.Identity, message)))
}

// discreet is an error without the values of a Secret.
func (i *item) discreet(err error, live *unstructured.Unstructured) error {
	return kube.Discreet(err, i.secrets(live)...)
}

// secrets is everything that an error about an item may quote and that may be a
// Secret: what is wanted, what is there, and what a patch would put there.
func (i *item) secrets(live *unstructured.Unstructured) []map[string]any {
	all := []map[string]any{i.Object.Object}
	if live != nil {
		all = append(all, live.Object)
	}
	if i.IsPatch() {
		all = append(all, kube.PatchedObject(i.GVK, i.Ops))
	}

	return all
}

// clip keeps a text from filling a status.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}

	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}

// reportLimit records an event, once, if the readiness of an object cannot be evaluated within limits.
func (d *Deliverer) reportLimit(v *view, it *item, err error) {
	if err != nil && !it.memory.limited && d.courtesy.Allow() {
		it.memory.limited = true
		d.recorder.Eventf(v.owner, it.Object, corev1.EventTypeWarning, "ReadinessLimit", action, "%s", clip(fmt.Sprintf("%s: %v", it.Identity, err)))
	}
}
