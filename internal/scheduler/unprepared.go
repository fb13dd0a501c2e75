package scheduler

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// firstUnprepared and maxUnprepared bound how long a gang does not preempt after one of its pods
// could not be prepared for its node: pods would be evicted for room that the gang cannot use.
const firstUnprepared, maxUnprepared = 10 * time.Minute, 6 * time.Hour

// unprepared has the gangs that held their places for all of --bind-timeout in vain, because one
// pod could not be prepared. An example is a volume whose provisioner does not run.
type unprepared struct {
	exists func(types.NamespacedName) bool
	now    func() time.Time

	mu    sync.Mutex
	gangs map[types.NamespacedName]*unpreparedGang
}

type unpreparedGang struct {
	pod    types.UID
	length time.Duration
	until  time.Time
}

func newUnprepared(exists func(types.NamespacedName) bool) *unprepared {
	return &unprepared{exists: exists, now: time.Now, gangs: map[types.NamespacedName]*unpreparedGang{}}
}

// failed notes that a pod could not be prepared. It returns until when its gang does not preempt:
// each time in a row twice as long.
func (u *unprepared) failed(key types.NamespacedName, pod types.UID) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	next := &unpreparedGang{pod: pod, length: firstUnprepared}
	if was := u.gangs[key]; was != nil {
		next.length = min(2*was.length, maxUnprepared)
	}
	next.until = u.now().Add(next.length)
	if u.exists(key) { // otherwise no event would remove it
		u.gangs[key] = next
	}

	return next.until
}

// until returns until when a gang does not preempt; zero if it may.
func (u *unprepared) until(key types.NamespacedName) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is := u.gangs[key]; is != nil {
		return is.until
	}

	return time.Time{}
}

// forget is for a gang that is placed, edited or deleted.
func (u *unprepared) forget(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.gangs, key)
}

// deleted is for a pod that was deleted: the gang may preempt if it is the pod that could not be
// prepared.
func (u *unprepared) deleted(key types.NamespacedName, pod types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is := u.gangs[key]; is != nil && is.pod == pod {
		delete(u.gangs, key)
	}
}

// volumesOf names the PersistentVolumeClaims of a pod, which are the usual reason why it cannot be
// prepared. It is empty if the pod has none.
func volumesOf(pod *corev1.Pod) string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)

	return " (its PersistentVolumeClaims: " + strings.Join(names, ", ") + ")"
}
