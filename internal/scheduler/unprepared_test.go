package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestUnprepared(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key := gangKey("g")
	cases := map[string]struct {
		reason string
		do     func(u *unprepared)
		want   time.Duration // 0 if the gang may preempt
	}{
		"Never":        {"A gang that never failed may preempt.", func(*unprepared) {}, 0},
		"Once":         {"Its volume may exist soon.", func(u *unprepared) { u.failed(key, podOf("p"), true) }, 10 * time.Minute},
		"Twice":        {"It was tried again in vain.", func(u *unprepared) { u.failed(key, podOf("p"), false); u.failed(key, podOf("q"), true) }, 20 * time.Minute},
		"InFreeRoom":   {"No pods were evicted for it.", func(u *unprepared) { u.failed(key, podOf("p"), false); u.failed(key, podOf("p"), false) }, 10 * time.Minute},
		"Often":        {"It is tried once in six hours.", func(u *unprepared) { fail(u, key, 20) }, 6 * time.Hour},
		"PodDeleted":   {"The next pod may need no volume.", func(u *unprepared) { u.failed(key, podOf("p"), true); u.deleted(key, "p") }, 0},
		"OtherDeleted": {"The pod that cannot be prepared is still there.", func(u *unprepared) { u.failed(key, podOf("p"), true); u.deleted(key, "q") }, 10 * time.Minute},
		"Edited":       {"That is another gang.", func(u *unprepared) { u.failed(key, podOf("p"), true); u.forget(key) }, 0},
		"OtherGang":    {"It concerns one gang.", func(u *unprepared) { u.failed(gangKey("other"), podOf("p"), true) }, 0},
		"GroupDeleted": {"Nothing is remembered of PodGroups that do not exist.", func(u *unprepared) {
			u.exists = func(types.NamespacedName) bool { return false }
			u.failed(key, podOf("p"), true)
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := newUnprepared(always)
			u.now = func() time.Time { return now }
			tc.do(u)
			var want time.Time
			if tc.want > 0 {
				want = now.Add(tc.want)
			}
			if diff := cmp.Diff(want, u.until(key)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// podOf is a pod with a PersistentVolumeClaim of its own.
func podOf(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk-" + string(uid)}},
	}}}}
}

// A volume that is bound after all ends the time in which the gang does not preempt.
func TestUnpreparedUntilTheVolumeIsBound(t *testing.T) {
	s := newTestScheduler(t, append(waitingPods(1), aGroup("high", 1))...)
	s.kube.SchedulingQueue, s.kube.Profiles = &activations{pods: sets.New[string]()}, s.trial.profiles
	key := gangNamed("high")
	s.unprepared.failed(key, podOf("p"), true)
	claim := func(name string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	s.onVolume(claim("disk-other", corev1.ClaimPending), claim("disk-other", corev1.ClaimBound))
	if s.unprepared.until(key).IsZero() {
		t.Error("The volume of another pod counts.")
	}
	if m := s.unprepared.message(key); !strings.Contains(m, `pod "p" could not be prepared`) || !strings.Contains(m, "disk-p") {
		t.Errorf("The message is %q.", m)
	}
	s.onVolume(claim("disk-p", corev1.ClaimPending), claim("disk-p", corev1.ClaimBound))
	if !s.unprepared.until(key).IsZero() || s.unprepared.message(key) != "" {
		t.Error("The gang does not preempt although its volume is bound.")
	}
}

func fail(u *unprepared, key types.NamespacedName, times int) {
	for range times {
		u.failed(key, podOf("p"), true)
	}
}
