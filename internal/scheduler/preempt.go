package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	policylisters "k8s.io/client-go/listers/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// trialBudget is how long the search for victims may take. When it is over, the
// best plan so far counts, or there is none.
const trialBudget = 5 * time.Second

// overdue is how long after its time a pod that is being deleted still counts as
// one that is going: its node may be dead.
const overdue = time.Minute

// A plan says who would have to go, and where the gang would be then.
type plan struct {
	victims []*corev1.Pod
	places  []gang.Placement
}

// preempt looks, in a goroutine of its own, for pods that are less important
// and whose going would let the whole gang in.
func (s *Scheduler) preempt(t *turn) {
	if !s.options.Preemption || !s.mayPreempt(t.gang) {
		return
	}
	s.preemptor.add(t.key)
}

// mayPreempt says whether no member has sworn off it.
func (s *Scheduler) mayPreempt(g *decide.Gang) bool {
	for i, m := range g.Members {
		if policy := g.Pods[i].Spec.PreemptionPolicy; m.State == gang.Waiting && policy != nil && *policy == corev1.PreemptNever {
			return false
		}
	}

	return true
}

// A preemptor deals with gangs that did not fit, one at a time.
type preemptor struct {
	s       *Scheduler
	budgets policylisters.PodDisruptionBudgetLister
	todo    chan types.NamespacedName
	// evicting holds, by gang, whom it has sent away: until they are gone it
	// sends away nobody else.
	evicting map[types.NamespacedName][]*corev1.Pod
	// kept holds, by gang, the pods for which room is kept.
	kept map[types.NamespacedName][]*corev1.Pod
}

func newPreemptor(s *Scheduler, budgets policylisters.PodDisruptionBudgetLister) *preemptor {
	return &preemptor{
		s: s, budgets: budgets, todo: make(chan types.NamespacedName, 1024),
		evicting: map[types.NamespacedName][]*corev1.Pod{}, kept: map[types.NamespacedName][]*corev1.Pod{},
	}
}

// add is for the goroutine that places pods, so it does not wait: whoever finds
// no room comes back with the gang's next failure.
func (p *preemptor) add(key types.NamespacedName) {
	select {
	case p.todo <- key:
	default:
	}
}

func (p *preemptor) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-p.todo:
			began := time.Now()
			if err := p.consider(ctx, key); err != nil {
				klog.FromContext(ctx).Error(err, "Could not look for room for a gang", "podGroup", key)
			}
			trialSeconds.WithLabelValues("preemption").Observe(time.Since(began).Seconds())
		}
	}
}

func (p *preemptor) consider(ctx context.Context, key types.NamespacedName) error {
	g, why := p.s.groups.read(key)
	if why != nil || gang.Missing(g.Tree, g.Members, g.Rules) != nil {
		p.giveUp(ctx, key)

		return nil
	}
	if p.waits(key, g) {
		return nil
	}
	// It was tried again with the room that was made, and does not fit.
	p.giveUp(ctx, key)
	units, err := p.units(key, p.s.groups.priority(g.Group, g.Pods))
	if err != nil || len(units) == 0 {
		return err
	}
	found, err := p.search(ctx, g, units)
	if err != nil || found == nil {
		return err
	}

	return p.carryOut(ctx, key, g, found)
}

// giveUp takes the room away that is kept for a gang, and wakes those that may
// want it.
func (p *preemptor) giveUp(ctx context.Context, key types.NamespacedName) {
	logger, queue := klog.FromContext(ctx), p.s.kube.SchedulingQueue
	for _, pod := range p.kept[key] {
		queue.DeleteNominatedPodIfExists(pod)
		queue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, pod, nil, nil)
	}
	delete(p.kept, key)
}

// waits says whether the gang has to be patient: those it sent away are still
// going, or it was asked to wait before it sends away anybody.
func (p *preemptor) waits(key types.NamespacedName, g *decide.Gang) bool {
	for _, pod := range p.evicting[key] {
		if now, err := p.s.trial.pods.Pods(pod.Namespace).Get(pod.Name); err == nil && now.UID == pod.UID {
			return true
		}
	}
	delete(p.evicting, key)
	delay := g.Group.Spec.PreemptionDelay
	if delay == nil {
		return false
	}
	left := time.Until(g.Group.CreationTimestamp.Add(delay.Duration))
	if left > 0 {
		// Nothing else might happen by then that has the gang tried again.
		time.AfterFunc(left, func() { p.s.wake(key) })
	}

	return left > 0
}

// A unit goes as a whole: a pod, or a gang that would be broken without it.
type unit struct {
	pods     []*corev1.Pod
	priority int32
	whole    bool
	youngest time.Time
	guarded  bool // by a PodDisruptionBudget
}

// units are the pods below a priority, those that are missed least first.
func (p *preemptor) units(key types.NamespacedName, below int32) ([]unit, error) {
	pods, err := p.s.trial.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var units []unit
	gangs := sets.New[types.NamespacedName]()
	for _, pod := range pods {
		of, isMember := decide.GroupOf(pod)
		switch {
		case pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || of == key:
		case isMember:
			gangs.Insert(of)
		case corev1helpers.PodPriority(pod) < below:
			units = append(units, single(pod, corev1helpers.PodPriority(pod)))
		}
	}
	for of := range gangs {
		units = append(units, p.unitsOf(of, below)...)
	}
	slices.SortStableFunc(units, func(a, b unit) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(rankOf(a), rankOf(b)), b.youngest.Compare(a.youngest), cmp.Compare(a.pods[0].Name, b.pods[0].Name))
	})
	pdbs, err := p.budgets.List(labels.Everything())
	guard(units, pdbs)

	return units, err
}

// rankOf puts single pods before whole gangs, and small gangs before large.
func rankOf(u unit) int {
	if !u.whole {
		return 0
	}

	return len(u.pods)
}

func single(pod *corev1.Pod, priority int32) unit {
	return unit{pods: []*corev1.Pod{pod}, priority: priority, youngest: pod.CreationTimestamp.Time}
}

// unitsOf divides a gang: pods that it can do without, one by one, and the rest,
// which goes together or not at all.
func (p *preemptor) unitsOf(key types.NamespacedName, below int32) []unit {
	g, why := p.s.groups.read(key)
	if why != nil {
		return nil // nobody knows what it can do without
	}
	priority := p.s.groups.priority(g.Group, g.Pods)
	if priority >= below || !decide.Preemptible(g.Group, priority) {
		return nil
	}
	var units []unit
	rest := unit{priority: priority, whole: true}
	members := slices.Clone(g.Members)
	for i := range slices.Backward(members) {
		pod := g.Pods[i]
		if members[i].State != gang.Placed || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		members[i].State = gang.Held
		if len(gang.Stale(g.Tree, members, g.Rules)) == 0 {
			units = append(units, single(pod, priority))

			continue
		}
		members[i].State = gang.Placed
		rest.pods = append(rest.pods, pod)
		if pod.CreationTimestamp.After(rest.youngest) {
			rest.youngest = pod.CreationTimestamp.Time
		}
	}
	if len(rest.pods) > 0 {
		units = append(units, rest)
	}

	return units
}

// A search tries who has to go.
type search struct {
	trial   *trial
	gang    *decide.Gang
	units   []unit
	without []bool // by unit: it is gone, in the trial
}

// search finds the shortest beginning of the units whose going lets the gang
// in, and then lets everybody stay who need not go after all, the most important
// first. When time is up, what was found so far counts.
func (p *preemptor) search(ctx context.Context, g *decide.Gang, units []unit) (*plan, error) {
	done, err := p.s.trial.open(ctx, p.s.groups.placed)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, trialBudget)
	defer cancel()
	s := &search{trial: p.s.trial, gang: g, units: units, without: make([]bool, len(units))}
	if err := p.s.trial.bury(ctx); err != nil {
		return nil, err
	}
	if best, err := s.fits(ctx, 0); err != nil || best != nil {
		return nil, err // somebody has gone meanwhile, or is going, and that wakes the gang
	}
	best, err := s.fits(ctx, len(units))
	if err != nil || best == nil {
		return nil, err // not even if all of them went
	}
	best, n := s.shorten(ctx, best)
	best, err = s.spare(ctx, best, n)
	if err != nil {
		return nil, err
	}

	return toPlan(units, s.without, best), nil
}

// shorten finds by halving how many units are enough.
func (s *search) shorten(ctx context.Context, best *gang.Decision) (*gang.Decision, int) {
	low, high := 0, len(s.units) // low is too few, high is enough
	for high-low > 1 {
		middle := (low + high) / 2
		decision, err := s.fits(ctx, middle)
		if err != nil {
			break
		}
		if decision == nil {
			low = middle
		} else {
			best, high = decision, middle
		}
	}

	return best, high
}

// spare lets units of the first n come back whose room is not needed.
func (s *search) spare(ctx context.Context, best *gang.Decision, n int) (*gang.Decision, error) {
	if err := s.set(ctx, n); err != nil {
		return nil, err
	}
	for i := n - 1; i >= 0 && ctx.Err() == nil; i-- {
		if err := s.let(ctx, i, false); err != nil {
			return nil, err
		}
		decision, err := s.ask(ctx)
		if err == nil && decision != nil {
			best = decision

			continue
		}
		if err := s.let(ctx, i, true); err != nil {
			return nil, err
		}
	}

	return best, nil
}

// fits returns the decision if the gang fits without the first n units.
func (s *search) fits(ctx context.Context, n int) (*gang.Decision, error) {
	if err := s.set(ctx, n); err != nil {
		return nil, err
	}

	return s.ask(ctx)
}

func (s *search) ask(ctx context.Context) (*gang.Decision, error) {
	decision, err := s.trial.place(ctx, s.gang)
	if err != nil || !decision.Fits {
		return nil, err
	}

	return &decision, nil
}

func (s *search) set(ctx context.Context, n int) error {
	for i := range s.units {
		if err := s.let(ctx, i, i < n); err != nil {
			return err
		}
	}

	return nil
}

// let has a unit leave the trial, or come back to it.
func (s *search) let(ctx context.Context, i int, leave bool) error {
	if s.without[i] == leave {
		return nil
	}
	s.without[i] = leave
	do := s.trial.add
	if leave {
		do = s.trial.remove
	}
	for _, pod := range s.units[i].pods {
		if err := do(ctx, pod); err != nil {
			return err
		}
	}

	return nil
}

func toPlan(units []unit, without []bool, decision *gang.Decision) *plan {
	found := &plan{places: decision.Places}
	for i, u := range units {
		if without[i] {
			found.victims = append(found.victims, u.pods...)
		}
	}

	return found
}

// carryOut keeps the places for the gang and sends the victims away.
func (p *preemptor) carryOut(ctx context.Context, key types.NamespacedName, g *decide.Gang, found *plan) error {
	logger := klog.FromContext(ctx)
	var kept []*corev1.Pod
	for _, place := range found.places {
		pod := g.Pods[place.Member].DeepCopy()
		pod.Spec.NodeName = place.Node // so that its going is one from there
		kept = append(kept, pod)
		info, err := framework.NewPodInfo(g.Pods[place.Member])
		if err != nil {
			continue
		}
		p.s.kube.SchedulingQueue.AddNominatedPod(logger, info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: place.Node})
	}
	p.evicting[key] = found.victims
	p.kept[key] = kept
	if err := p.s.evictAll(ctx, found.victims, corev1.PodReasonPreemptionByScheduler, "preempted",
		fmt.Sprintf("PodGroup %s, which is more important, takes its place", key)); err != nil {
		return err
	}
	p.s.reporter.preempted(key, len(found.victims))

	return nil
}

// evictAll ends pods, and says why on each. From now on none of them counts as a
// member of its gang; those that could not be ended do again.
func (s *Scheduler) evictAll(ctx context.Context, pods []*corev1.Pod, reason, kind, message string) error {
	for _, pod := range pods {
		s.groups.leaving.Store(pod.UID, true)
	}
	for i, pod := range pods {
		if err := s.evict(ctx, pod, reason, message); err != nil {
			for _, rest := range pods[i:] {
				s.groups.leaving.Delete(rest.UID)
			}

			return err
		}
		evictions.WithLabelValues(kind).Inc()
	}

	return nil
}

func (s *Scheduler) evict(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	client := s.groups.client
	status := pod.Status.DeepCopy()
	if podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: Name + ": " + message,
	}) {
		if err := util.PatchPodStatus(ctx, client, pod.Name, pod.Namespace, &pod.Status, status); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot mark pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		s.groups.leaving.Delete(pod.UID) // it has gone already, and nobody will tell
	case err != nil:
		return fmt.Errorf("cannot evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	s.reporter.recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Evicted", "Evicting", "%s", message)

	return nil
}
