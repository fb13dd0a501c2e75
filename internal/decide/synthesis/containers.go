package synthesis

import (
	"fmt"
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
		return since.Add(v.Timeout + slack), overdue(mine)
	case phase == podStarting && !since.IsZero():
		return since.Add(v.PullTimeout), slow(active, v.PullTimeout)
	case in.Initialized != nil:
		return in.Initialized.Add(v.Timeout + said), overdue(mine)
	default:
		return time.Time{}, ""
	}
}

// slow names the container that keeps a pod from running.
func slow(p *corev1.Pod, limit time.Duration) string {
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

// firstFailed returns the container that failed first: the end of one makes the others
// fail, too. It returns nil if none failed.
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
