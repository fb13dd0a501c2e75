package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
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
		"Once":         {"Its volume may exist soon.", func(u *unprepared) { u.failed(key, "p") }, 10 * time.Minute},
		"Twice":        {"It was tried again in vain.", func(u *unprepared) { u.failed(key, "p"); u.failed(key, "q") }, 20 * time.Minute},
		"Often":        {"It is tried once in six hours.", func(u *unprepared) { fail(u, key, 20) }, 6 * time.Hour},
		"PodDeleted":   {"The next pod may need no volume.", func(u *unprepared) { u.failed(key, "p"); u.deleted(key, "p") }, 0},
		"OtherDeleted": {"The pod that cannot be prepared is still there.", func(u *unprepared) { u.failed(key, "p"); u.deleted(key, "q") }, 10 * time.Minute},
		"Edited":       {"That is another gang.", func(u *unprepared) { u.failed(key, "p"); u.forget(key) }, 0},
		"OtherGang":    {"It concerns one gang.", func(u *unprepared) { u.failed(gangKey("other"), "p") }, 0},
		"GroupDeleted": {"Nothing is remembered of PodGroups that do not exist.", func(u *unprepared) {
			u.exists = func(types.NamespacedName) bool { return false }
			u.failed(key, "p")
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

func fail(u *unprepared, key types.NamespacedName, times int) {
	for range times {
		u.failed(key, "p")
	}
}
