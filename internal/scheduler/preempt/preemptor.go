package preempt

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/preemption"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
	"github.com/arbor-control/arbor/internal/scheduler/eviction"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/report"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// leastSearch is what a search counts at least when it says that the gang fits.
const leastSearch = 100 * time.Millisecond

// afterPanic is when a gang is dealt with again after a panic.
const afterPanic = time.Minute

// preemptors is how many gangs are dealt with side by side. One of them searches at a time.
const preemptors = 4

// A Preemptor makes room for gangs that do not fit. What happens next to a gang is
// decided by package preemption; the preemptor carries it out.
type Preemptor struct {
	Deps

	queue workqueue.TypedDelayingInterface[types.NamespacedName]

	// cleanups has groups that may have the record of a reservation that has ended;
	// clears bounds how fast nominations are removed.
	cleanups workqueue.TypedRateLimitingInterface[types.NamespacedName]
	clears   flowcontrol.RateLimiter

	mu    sync.Mutex
	gangs map[types.NamespacedName]*preempting
	// turns decides which gang uses the private copy of the cluster. A gang that has to wait
	// for its turn does not keep a worker.
	turns preemption.Turns
	// victims has the gangs that wait for a pod to disappear. There may be several: each
	// plan waits for all pods that are terminating on its nodes.
	victims map[types.UID]sets.Set[types.NamespacedName]
}

// Deps is what a preemptor needs.
type Deps struct {
	Kube *kubescheduler.Scheduler
	// Snapshot is that of the scheduling goroutine.
	Snapshot     *internalcache.Snapshot
	Options      *settings.Options
	Groups       *podgroups.Index
	Trial        *placement.Trial
	Reservations *reservation.Reservations
	Reporter     *report.Reporter
	Evictor      *eviction.Evictor
	BackOffs     *backoff.BackOffs
	Unprepared   *backoff.Unprepared
	Budgets      policylisters.PodDisruptionBudgetLister
	// Answers reports whether a pod asks for this scheduler.
	Answers func(*corev1.Pod) bool
	// Wake brings a gang that waits into the queue.
	Wake func(types.NamespacedName)
}

// preempting is one gang that preempts, or may. Its state is written by the worker
// that has the gang; the other fields are facts for it.
type preempting struct {
	state preemption.State
	// about is the spec that the state is about.
	about decide.About
	// unplaced reports that the gang was tried since the last search that gave an answer.
	unplaced bool
	// unprepared reports that the status says why the gang does not preempt.
	unprepared bool
	plan       *plan
	// verified is the answer of the scheduling goroutine to the plan.
	verified *bool
}

// New returns a preemptor that has no gang yet.
func New(deps Deps) *Preemptor {
	p := &Preemptor{
		Deps: deps, gangs: map[types.NamespacedName]*preempting{}, victims: map[types.UID]sets.Set[types.NamespacedName]{},
		cleanups: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
		clears:   flowcontrol.NewTokenBucketRateLimiter(clearsPerSecond, clearsPerSecond),
	}
	p.queue = newPriorityQueue(func(key types.NamespacedName) int32 {
		if pg := p.Groups.Group(key); pg != nil {
			return p.Groups.Priority(pg, p.Groups.Members(key))
		}

		return 0
	})

	return p
}

// Run deals with gangs until ctx ends.
func (p *Preemptor) Run(ctx context.Context) {
	for range preemptors {
		go p.work(ctx)
	}
	go worker.Drain(ctx, worker.Cleanup, p.cleanups, p.cleanUp)
	<-ctx.Done()
	p.ShutDown()
}

// ShutDown ends the workers.
func (p *Preemptor) ShutDown() {
	p.queue.ShutDown()
	p.cleanups.ShutDown()
}

// CleanUpLater has what is left of the reservations and binding rounds of a gang removed.
func (p *Preemptor) CleanUpLater(key types.NamespacedName) { p.cleanups.Add(key) }

// retry wakes a gang even if it backs off.
func (p *Preemptor) retry(key types.NamespacedName) {
	p.BackOffs.Forget(key)
	p.Wake(key)
}

func (p *Preemptor) work(ctx context.Context) {
	for {
		key, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		p.advance(ctx, key)
		p.queue.Done(key)
	}
}

// unplaced reports that a gang was tried and does not fit.
func (p *Preemptor) unplaced(key types.NamespacedName) {
	p.mu.Lock()
	one := p.gangs[key]
	if one == nil {
		one = &preempting{}
		p.gangs[key] = one
	}
	one.unplaced = true
	p.mu.Unlock()
	p.queue.Add(key)
}

// Touch has a gang that preempts looked at again.
func (p *Preemptor) Touch(key types.NamespacedName) {
	p.mu.Lock()
	_, known := p.gangs[key]
	p.mu.Unlock()
	if known {
		p.queue.Add(key)
	}
}

// Gone reports that a pod no longer exists.
func (p *Preemptor) Gone(pod types.UID) {
	p.mu.Lock()
	gangs := p.victims[pod]
	delete(p.victims, pod)
	p.mu.Unlock()
	for key := range gangs {
		p.queue.Add(key)
	}
}

// await has a gang dealt with again when a pod disappears. The caller has the lock.
func (p *Preemptor) await(pod types.UID, key types.NamespacedName) {
	if p.victims[pod] == nil {
		p.victims[pod] = sets.New[types.NamespacedName]()
	}
	p.victims[pod].Insert(key)
}

// unawait ends that. The caller has the lock.
func (p *Preemptor) unawait(pod types.UID, key types.NamespacedName) {
	if p.victims[pod].Delete(key); len(p.victims[pod]) == 0 {
		delete(p.victims, pod)
	}
}

// pending returns the plan that waits to be verified, nil if there is none.
func (p *Preemptor) pending(key types.NamespacedName) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.gangs[key]; one != nil && one.state.Phase == preemption.Planned && one.verified == nil {
		return one.plan
	}

	return nil
}

// Freed reports whether room is reserved for a gang and the last victim is gone. Before that,
// a back-off does no harm: it ends with the last victim.
func (p *Preemptor) Freed(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.gangs[key]

	return one != nil && one.state.Phase == preemption.Freed
}

// verify takes the answer of the scheduling goroutine. It reports false if the plan was
// given up in the meantime.
func (p *Preemptor) verify(key types.NamespacedName, of *plan, ok bool) bool {
	p.mu.Lock()
	one := p.gangs[key]
	current := one != nil && one.plan == of
	if current {
		one.verified = &ok
	}
	p.mu.Unlock()
	p.queue.Add(key)

	return current
}

// claimed records that the victims of a plan are marked. Its gang may be looked at while
// the plan is verified.
func (p *Preemptor) claimed(of *plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of.claimed, of.deadline = true, of.latest(time.Now())
}

// resume continues with a reservation that another process has recorded.
func (p *Preemptor) resume(key types.NamespacedName, of *plan) {
	p.mu.Lock()
	p.gangs[key] = &preempting{
		plan: of, state: preemption.State{}.Verified(time.Now()), about: decide.About{UID: of.group, Generation: of.generation},
	}
	for _, pod := range of.victims {
		p.await(pod.UID, key)
	}
	p.mu.Unlock()
	p.queue.Add(key)
}

// advance takes the next step for a gang, and further ones until there is nothing to
// do but wait.
func (p *Preemptor) advance(ctx context.Context, key types.NamespacedName) {
	defer func() {
		if worker.Caught(worker.Preemption, key, recover()) {
			p.queue.AddAfter(key, afterPanic) // it may hold room
		}
		p.callNext(key)
	}()
	one := p.take(key)
	if one == nil {
		return
	}
	for ctx.Err() == nil {
		g, f := p.facts(key, one)
		before := one.state.Phase
		state, action, at := one.state.Next(f)
		p.set(one, state)
		if state.Phase == preemption.Freed && before != preemption.Freed {
			p.retry(key) // its room is free now
		}
		if action == preemption.Wait {
			p.report(key, g, one, f.Victims)
			p.rest(key, one, f, at)

			return
		}
		if usesCopy(action) && !p.beginTurn(key, g, action) { // it is called when it is its turn
			if !f.Deadline.IsZero() { // or when its reservation ends
				p.queue.AddAfter(key, time.Until(f.Deadline))
			}

			return
		}
		if !p.inTurn(ctx, key, g, one, action, f) {
			p.queue.AddAfter(key, time.Until(one.state.Retry))

			return
		}
	}
}

// take returns what is known of a gang, with the answer to its plan applied.
func (p *Preemptor) take(key types.NamespacedName) *preempting {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.gangs[key]
	if one == nil || one.verified == nil {
		return one
	}
	if *one.verified {
		one.state = one.state.Verified(time.Now())
	} else {
		one.state, one.plan = one.state.Rejected(time.Now()), nil
		one.unplaced = true // the try that rejected it failed
	}
	one.verified = nil

	return one
}

// set stores the state of a gang; the scheduling goroutine reads its phase.
func (p *Preemptor) set(one *preempting, to preemption.State) {
	p.mu.Lock()
	one.state = to
	p.mu.Unlock()
}

// rest forgets a gang that has nothing under way, and has others looked at again in
// time.
func (p *Preemptor) rest(key types.NamespacedName, one *preempting, f preemption.Facts, at time.Time) {
	p.mu.Lock()
	if one.state.Phase == preemption.Idle && one.verified == nil && (f.Placed || !f.Applies || f.Incomplete) {
		delete(p.gangs, key)
	}
	p.mu.Unlock()
	if !at.IsZero() {
		p.queue.AddAfter(key, time.Until(at))
	}
}

// facts reads what the next step depends on.
func (p *Preemptor) facts(key types.NamespacedName, one *preempting) (*decide.Gang, preemption.Facts) {
	f := preemption.Facts{Now: time.Now(), Unprepared: p.Unprepared.Until(key)}
	g, why := p.Groups.Read(key)
	p.mu.Lock()
	f.Unplaced = one.unplaced
	if one.plan != nil {
		f.Unrecorded, f.Deadline = one.plan.unrecorded, one.plan.deadline
	}
	if why == nil && one.about != decide.Spec(g.Group) {
		one.about, one.state = decide.Spec(g.Group), one.state.Edited()
	}
	p.mu.Unlock()
	if why != nil {
		return nil, f
	}
	f.Placed = g.Placed()
	f.Binding = !f.Placed && len(g.Unbound) > 0 && gang.Satisfied(g.Tree, g.Members, g.Rules)[g.Tree.Root()].Satisfied
	f.Applies, f.Incomplete = true, gang.Missing(g.Tree, g.Members, g.Rules) != nil
	if of := one.plan; of != nil {
		f.Applies = of.group == g.Group.UID
		f.Changed = !of.covers(g)
		p.left(one, &f)
	}

	return g, f
}

// left names the victims that still use the room, and those that do not terminate. Each has its own grace period. The clock of the API server may differ, so
// a victim has its time from the beginning of the phase too.
func (p *Preemptor) left(one *preempting, f *preemption.Facts) {
	for _, pod := range one.plan.victims {
		is := p.Groups.UsingRoom(pod)
		switch {
		case is == nil:
			if p.inCache(pod) {
				f.Cached++
			}

			continue
		case is.DeletionTimestamp == nil && p.Groups.WasDeleted(pod.UID): // the informer is late
		case is.DeletionTimestamp == nil:
			f.Running++
		case !terminating(is, f.Now) && f.Now.Sub(one.state.Since) > overdue:
			f.Stuck = append(f.Stuck, is.Namespace+"/"+is.Name)
		}
		f.Victims++
		f.Using = append(f.Using, is.Namespace+"/"+is.Name)
	}
}
