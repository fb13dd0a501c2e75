package objecthealth

import (
	"cmp"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A State is how well an object works. A greater one is worse.
type State int

// States of objects.
const (
	// Current is what it should be.
	Current State = iota
	// Progressing is on its way to Current.
	Progressing
	// Degraded was Current before and is not any more, does not become Current in time,
	// or cannot be delivered.
	Degraded
	// Failed does not become Current without a change.
	Failed
)

// String is the name of the state, as condition reasons are written.
func (s State) String() string {
	return [...]string{"Current", "Progressing", "Degraded", "Failed"}[s]
}

// Reasons that are not those of kstatus.
const (
	// ReasonTimeout is that of an object that is Progressing for too long.
	ReasonTimeout = "Timeout"
	// ReasonNotFound is that of an object that was deleted by another client.
	ReasonNotFound = "NotFound"
	// ReasonPodFailed is that of a Pod whose containers ended with an error. To kstatus,
	// such a Pod is Current: it has completed.
	ReasonPodFailed = "PodFailed"
	// ReasonTerminating is that of an object that another client deletes.
	ReasonTerminating = "Terminating"

	// notScheduled is the reason of kstatus for a young Pod that cannot be scheduled.
	notScheduled = "PodNotScheduled"
)

// maxMessage is how many bytes of the message of an object are kept.
const maxMessage = 300

// A Health is the state of an object, and why it is in that state.
type Health struct {
	State           State
	Reason, Message string
}

// A Rule is how the health of a kind is found out.
type Rule int

// Rules of kinds.
const (
	// Applied kinds have no health: their objects are Current once they are applied.
	Applied Rule = iota
	// WithStatus kinds are assessed if the object has a status.
	WithStatus
	// Always kinds are always assessed.
	Always
)

// apps is the API group of workloads.
const apps = "apps"

// assessed are the kinds of Kubernetes that kstatus has rules for.
var assessed = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                                                     true,
	{Kind: "Service"}:                                                 true,
	{Kind: "PersistentVolumeClaim"}:                                   true,
	{Group: apps, Kind: "Deployment"}:                                 true,
	{Group: apps, Kind: "StatefulSet"}:                                true,
	{Group: apps, Kind: "DaemonSet"}:                                  true,
	{Group: apps, Kind: "ReplicaSet"}:                                 true,
	{Group: "batch", Kind: "Job"}:                                     true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
}

// builtIn are the API groups of Kubernetes itself. Some of their controllers write a
// status all the time, such as that of HorizontalPodAutoscalers, and none of them uses
// the conditions that kstatus knows.
var builtIn = map[string]bool{
	"": true, apps: true, "batch": true, "autoscaling": true, "policy": true, "extensions": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true, "authentication.k8s.io": true,
	"authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true, "networking.k8s.io": true, "node.k8s.io": true,
	"rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// RuleOf returns how the health of a kind is found out.
func RuleOf(kind schema.GroupKind) Rule {
	switch {
	case assessed[kind]:
		return Always
	case builtIn[kind.Group]:
		return Applied
	default:
		return WithStatus
	}
}

// Of assesses a live object by its status alone. An object whose status kstatus cannot read is
// Current: nothing is known against it.
func Of(live *unstructured.Unstructured) Health {
	if RuleOf(live.GroupVersionKind().GroupKind()) == Applied {
		return Health{}
	}
	result, err := status.Compute(live)
	if err != nil {
		return Health{}
	}
	switch result.Status {
	case status.InProgressStatus:
		return because(Progressing, result)
	case status.FailedStatus:
		return because(Failed, result)
	case status.TerminatingStatus:
		return Health{Progressing, ReasonTerminating, "another client is deleting it"}
	case status.CurrentStatus, status.NotFoundStatus, status.UnknownStatus:
	}
	if live.GetKind() == "Pod" && live.GroupVersionKind().Group == "" && status.GetStringField(live.Object, "status.phase", "") == "Failed" {
		return Health{Failed, ReasonPodFailed, clip(cmp.Or(status.GetStringField(live.Object, "status.message", ""), result.Message))}
	}

	return Health{}
}

// because takes reason and message from the condition that kstatus adds, which has those
// of the object.
func because(s State, result *status.Result) Health {
	h := Health{State: s, Reason: result.Status.String(), Message: result.Message}
	for _, c := range result.Conditions {
		h.Reason, h.Message = cmp.Or(c.Reason, h.Reason), cmp.Or(c.Message, h.Message)
	}
	h.Message = clip(h.Message)

	return h
}

// clip shortens a message at the end of a character.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end] + "…"
}

// A Record is the health of an object with as much of its past as the next assessment needs. The
// zero value is that of an object that was never assessed.
type Record struct {
	Health

	// Since is when the object began not to be Current.
	Since time.Time

	uid        types.UID
	generation int64
	// settled is true if the object was Current in this generation.
	settled bool
}

// Assess assesses a live object, given what was recorded before.
func (r Record) Assess(live *unstructured.Unstructured, now time.Time) Record {
	next := Record{Health: Of(live), uid: live.GetUID(), generation: live.GetGeneration()}
	same := r.uid == next.uid && r.generation == next.generation
	next.settled = next.State == Current || same && r.settled
	if next.State == Current {
		return next
	}
	if next.Since = now; same && !r.Since.IsZero() {
		next.Since = r.Since
	}
	if next.State == Progressing && next.settled {
		next.State = Degraded
	}

	return next
}

// Missing records that the object does not exist.
func (r Record) Missing(now time.Time) Record {
	next := Record{Health: Health{Degraded, ReasonNotFound, "it does not exist"}, Since: now}
	if r.Reason == ReasonNotFound {
		next.Since = r.Since
	}

	return next
}

// Recheck is when to assess the object again although nothing happens to it, 0 for never. It is
// about Pods that are unschedulable: kstatus waits for a while before it reports it.
func (r Record) Recheck() time.Duration {
	if r.Reason == notScheduled {
		return status.ScheduleWindow + time.Second
	}

	return 0
}
