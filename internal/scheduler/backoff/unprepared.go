package backoff

import (
	"fmt"
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

// Unprepared has the gangs that held their places for all of --bind-timeout in vain, because one
// pod could not be prepared. An example is a volume whose provisioner does not run.
type Unprepared struct {
	exists func(types.NamespacedName) bool
	now    func() time.Time

	mu    sync.Mutex
	gangs map[types.NamespacedName]*unpreparedGang
}

type unpreparedGang struct {
	pod    *corev1.Pod
	length time.Duration
	until  time.Time
}

// NewUnprepared returns an empty record. exists reports whether there is a PodGroup.
func NewUnprepared(exists func(types.NamespacedName) bool) *Unprepared {
	return &Unprepared{exists: exists, now: time.Now, gangs: map[types.NamespacedName]*unpreparedGang{}}
}

// Failed notes that a pod could not be prepared. It returns until when its gang does not preempt:
// twice as long each time that pods were evicted for it in vain.
func (u *Unprepared) Failed(key types.NamespacedName, pod *corev1.Pod, evicted bool) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	next := &unpreparedGang{pod: pod, length: firstUnprepared}
	if was := u.gangs[key]; was != nil && evicted {
		next.length = min(2*was.length, maxUnprepared)
	} else if was != nil {
		next.length = was.length
	}
	next.until = u.now().Add(next.length)
	if u.exists(key) { // otherwise no event would remove it
		u.gangs[key] = next
	}

	return next.until
}

// Until returns until when a gang does not preempt; zero if it may.
func (u *Unprepared) Until(key types.NamespacedName) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is := u.gangs[key]; is != nil {
		return is.until
	}

	return time.Time{}
}

// Forget is for a gang that is placed, edited or deleted.
func (u *Unprepared) Forget(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.gangs, key)
}

// Deleted is for a pod that was deleted: the gang may preempt if it is the pod that could not be
// prepared.
func (u *Unprepared) Deleted(key types.NamespacedName, pod types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is := u.gangs[key]; is != nil && is.pod.UID == pod {
		delete(u.gangs, key)
	}
}

// WaitingFor returns the gangs of a namespace whose pod could not be prepared and has a
// PersistentVolumeClaim.
func (u *Unprepared) WaitingFor(namespace, claim string) []types.NamespacedName {
	u.mu.Lock()
	defer u.mu.Unlock()
	var keys []types.NamespacedName
	for key, is := range u.gangs {
		if key.Namespace == namespace && slices.Contains(claimsOf(is.pod), claim) {
			keys = append(keys, key)
		}
	}

	return keys
}

// Message explains why a gang does not preempt; "" if it may.
func (u *Unprepared) Message(key types.NamespacedName) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	is := u.gangs[key]
	if is == nil || !u.now().Before(is.until) {
		return ""
	}

	return fmt.Sprintf("the group preempts no pods until %s, because pod %q could not be prepared for its node within --bind-timeout%s; deleting that pod or editing the PodGroup ends this",
		is.until.UTC().Format(time.RFC3339), is.pod.Name, VolumesOf(is.pod))
}

// claimsOf returns the names of the PersistentVolumeClaims of a pod.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	slices.Sort(names)

	return names
}

// VolumesOf names the PersistentVolumeClaims of a pod, which are the usual reason why it cannot be
// prepared. It is empty if the pod has none.
func VolumesOf(pod *corev1.Pod) string {
	names := claimsOf(pod)
	if len(names) == 0 {
		return ""
	}

	return " (its PersistentVolumeClaims: " + strings.Join(names, ", ") + ")"
}
