package synthesis

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// signaled is the exit code above which a signal ended a container: 128 and its number.
const signaled = 128

// reasonOOM is the reason of a container that was killed because it used up its memory.
const reasonOOM = "OOMKilled"

// A podPhase is what a pod of a synthesis does.
type podPhase int

const (
	// podPending is a pod that no kubelet has reported anything about.
	podPending podPhase = iota
	// podStarting is a pod whose images are pulled and whose containers are started.
	podStarting
	// podRunning is a pod whose containers run, or have run.
	podRunning
)

// phaseOf returns what a pod does, and since when as far as that is known.
func phaseOf(p *corev1.Pod) (podPhase, time.Time) {
	if p == nil || len(statuses(p)) == 0 {
		return podPending, time.Time{}
	}
	starting := scheduledAt(p)
	if p.Status.StartTime != nil {
		starting = p.Status.StartTime.Time
	}
	running := starting
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case s.State.Running != nil:
			running = later(running, s.State.Running.StartedAt.Time)
		case s.State.Terminated != nil:
			running = later(running, s.State.Terminated.StartedAt.Time)
		default:
			return podStarting, starting
		}
	}
	if len(p.Status.ContainerStatuses) == 0 {
		return podStarting, starting
	}

	return podRunning, running
}

// deadline returns when a synthesis with this pod is given up, zero if never, and why.
//
// The time of a synthesis begins when all containers of its pod run, so that it does not
// depend on how long images take to be pulled, which has a limit of its own. Until the
// kubelet has heard of the pod, it is the time since the synthesis was begun, for pods that
// cannot be scheduled.
func deadline(v PodView, active, mine *corev1.Pod) (over time.Time, why string) {
	phase, since := phaseOf(active)
	in := v.Composition.Status.InFlightSynthesis
	if in.Initialized != nil && !since.IsZero() {
		since = later(since, in.Initialized.Time) // the clock of a node may be behind
	}
	switch {
	case phase == podRunning && !since.IsZero():
		// The publisher may wait for a slice that delivery restores.
		return since.Add(v.Timeout + slack + LostGrace), overdue(mine)
	case phase == podStarting && !since.IsZero():
		return since.Add(v.PullTimeout), slow(active, v.Warnings, v.PullTimeout)
	case in.Initialized != nil:
		return in.Initialized.Add(v.Timeout + reportGrace), overdue(mine)
	default:
		return time.Time{}, ""
	}
}

// slow names what keeps a pod from running: its volumes, its network, or a container.
func slow(p *corev1.Pod, warnings []corev1.Event, limit time.Duration) string {
	if isUnprepared(p) {
		return unprepared(p, warnings, limit)
	}
	for _, s := range p.Status.InitContainerStatuses {
		if s.State.Running != nil {
			return fmt.Sprintf("container %s of the pod did not end within %s (--image-pull-timeout)", s.Name, limit)
		}
	}
	for _, s := range statuses(p) {
		if w := s.State.Waiting; w != nil {
			return fmt.Sprintf("container %s of the pod did not start within %s (--image-pull-timeout): image %q is probably still being pulled (%s); check the registry and the way to it, or allow more time",
				s.Name, limit, s.Image, worded(w.Reason, w.Message))
		}
	}

	return fmt.Sprintf("the containers of the pod did not start within %s (--image-pull-timeout)", limit)
}

// isUnprepared reports whether a pod has no volumes or no network yet. The kubelet pulls images
// after that.
func isUnprepared(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	})
}

// unexplained returns the pod if its warnings, which were not read, name why it does not start.
func unexplained(v PodView, p *corev1.Pod) *corev1.Pod {
	if phase, _ := phaseOf(p); v.Warnings != nil || phase != podStarting || !isUnprepared(p) {
		return nil
	}

	return p
}

// obstacles are the reasons of warnings about pods that do not get what they need before their
// images are pulled.
var obstacles = map[string]string{
	"FailedMount":            "the volumes of the pod were not mounted",
	"FailedAttachVolume":     "the volumes of the pod were not attached",
	"FailedMapVolume":        "the volumes of the pod were not mapped",
	"FailedCreatePodSandBox": "the sandbox of the pod, with its network, was not created",
	"NetworkNotReady":        "the network of the node was not ready",
}

// unprepared names why a pod has no volumes or no network: the kubelet reports it in warnings only.
func unprepared(p *corev1.Pod, warnings []corev1.Event, limit time.Duration) string {
	var newest *corev1.Event
	for i := range warnings {
		if w := &warnings[i]; obstacles[w.Reason] != "" && (newest == nil || warnedAt(w).After(warnedAt(newest))) {
			newest = w
		}
	}
	if newest == nil {
		return fmt.Sprintf("the volumes and the network of the pod were not ready within %s (--image-pull-timeout), before any image is pulled: see the events of pod %s", limit, p.Name)
	}

	return fmt.Sprintf("%s within %s (--image-pull-timeout): %s", obstacles[newest.Reason], limit, worded(newest.Reason, newest.Message))
}

// warnedAt is when an event happened last.
func warnedAt(e *corev1.Event) time.Time {
	at := later(later(e.CreationTimestamp.Time, e.LastTimestamp.Time), e.EventTime.Time)
	if e.Series != nil {
		at = later(at, e.Series.LastObservedTime.Time)
	}

	return at
}

// firstFailed returns the container that failed first: its end makes the other containers fail,
// too. It returns nil if none failed.
func firstFailed(p *corev1.Pod) *corev1.ContainerStatus {
	var first *corev1.ContainerStatus
	for _, s := range statuses(p) {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 && (first == nil || endedBefore(t, first.State.Terminated)) {
			first = &s
		}
	}

	return first
}

// endedBefore reports whether a container failed before another one. The kubelet reports
// whole seconds: within one, a container that was killed is the cause, and one that exited
// by itself the consequence.
func endedBefore(a, b *corev1.ContainerStateTerminated) bool {
	if !a.FinishedAt.Equal(&b.FinishedAt) {
		return a.FinishedAt.Before(&b.FinishedAt)
	}

	return a.ExitCode > signaled && b.ExitCode <= signaled
}

// failure is why a container failed.
func failure(s *corev1.ContainerStatus) string {
	t := s.State.Terminated
	text := fmt.Sprintf("container %s of the pod failed: %s", s.Name, worded(fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode), t.Message))
	if t.Reason != reasonOOM {
		return text
	}
	text += "; it ran out of memory"
	if s.Resources != nil {
		if limit, ok := s.Resources.Limits[corev1.ResourceMemory]; ok {
			text += ", its limit is " + limit.String()
		}
	}
	if s.Name == ContainerExecutor {
		return text + ": raise spec.podOverrides.resources.limits.memory of the Synthesizer"
	}

	return text + ": raise --synthesizer-pod-helper-limits of the manager"
}
