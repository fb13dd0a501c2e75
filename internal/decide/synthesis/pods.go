package synthesis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// Containers of the pod of a synthesis.
const (
	// ContainerInstaller copies the program that the executor is.
	ContainerInstaller = "synth-installer"
	// ContainerExecutor is of the synthesizer's image, and runs its command.
	ContainerExecutor = "executor"
	// ContainerPublisher reads inputs and writes slices.
	ContainerPublisher = "publisher"
)

// Why a pod is deleted.
const (
	PodSuccess              = "success"
	PodTimeout              = "timeout"
	PodSuperseded           = "superseded"
	PodOrphaned             = "orphaned"
	PodImageChanged         = "image_changed"
	PodCompositionDeleted   = "composition_deleted"
	PodNamespaceTerminating = "namespace_terminating"
	PodSynthesizerDeleted   = "synthesizer_deleted"
	PodKubeletTimeout       = "kubelet_timeout"
)

// reportGrace is how long the process in a pod may take to report why it did not end in time, before that
// is reported for it. It is less than grace, after which the pod is ignored.
const reportGrace = time.Second

// slack is the same for a pod that runs: the kubelet reports when containers started in
// whole seconds, and the publisher begins to count when it is up.
const slack = 3 * time.Second

// NamespaceState is whether objects can be created in a namespace.
type NamespaceState int

// States of a namespace.
const (
	NamespaceActive NamespaceState = iota
	NamespaceMissing
	NamespaceTerminating
)

// PodView is everything that is known about the pods of one composition.
type PodView struct {
	// Composition and Synthesizer are nil if they do not exist.
	Composition *enov1.Composition
	Synthesizer *enov1.Synthesizer
	// Pods of the composition, of whatever synthesis.
	Pods []*corev1.Pod
	// Rules are those between tenants. The environment of a pod is that of the Composition when
	// the pod is created, which may be long after the synthesis began.
	Rules tenancy.Rules
	// Namespace that pods are in, and whether it is there.
	Namespace string
	State     NamespaceState
	// Timeout of a synthesis, and CreationTTL, which is how long the kubelet may take to report the
	// status of a pod.
	Timeout, CreationTTL time.Duration
	// PullTimeout is how long the kubelet may take from then on to start all containers.
	// Most of that is the time to pull images, which is not time of the synthesis.
	PullTimeout time.Duration
	// Warnings are events of the pod that a plan asked for with Explain; nil if they were
	// not read.
	Warnings []corev1.Event
}

// A PodPlan is what to do about the pods of one composition.
type PodPlan struct {
	// Create is whether the synthesis in flight needs a pod.
	Create bool
	Delete []PodDeletion
	// GiveUp is why the synthesis in flight cannot end well any more, if that is so.
	GiveUp string
	// Explain is the pod whose warnings name the cause of GiveUp, if they were not read: read
	// them, and decide again.
	Explain *corev1.Pod
	// Next is when to requeue even if nothing happens; zero if never.
	Next time.Time
}

// A PodDeletion is a pod that is not needed any more, and why.
type PodDeletion struct {
	Pod    *corev1.Pod
	Reason string
}

// Idle reports whether there is nothing to do.
func (p *PodPlan) Idle() bool { return !p.Create && len(p.Delete) == 0 && p.GiveUp == "" }

// Pods decides about the pods of one composition. It has no memory: a synthesis in flight has one
// pod, and nothing else has any.
func Pods(v PodView, now time.Time) PodPlan {
	var plan PodPlan
	var mine *corev1.Pod
	for _, p := range v.Pods {
		reason := unneeded(v, p)
		if reason == "" {
			mine = p
			reason, plan.Next = stale(v, p, now)
		}
		if reason != "" && p.DeletionTimestamp == nil {
			plan.Delete = append(plan.Delete, PodDeletion{p, reason})
		}
	}
	if wantsPod(v) {
		plan.attend(v, mine, now)
	}

	return plan
}

// attend sees to it that the synthesis in flight has a pod that something can come
// of.
func (p *PodPlan) attend(v PodView, mine *corev1.Pod, now time.Time) {
	active := mine
	if p.removes(mine) {
		active = nil
	}
	switch {
	case v.State == NamespaceMissing:
		p.GiveUp = fmt.Sprintf("namespace %s, which pods of synthesizers run in, does not exist: create it", v.Namespace)
	case v.State == NamespaceTerminating:
		p.GiveUp = fmt.Sprintf("namespace %s, which pods of synthesizers run in, is being deleted: create it again", v.Namespace)
	case mine == nil:
		if p.GiveUp = forbiddenPod(v); p.GiveUp == "" {
			p.Create = true
		}
	case active != nil:
		p.GiveUp = hopeless(active)
	}
	over, why := deadline(v, active, mine)
	if p.GiveUp != "" || over.IsZero() {
		return
	}
	if p.Next = sooner(p.Next, over); !now.Before(over) {
		p.Create, p.Next, p.GiveUp = false, time.Time{}, why
		p.Explain = unexplained(v, active)
	}
}

// forbiddenPod returns why a pod must not be created with what the Composition asks for now, ""
// if it may be.
func forbiddenPod(v PodView) string {
	if broken := Forbidden(v.Composition, v.Synthesizer, v.Rules); broken != nil {
		return broken.Message
	}

	return ""
}

// removes reports whether a pod is being deleted, or will be.
func (p *PodPlan) removes(pod *corev1.Pod) bool {
	return pod != nil && (pod.DeletionTimestamp != nil || slices.ContainsFunc(p.Delete, func(d PodDeletion) bool { return d.Pod == pod }))
}

// wantsPod reports whether a composition has a synthesis in flight that needs a program. A rollback
// needs none.
func wantsPod(v PodView) bool {
	c := v.Composition

	return c != nil && c.DeletionTimestamp == nil && v.Synthesizer != nil && Running(&c.Status) && c.Status.InFlightSynthesis.RolledBackTo == ""
}

// unneeded returns why a pod is not needed any more, or "".
func unneeded(v PodView, p *corev1.Pod) string {
	c := v.Composition
	if c == nil || p.Annotations[enov1.AnnotationCompositionUID] != string(c.UID) {
		return PodOrphaned
	}
	if c.DeletionTimestamp != nil {
		return PodCompositionDeleted
	}
	uuid := p.Labels[enov1.LabelSynthesisUUID]
	switch end := EndOf(c, uuid); {
	case end == Promoted:
		return PodSuccess
	case end == GivenUp:
		return PodTimeout
	case end == Open && v.Synthesizer == nil:
		return PodSynthesizerDeleted
	case end == Open && wantsPod(v):
		return ""
	default:
		return PodSuperseded
	}
}

// stale returns why a pod that is needed must be replaced by another one of the same synthesis, or
// when it may have to be.
func stale(v PodView, p *corev1.Pod, now time.Time) (reason string, next time.Time) {
	switch scheduled := scheduledAt(p); {
	case v.State == NamespaceTerminating:
		return PodNamespaceTerminating, time.Time{}
	case p.Annotations[enov1.AnnotationSynthesizerImage] != v.Synthesizer.Spec.Image:
		return PodImageChanged, time.Time{}
	case scheduled.IsZero() || len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses) > 0 || ended(p):
		return "", time.Time{}
	case now.Before(scheduled.Add(v.CreationTTL)):
		return "", scheduled.Add(v.CreationTTL)
	default:
		return PodKubeletTimeout, time.Time{}
	}
}

func scheduledAt(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}

	return time.Time{}
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// statuses of all containers, in the order in which they are started.
func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// stuck are the reasons of containers that wait for what will not happen by
// itself within the time of a synthesis. A new pod tries again.
var stuck = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// hopeless returns why a pod will never succeed, or "". A pod that has succeeded is not checked:
// its synthesis is not in flight any more.
func hopeless(p *corev1.Pod) string {
	for _, s := range statuses(p) {
		if w := s.State.Waiting; w != nil && slices.Contains(stuck, w.Reason) {
			return fmt.Sprintf("the pod cannot start container %s, image %q: %s", s.Name, s.Image, worded(w.Reason, w.Message))
		}
	}
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason != "" { // such as Evicted: the kubelet killed its containers
		return "the pod failed: " + worded(p.Status.Reason, p.Status.Message)
	}
	if s := firstFailed(p); s != nil {
		return failure(s)
	}
	switch {
	case p.Status.Phase == corev1.PodFailed:
		return "the pod failed: " + worded(p.Status.Reason, p.Status.Message)
	case ended(p), finished(p, ContainerPublisher):
		return "the pod ended without a result"
	default:
		return ""
	}
}

func finished(p *corev1.Pod, container string) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.State.Terminated != nil
	})
}

// overdue describes the state of a pod at its timeout.
func overdue(p *corev1.Pod) string {
	if p == nil {
		return "the synthesis did not end in time: it got no pod"
	}
	text := fmt.Sprintf("the synthesis did not end in time: its pod is %s", p.Status.Phase)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return text + ", " + worded(c.Reason, c.Message)
		}
	}
	for _, s := range statuses(p) {
		if w := s.State.Waiting; w != nil {
			return text + ", container " + s.Name + " waits: " + worded(w.Reason, w.Message)
		}
	}

	return text
}

// worded puts a reason and a message of the kubelet together.
func worded(reason, message string) string {
	message = strings.TrimSpace(message)
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	default:
		return reason + ": " + message
	}
}
