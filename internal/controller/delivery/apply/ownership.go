package apply

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
)

// Reasons of events about ownership. They are those of package ownership, which
// has its events on the objects.
const (
	reasonMigrated  = "OwnershipMigrated"
	reasonFailed    = "OwnershipNotMigrated"
	reasonContested = "OwnershipContested"
	reasonSplit     = "OwnershipSplit"
)

// ReasonIgnored is that of events about settings that are ignored.
const ReasonIgnored = "SettingIgnored"

// A finding is the result of a check of the ownership of an object. The zero value is that there is
// nothing to report.
type finding struct {
	// state and message are for the report, reason is that of the event.
	state, message, reason string
	// moves are the fields that other managers own, or owned.
	moves []fields.Move
}

// reportOwnership records a finding, with an event if it differs from the last one.
func (w *Worker) reportOwnership(v *model.Composition, it *model.Item, f finding) {
	f.message = kube.DiscreetText(f.message, it.SecretValues(nil)...)
	state := f.state
	o := enov1.OwnershipObject{
		APIVersion: it.Object.GetAPIVersion(), Kind: it.Object.GetKind(), Namespace: it.Object.GetNamespace(), Name: it.Object.GetName(),
		State: state, Message: event.Clip(f.message),
	}
	had, changed := v.OwnershipReport.Note(it.Identity, o)
	if !changed {
		return
	}
	w.Status.Report(v)
	// Each attempt may fail with another message, and has failed all the same.
	if again := state == enov1.OwnershipFailed && had.State == state; state != "" && !again {
		w.Events.Record(v.Owner, it.Object, f.eventType(), f.reason, fmt.Sprintf("%s: %s", it.Identity, f.note()))
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
	if n := len(paths) - event.MaxPaths; n > 0 {
		paths, more = paths[:event.MaxPaths], fmt.Sprintf(" and %d more", n)
	}
	about := strings.Join(paths, ", ") + more
	switch {
	case about == "":
		return f.message
	case f.state == enov1.OwnershipFailed:
		// The message of the server may be long.
		return fmt.Sprintf("%s of %s could not be moved: %s", about, sources(f.moves), f.message)
	default:
		return f.message + ": " + about
	}
}

// warnOverridden reports the settings that are ignored as overrides make them.
func (w *Worker) warnOverridden(v *model.Composition, it *model.Item, r *decide.Resource, live *unstructured.Unstructured) {
	var all []string
	for _, warning := range r.Warnings() {
		all = append(all, kube.DiscreetText(warning.Error(), it.SecretValues(live)...))
	}
	if len(all) > 0 {
		w.report(v, it, ReasonIgnored, event.Join(all))
	}
}

// report records an event on the composition that a resource is stuck, once for each reason.
func (w *Worker) report(v *model.Composition, it *model.Item, reason, message string) {
	if message = event.Clip(message); it.Memory.LastEvent == message {
		return
	}
	// Events about the same two objects are counted as one.
	if w.Events.Record(v.Owner, it.Object, corev1.EventTypeWarning, reason, fmt.Sprintf("%s: %s", it.Identity, message)) {
		it.Memory.LastEvent = message
	}
}

// reportLimit records an event, once, if the readiness of an object cannot be evaluated within limits.
func (w *Worker) reportLimit(v *model.Composition, it *model.Item, err error) {
	if err != nil && !it.Memory.Limited {
		it.Memory.Limited = w.Events.Record(v.Owner, it.Object, corev1.EventTypeWarning, "ReadinessLimit", fmt.Sprintf("%s: %v", it.Identity, err))
	}
}
