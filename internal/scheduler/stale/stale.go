package stale

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/eviction"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

const (
	// reasonStale is the reason of the condition DisruptionTarget of pods that are
	// evicted because their gang stayed below its minimum.
	reasonStale = "GangBelowMinimum"
	// staleSettle is how long a group waits for further changes before it is observed.
	staleSettle = 200 * time.Millisecond
	// staleWorkers is how many groups are observed at the same time.
	staleWorkers = 2
	// bindPatience is added to the grace period while members of the gang are being
	// bound. bindPoll is how often the end of that is looked for; a gang that is
	// bound sooner is not written to.
	bindPatience = 30 * time.Second
	bindPoll     = time.Second
)

// A Staleness evicts what is left of gangs and subgroups that lost pods and
// stayed below their minimum for the grace period; see [gang.Observe]. What it
// knows of a gang is in memory, and in an annotation of the PodGroup as far as it
// does not follow from the pods. It evicts only if the annotation that the
// informer has read back says the same, so that a restart changes nothing.
type Staleness struct {
	groups  *podgroups.Index
	evictor *eviction.Evictor
	// answers reports whether a pod asks for this scheduler.
	answers func(*corev1.Pod) bool
	// defaultGrace is the grace period of PodGroups that have none; 0 means forever.
	defaultGrace time.Duration

	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// leads reports that this replica is the leader, so that the queue is drained.
	leads atomic.Bool

	mu       sync.Mutex
	observed map[types.NamespacedName]*observedGroup
	expected map[types.NamespacedName]expectedGroup
}

// An observedGroup is what is known of a PodGroup. Only the worker that has the
// group's key in hand uses it.
type observedGroup struct {
	uid    types.UID
	memory map[string]gang.Memory
	// annotation is the value that memory includes.
	annotation string
	// patched is the resource version that the PodGroup had when it was last patched
	// here. The patch fails for any other version, so the informer has not seen it
	// exactly as long as it has this one.
	patched string
}

// An expectedGroup is what was decided about a PodGroup and not observed yet.
type expectedGroup struct {
	uid    types.UID
	memory map[string]gang.Memory
}

// New returns a staleness that knows of no gang yet. grace is the grace period of PodGroups that have
// none; 0 means forever.
func New(groups *podgroups.Index, evictor *eviction.Evictor, answers func(*corev1.Pod) bool, grace time.Duration) *Staleness {
	return &Staleness{
		groups: groups, evictor: evictor, answers: answers, defaultGrace: grace,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
		observed: map[types.NamespacedName]*observedGroup{}, expected: map[types.NamespacedName]expectedGroup{},
	}
}

// Touch has a group observed soon. A replica that does not lead observes all
// groups when it begins to.
func (w *Staleness) Touch(key types.NamespacedName) {
	if w.leads.Load() {
		w.queue.AddAfter(key, staleSettle)
	}
}

// Expect is called by the cycle before the members of a gang are bound.
func (w *Staleness) Expect(g *decide.Gang, d gang.Decision) {
	memory := gang.Expect(g.Tree, d)
	if len(memory) == 0 {
		return
	}
	key := types.NamespacedName{Namespace: g.Group.Namespace, Name: g.Group.Name}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Subgroups may be placed one after the other before the group is observed.
	if before := w.expected[key]; before.uid == g.Group.UID {
		maps.Copy(before.memory, memory)

		return
	}
	w.expected[key] = expectedGroup{uid: g.Group.UID, memory: memory}
}

// Forget drops what is known of a group.
func (w *Staleness) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.observed, key)
	delete(w.expected, key)
}

// group returns what is known of a group, and what is expected since it was last
// observed.
func (w *Staleness) group(key types.NamespacedName, uid types.UID) (known *observedGroup, expected map[string]gang.Memory) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known = w.observed[key]
	if known == nil || known.uid != uid {
		known = &observedGroup{uid: uid}
		w.observed[key] = known
	}
	if e, ok := w.expected[key]; ok && e.uid == uid {
		expected = e.memory
	}
	delete(w.expected, key)

	return known, expected
}

// Run observes gangs until ctx ends.
func (w *Staleness) Run(ctx context.Context) {
	w.leads.Store(true)
	for _, key := range w.groups.Keys() {
		w.Touch(key)
	}
	for range staleWorkers {
		go worker.Drain(ctx, worker.Staleness, w.queue, w.observe)
	}
	<-ctx.Done()
	w.queue.ShutDown()
}

// observe reads a group and its pods, and checks them unless they cannot be used
// now. Whatever changes that is an event that touches the group.
func (w *Staleness) observe(ctx context.Context, key types.NamespacedName) error {
	pg := w.groups.Group(key)
	if pg == nil {
		w.Forget(key)

		return nil
	}
	known, expected := w.group(key, pg.UID)
	pods, binding, claimed := w.groups.BoundMembers(key)
	if claimed {
		w.expectAgain(key, pg.UID, expected)

		return nil // its event, or unmark, has the group observed again
	}
	if len(pods) > 0 && !slices.ContainsFunc(pods, w.answers) {
		return nil // they belong to another scheduler
	}
	g, refusal := decide.Read(pg, pods, w.groups.Rules)
	if refusal != nil || pg.ResourceVersion == known.patched {
		w.expectAgain(key, pg.UID, expected)

		return nil
	}
	known.load(ctx, g)
	gang.Remember(known.memory, expected)

	return w.check(ctx, key, g, known, binding)
}

// check compares a gang with what is known of it, stores the difference, and
// evicts the pods whose grace period is over.
func (w *Staleness) check(ctx context.Context, key types.NamespacedName, g *decide.Gang, known *observedGroup, binding bool) error {
	now, grace := time.Now(), w.grace(g.Group)
	if binding && grace >= 0 {
		grace = max(grace, grace+bindPatience) // unless that overflows
	}
	o := gang.Observe(g.Tree, g.Members, g.Rules, known.memory, now.UnixNano(), int64(grace))
	known.memory = o.Memory
	if binding && len(o.Record) > 0 {
		w.queue.AddAfter(key, bindPoll)
		if !older(o.Record, now.Add(-bindPoll)) {
			return nil
		}
	}
	stored, err := w.store(ctx, g.Group, known, o.Record)
	if err != nil || !stored {
		return err
	}
	if o.Wait > 0 {
		w.queue.AddAfter(key, time.Duration(o.Wait))
	}

	return w.evict(ctx, g, o.Evict)
}

// older reports whether a clock started before a time.
func older(record map[string]gang.Memory, than time.Time) bool {
	for _, m := range record {
		if m.Since != 0 && m.Since < than.UnixNano() {
			return true
		}
	}

	return false
}

// expectAgain keeps for the next observation what this one could not use.
func (w *Staleness) expectAgain(key types.NamespacedName, uid types.UID, expected map[string]gang.Memory) {
	if len(expected) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if newer := w.expected[key]; newer.uid == uid {
		maps.Copy(expected, newer.memory)
	}
	w.expected[key] = expectedGroup{uid: uid, memory: expected}
}

// load completes what is known with the status, the first time, and with an
// annotation that was not written here.
func (known *observedGroup) load(ctx context.Context, g *decide.Gang) {
	first := known.memory == nil
	if first {
		known.memory = statusMemory(g.Group, g.Tree)
	}
	text := g.Group.Annotations[v2alpha2.StalenessAnnotation]
	if text == known.annotation {
		return
	}
	known.annotation = text
	stored, err := decodeStaleness(text)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Ignoring an invalid annotation", "podGroup", klog.KObj(g.Group), "annotation", v2alpha2.StalenessAnnotation)
	}
	for name, m := range stored {
		had := known.memory[name]
		switch {
		case had.Since != 0 && m.Since != 0:
			had.Since = m.Since // another scheduler was first
			known.memory[name] = had
		case first || !had.Met:
			known.memory[name] = m
		}
	}
}

// store writes the record to the PodGroup. It is true if the PodGroup that the
// informer has read contains it already.
func (w *Staleness) store(ctx context.Context, pg *v2alpha2.PodGroup, known *observedGroup, record map[string]gang.Memory) (bool, error) {
	text, err := encodeStaleness(record)
	if err != nil {
		return false, err
	}
	if text == pg.Annotations[v2alpha2.StalenessAnnotation] {
		return true, nil
	}
	var value *string // nil removes the annotation
	if text != "" {
		value = &text
	}
	// Any other version could have an annotation that was not read here.
	if err := w.groups.AnnotateVersion(ctx, pg, pg.ResourceVersion, v2alpha2.StalenessAnnotation, value); err != nil {
		return false, err
	}
	known.annotation, known.patched = text, pg.ResourceVersion

	return false, nil
}

// evict evicts members. Succeeded pods stay: they use no room, and their logs and
// status may still be needed.
func (w *Staleness) evict(ctx context.Context, g *decide.Gang, members []int) error {
	var pods []*corev1.Pod
	for _, i := range members {
		if g.Pods[i].Status.Phase != corev1.PodSucceeded {
			pods = append(pods, g.Pods[i])
		}
	}

	_, err := w.evictor.EvictAll(ctx, pods, reasonStale, "stale",
		fmt.Sprintf("PodGroup %s/%s has been below its minimum for %s", g.Group.Namespace, g.Group.Name, w.grace(g.Group)))

	return err
}

// grace is how long a gang may stay below its minimum; negative means forever.
func (w *Staleness) grace(pg *v2alpha2.PodGroup) time.Duration {
	switch own, ok := pg.Spec.StalenessGracePeriod.Get(); {
	case ok:
		return own
	case w.defaultGrace == 0:
		return -1
	default:
		return w.defaultGrace
	}
}
