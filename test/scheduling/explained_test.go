package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// A contender is a gang of the random test.
type contender struct {
	group    *v2alpha2.PodGroup
	priority int32
	fixed    bool // non-preemptible
	minimum  int
	least    int // the smallest minimum that it had
	pods     int
	edited   []span // when the test edited it
	ended    span   // when the test deleted it and its pods
}

// A span is the time that requests of the test took: what they changed, changed in between.
type span struct{ from, to time.Time }

// An arena is a lab in which gangs come, change and end at random.
type arena struct {
	*keeper

	random *rand.Rand
	use    map[int32]func(*corev1.Pod) // by priority
	gangs  map[string]*contender
	names  []string // of gangs that have not ended
	plain  int
}

const plainPriority = 5

// step does one thing.
func (a *arena) step() {
	a.Helper()
	switch draw := a.random.IntN(20); {
	case draw < 11 || len(a.names) == 0:
		a.come()
	case draw < 14:
		a.plain++
		for i := range 1 + a.random.IntN(4) {
			a.create(a.pod("", "", fmt.Sprintf("plain-%d-%d", a.plain, i), 1, a.use[plainPriority], lingering))
		}
	case draw < 17:
		a.leave(a.random.IntN(len(a.names)))
	default:
		a.edit(a.gangs[a.names[a.random.IntN(len(a.names))]])
	}
}

// edit lowers the minimum of a gang, or raises it.
func (a *arena) edit(c *contender) {
	a.Helper()
	switch {
	case c.minimum > 1 && (c.minimum == c.pods || a.random.IntN(2) == 0):
		c.minimum--
	case c.minimum < c.pods:
		c.minimum++
	default:
		return
	}
	c.least = min(c.least, c.minimum)
	from := time.Now()
	change(a.lab, c.group, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(c.minimum) })
	c.edited = append(c.edited, span{from, time.Now()})
}

// come creates a gang.
func (a *arena) come() {
	a.Helper()
	name := fmt.Sprintf("gang-%d", len(a.gangs))
	priority := []int32{10, 20, 50}[a.random.IntN(3)]
	gpus := []int{1, 2, 4, 8}[a.random.IntN(4)]
	size := 1 + a.random.IntN(max(2, 8/gpus))
	c := &contender{priority: priority, minimum: size, least: size, pods: size + a.random.IntN(2), fixed: a.random.IntN(5) == 0}
	spec := simple(size)
	if c.fixed {
		spec.Preemptibility = v2alpha2.NonPreemptible
	}
	use := a.use[priority]
	if a.random.IntN(2) == 0 {
		spec.PriorityClassName = fmt.Sprintf("%s-p%d", a.ns, priority)
		use = func(*corev1.Pod) {}
	}
	c.group = a.group(name, spec)
	a.gangs[name] = c
	a.names = append(a.names, name)
	a.pods(name, "", c.pods, gpus, use, lingering)
}

// leave deletes a gang.
func (a *arena) leave(i int) {
	a.Helper()
	name := a.names[i]
	a.names = append(a.names[:i:i], a.names[i+1:]...)
	c := a.gangs[name]
	from := time.Now()
	a.must(a.c.Delete(a.Context(), c.group))
	members := a.members(name)
	for i := range members {
		a.delete(&members[i])
	}
	c.ended = span{from, time.Now()}
}

// quiet waits until no pod has been bound or evicted for a while, which is longer
// than a gang may back off as long as there is an eviction that is not explained.
func (a *arena) quiet() {
	a.Helper()
	a.within(3*time.Minute, "nothing happens any more", func() error {
		a.mu.Lock()
		since := time.Since(a.changed)
		a.mu.Unlock()
		if since < 3*time.Second || since < 45*time.Second && len(a.unexplained()) > 0 {
			return fmt.Errorf("something happened %s ago", since)
		}

		return nil
	})
}

// unexplained are the evictions that helped no gang.
func (a *arena) unexplained() []story {
	a.Helper()
	evicted := a.evicted()

	return slices.DeleteFunc(slices.Clone(evicted), func(s story) bool { return a.explains(s, evicted) })
}

// effective is the priority of a pod, and whether it may be evicted.
func (a *arena) effective(pod *corev1.Pod) (int32, bool) {
	if c := a.gangs[pod.Annotations[groupAnnotation]]; c != nil {
		return c.priority, !c.fixed
	}

	return plainPriority, true
}

// explains reports whether the eviction of a pod was of use: a more important gang
// has a pod where it, or one that was evicted with it, was; or the test changed a
// gang just then, which made the eviction needless, or gave the room away.
func (a *arena) explains(victim story, evicted []story) bool {
	priority, _ := a.effective(victim.pod)
	if a.excused(victim) {
		return true
	}
	nodes, began := map[string]bool{victim.pod.Spec.NodeName: true}, victim.evicted
	for _, other := range evicted {
		gang := other.pod.Annotations[groupAnnotation]
		if gang == "" || gang != victim.pod.Annotations[groupAnnotation] {
			continue
		}
		nodes[other.pod.Spec.NodeName] = true
		// Pods of one gang are evicted together, and some requests take longer than other requests.
		if other.evicted.Before(began) && victim.evicted.Sub(other.evicted) < 10*time.Second {
			began = other.evicted
		}
	}
	found := a.stories(func(s *story) bool {
		p, _ := a.effective(s.pod)

		return p > priority && nodes[s.pod.Spec.NodeName] && s.bound.After(began)
	})

	return len(found) > 0
}

// excused reports whether the test changed a gang at about the time at which a pod was
// evicted, so that the eviction was of no use: a gang was deleted, which made room
// elsewhere; or the gang of the victim was edited, or one that could take its room.
func (a *arena) excused(victim story) bool {
	priority, _ := a.effective(victim.pod)
	for name, c := range a.gangs {
		late := time.Second
		if a.preempts(name, victim.pod) {
			late = 15 * time.Second // until the scheduler sees the change of this very gang
		}
		changes := []span{c.ended}
		if c.priority > priority || victim.pod.Annotations[groupAnnotation] == name {
			changes = append(changes, c.edited...)
		}
		for _, at := range changes {
			if at.to.Sub(victim.evicted) > -late && at.from.Sub(victim.evicted) < 5*time.Second {
				return true
			}
		}
	}

	return false
}

// preempts reports whether a pod reports that it was evicted for a gang.
func (a *arena) preempts(gang string, victim *corev1.Pod) bool {
	c := condition(victim, corev1.DisruptionTarget)

	return c != nil && strings.Contains(c.Message, fmt.Sprintf("PodGroup %s/%s of priority", a.ns, gang))
}

// Gangs of random sizes and priorities come, change and end on four nodes, and victims take up to
// two seconds. In the end every eviction is explained, no protected pod was evicted, and no gang
// runs in part.
func TestEveryEvictionIsExplained(t *testing.T) {
	for _, seed := range []uint64{1, 2} { // with many evictions
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			l := newLab(t, 4, 8)
			a := &arena{random: rand.New(rand.NewPCG(seed, seed)), use: map[int32]func(*corev1.Pod){}, gangs: map[string]*contender{}}
			a.keeper = l.keep(func(node, nth int) time.Duration { return time.Duration((node*7+nth*3)%10) * 200 * time.Millisecond })
			for _, p := range []int32{plainPriority, 10, 20, 50} {
				a.use[p] = l.class(fmt.Sprintf("p%d", p), p, corev1.PreemptLowerPriority)
			}
			for range 36 {
				a.step()
				l.after(150 * time.Millisecond)
			}
			a.quiet()
			a.check(t)
		})
	}
}

// check checks what has happened.
func (a *arena) check(t *testing.T) {
	t.Helper()
	evicted := a.evicted()
	if len(evicted) == 0 {
		t.Errorf("only %d pods were evicted: the test tests little", len(evicted))
	}
	for _, victim := range evicted {
		reason := condition(victim.pod, corev1.DisruptionTarget)
		if reason == nil || reason.Reason != corev1.PodReasonPreemptionByScheduler {
			t.Errorf("pod %s was evicted with the condition %v", victim.pod.Name, reason)
		}
		priority, may := a.effective(victim.pod)
		if !may {
			t.Errorf("pod %s was evicted, whose group is non-preemptible", victim.pod.Name)
		}
		if reason == nil || !a.moreImportant(reason.Message, priority) {
			t.Errorf("pod %s of priority %d was evicted with the condition %v: no gang of a higher priority is named", victim.pod.Name, priority, reason)
		}
	}
	unexplained := a.unexplained()
	if len(unexplained) > 0 {
		t.Log(a.timeline())
	}
	for _, victim := range unexplained {
		t.Errorf("pod %s was evicted from %s at %s for no gang: %v",
			victim.pod.Name, victim.pod.Spec.NodeName, victim.evicted.Format(time.StampMilli), condition(victim.pod, corev1.DisruptionTarget))
	}
	for _, name := range a.names {
		// A gang that ran when its minimum was raised continues.
		if n := a.bound(name); n != 0 && n < a.gangs[name].least {
			t.Errorf("%d pods of gang %s run, whose minimum was never below %d", n, name, a.gangs[name].least)
		}
	}
	t.Logf("%d pods of %d gangs were evicted", len(evicted), len(a.gangs))
}

// timeline describes what happened to the gangs and their pods, in order.
func (a *arena) timeline() string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	add := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			lines = append(lines, line{at, fmt.Sprintf(format, args...)})
		}
	}
	for name, c := range a.gangs {
		add(c.group.CreationTimestamp.Time, "%s created, priority %d, %d pods, minimum %d now, fixed: %t", name, c.priority, c.pods, c.minimum, c.fixed)
		add(c.ended.from, "%s deleted", name)
		add(c.ended.to, "pods of %s deleted", name)
		for _, at := range c.edited {
			add(at.to, "%s edited", name)
		}
	}
	for _, s := range a.stories(func(*story) bool { return true }) {
		gpus := s.pod.Spec.Containers[0].Resources.Requests[gpu]
		add(s.pod.CreationTimestamp.Time, "pod %s created, %d GPUs", s.pod.Name, gpus.Value())
		add(s.bound, "pod %s bound to %s", s.pod.Name, s.pod.Spec.NodeName)
		if c := condition(s.pod, corev1.DisruptionTarget); c != nil {
			add(s.evicted, "pod %s evicted from %s, gone: %t: %s", s.pod.Name, s.pod.Spec.NodeName, s.gone, c.Message)
		}
	}
	slices.SortStableFunc(lines, func(x, y line) int { return x.at.Compare(y.at) })
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "\n%s %s", l.at.Format("15:04:05.000"), l.text)
	}

	return text.String()
}

// moreImportant reports whether the message of a condition names a gang of the test as the
// preemptor, whose priority is higher.
func (a *arena) moreImportant(message string, than int32) bool {
	for name, c := range a.gangs {
		if c.priority > than && strings.Contains(message, fmt.Sprintf("PodGroup %s/%s of priority %d", a.ns, name, c.priority)) {
			return true
		}
	}

	return false
}

// A pod that is bound gets no later message that there is no room for it.
func TestBoundPodsKeepTheirCondition(t *testing.T) {
	l := newLab(t, 2, 16)
	for i := range 3 {
		name := fmt.Sprintf("g%d", i)
		spec := simple(2)
		spec.StalenessGracePeriod = &v2alpha2.Duration{}
		l.group(name, spec)
		l.pods(name, "", 10, 1)
	}
	for i := range 3 {
		l.runs(fmt.Sprintf("g%d", i), 10)
	}
	l.hadItsTurn()
	l.after(2 * time.Second) // conditions are written some time later
	for i := range 3 {
		for _, pod := range l.members(fmt.Sprintf("g%d", i)) {
			if c := condition(&pod, corev1.PodScheduled); c == nil || c.Status != corev1.ConditionTrue {
				t.Errorf("pod %s is bound to %s and has the condition %v", pod.Name, pod.Spec.NodeName, c)
			}
		}
	}
}
