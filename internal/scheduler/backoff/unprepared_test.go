package backoff

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

func TestUnprepared(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key := schedulertest.KeyInA("g")
	cases := map[string]struct {
		reason string
		do     func(u *Unprepared)
		want   time.Duration // 0 if the gang may preempt
	}{
		"Never": {"A gang that never failed may preempt.", func(*Unprepared) {}, 0},
		"Once":  {"Its volume may exist soon.", func(u *Unprepared) { u.Failed(key, schedulertest.PodWithVolume("p"), true) }, 10 * time.Minute},
		"Twice": {"It was tried again in vain.", func(u *Unprepared) {
			u.Failed(key, schedulertest.PodWithVolume("p"), false)
			u.Failed(key, schedulertest.PodWithVolume("q"), true)
		}, 20 * time.Minute},
		"InFreeRoom": {"No pods were evicted for it.", func(u *Unprepared) {
			u.Failed(key, schedulertest.PodWithVolume("p"), false)
			u.Failed(key, schedulertest.PodWithVolume("p"), false)
		}, 10 * time.Minute},
		"Often":        {"It is tried once in six hours.", func(u *Unprepared) { fail(u, key, 20) }, 6 * time.Hour},
		"PodDeleted":   {"The next pod may need no volume.", func(u *Unprepared) { u.Failed(key, schedulertest.PodWithVolume("p"), true); u.Deleted(key, "p") }, 0},
		"OtherDeleted": {"The pod that cannot be prepared is still there.", func(u *Unprepared) { u.Failed(key, schedulertest.PodWithVolume("p"), true); u.Deleted(key, "q") }, 10 * time.Minute},
		"Edited":       {"That is another gang.", func(u *Unprepared) { u.Failed(key, schedulertest.PodWithVolume("p"), true); u.Forget(key) }, 0},
		"OtherGang":    {"It concerns one gang.", func(u *Unprepared) { u.Failed(schedulertest.KeyInA("other"), schedulertest.PodWithVolume("p"), true) }, 0},
		"GroupDeleted": {"Nothing is remembered of PodGroups that do not exist.", func(u *Unprepared) {
			u.exists = func(types.NamespacedName) bool { return false }
			u.Failed(key, schedulertest.PodWithVolume("p"), true)
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := NewUnprepared(always)
			u.now = func() time.Time { return now }
			tc.do(u)
			var want time.Time
			if tc.want > 0 {
				want = now.Add(tc.want)
			}
			if diff := cmp.Diff(want, u.Until(key)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func fail(u *Unprepared, key types.NamespacedName, times int) {
	for range times {
		u.Failed(key, schedulertest.PodWithVolume("p"), true)
	}
}
