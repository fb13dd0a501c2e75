package scheduler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// A volume that is bound after all ends the time in which the gang does not preempt.
func TestUnpreparedUntilTheVolumeIsBound(t *testing.T) {
	s := newTestScheduler(t, append(schedulertest.WaitingPods(1), schedulertest.Group("high", 1))...)
	s.kube.SchedulingQueue, s.kube.Profiles = &activations{pods: sets.New[string]()}, s.trial.Profiles
	key := schedulertest.Key("high")
	s.unprepared.Failed(key, schedulertest.PodWithVolume("p"), true)
	claim := func(name string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	s.onVolume(claim("disk-other", corev1.ClaimPending), claim("disk-other", corev1.ClaimBound))
	if s.unprepared.Until(key).IsZero() {
		t.Error("The volume of another pod counts.")
	}
	if m := s.unprepared.Message(key); !strings.Contains(m, `pod "p" could not be prepared`) || !strings.Contains(m, "disk-p") {
		t.Errorf("The message is %q.", m)
	}
	s.onVolume(claim("disk-p", corev1.ClaimPending), claim("disk-p", corev1.ClaimBound))
	if !s.unprepared.Until(key).IsZero() || s.unprepared.Message(key) != "" {
		t.Error("The gang does not preempt although its volume is bound.")
	}
}
