package binding

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// slowRound is how long a round may take before the PodGroup reports it.
const slowRound = time.Second

// A bindTimeoutError is why the members of a round that takes too long are canceled.
type bindTimeoutError time.Duration

func (e bindTimeoutError) Error() string {
	return fmt.Sprintf("not ready after %s (--bind-timeout)", time.Duration(e))
}

// errRoundFailed is why the members of a failed round are canceled.
var errRoundFailed = errors.New("another member of the gang could not be prepared")

// roundSteps is what a round does with its members, which are named by index.
type roundSteps interface {
	// permit waits for Permit plugins, and prepare runs PreBind plugins. Both
	// return soon after their context is done.
	permit(ctx context.Context, member int) error
	prepare(ctx context.Context, member int) error
	// mark makes it impossible to preempt the member other than by deleting it.
	// It fails if the member was preempted before.
	mark(member int) error
	bind(ctx context.Context, member int) error

	// settle reports that the minimum has been dealt with, and whether all of
	// it is bound.
	settle(bound bool)
	// drop gives up one member: an extra that cannot be prepared, or any member
	// that cannot be bound.
	drop(member int, err error)
	// fail gives up all members that are left, none of which is bound.
	fail(members []int, why *roundFailure)
}

// A roundFailure is why a gang could not be bound.
type roundFailure struct {
	member int
	err    error
}

// A roundStage is what a member is waiting for.
type roundStage string

const (
	stageQueued  roundStage = "" // for a member that it shares a claim with
	stagePermit  roundStage = "Permit"
	stagePreBind roundStage = "PreBind"
	stageReady   roundStage = "Ready"
	stageBind    roundStage = "Bind"
	stageDone    roundStage = "Done"
)

// A round binds the members of a gang that got a place together. All members
// that the minimum requires are prepared before the first one is bound; if one
// of them cannot be prepared in time, no member is bound. Extras are bound after
// the required members. An extra that is not ready delays none of the others.
type round struct {
	steps    roundSteps
	required int // members before this index are required
	chains   [][]int
	changed  func() // the status of a slow round may have changed
	began    time.Time

	// base is not affected by the end of the round; ctx is done when the round
	// fails or is overdue.
	base, ctx context.Context //nolint:containedctx // a round is one call
	stop      context.CancelCauseFunc

	// decided is closed when the minimum is settled, or the round has failed.
	decided chan struct{}
	failed  bool

	mu      sync.Mutex
	members []roundMember
	passed  bool // the barrier
	settled bool
}

type roundMember struct {
	ctx     context.Context //nolint:containedctx // a round is one call
	cancel  context.CancelCauseFunc
	stage   roundStage
	since   time.Time
	err     error
	dropped bool
}

// blames reports whether this member is rather the one that the round failed because of.
func (m *roundMember) blames(other *roundMember) bool {
	if queued := m.stage == stageQueued; queued != (other.stage == stageQueued) {
		return !queued
	}

	return m.since.Before(other.since)
}

func newRound(ctx context.Context, steps roundSteps, members, required int, chains [][]int, timeout time.Duration, changed func()) *round {
	r := &round{
		steps: steps, required: required, chains: chains, changed: changed, began: time.Now(), base: ctx,
		decided: make(chan struct{}), members: make([]roundMember, members),
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, bindTimeoutError(timeout))
	limited, stop := context.WithCancelCause(limited)
	r.ctx, r.stop = limited, func(cause error) {
		stop(cause)
		cancel()
	}
	for m := range r.members {
		ctx, cancel := context.WithCancelCause(r.ctx)
		r.members[m] = roundMember{ctx: ctx, cancel: cancel, since: r.began}
	}

	return r
}

// run returns when every member is bound or given up.
func (r *round) run() {
	defer r.stop(nil)
	defer time.AfterFunc(slowRound, r.changed).Stop()
	var minimum, rest sync.WaitGroup
	minimum.Add(r.required)
	for _, chain := range r.chains {
		rest.Go(func() {
			for _, m := range chain {
				err := r.prepare(m)
				if m < r.required {
					r.arrive(m, err)
					minimum.Done()
				} else {
					rest.Go(func() { r.finishExtra(m, err) })
				}
			}
		})
	}
	minimum.Wait()
	if why := r.pass(); why != nil {
		r.failed = true
		r.stop(errRoundFailed)
		close(r.decided)
		rest.Wait()
		r.steps.fail(r.left(), why)

		return
	}
	r.bindRequired()
	close(r.decided)
	rest.Wait()
}

// prepare takes a member to the barrier.
func (r *round) prepare(m int) error {
	ctx := r.members[m].ctx
	for _, step := range []struct {
		stage roundStage
		do    func(context.Context, int) error
	}{{stagePermit, r.steps.permit}, {stagePreBind, r.steps.prepare}} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.enter(m, step.stage)
		err := step.do(ctx, m)
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		if err != nil {
			return err
		}
	}
	r.enter(m, stageReady)

	return nil
}

// arrive records that a required member is at the barrier, where it can still
// be preempted or deleted, or that it is lost.
func (r *round) arrive(m int, err error) {
	if err != nil {
		r.lose(m, err)

		return
	}
	ctx := r.members[m].ctx
	context.AfterFunc(ctx, func() {
		if r.ctx.Err() == nil { // else the round is over
			r.lose(m, context.Cause(ctx))
		}
	})
}

// lose fails the round, unless the barrier is open.
func (r *round) lose(m int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.passed {
		return
	}
	if r.members[m].err == nil {
		r.members[m].err = err
	}
	r.stop(errRoundFailed)
}

// pass opens the barrier, or returns why it stays closed.
func (r *round) pass() *roundFailure {
	r.mu.Lock()
	why := r.culprit()
	r.passed = why == nil
	r.mu.Unlock()
	for m := 0; m < r.required && why == nil; m++ {
		if err := r.steps.mark(m); err != nil {
			why = &roundFailure{member: m, err: err}
		}
	}

	return why
}

// culprit is the required member that has failed for a reason of its own. Of
// several, it is the one that has been waiting the longest, and not one that waits for another
// because they share a claim.
func (r *round) culprit() *roundFailure {
	found := -1
	for m := range r.members[:r.required] {
		is := &r.members[m]
		if is.err == nil || errors.Is(is.err, errRoundFailed) {
			continue
		}
		if found < 0 || is.blames(&r.members[found]) {
			found = m
		}
	}
	if found < 0 {
		return nil
	}

	return &roundFailure{member: found, err: r.members[found].err}
}

// left lists the members that have not been dropped.
func (r *round) left() []int {
	var left []int
	for m := range r.members {
		if !r.members[m].dropped {
			left = append(left, m)
		}
	}

	return left
}

func (r *round) bindRequired() {
	var wg sync.WaitGroup
	var short atomic.Bool
	for m := range r.required {
		wg.Go(func() {
			if err := r.bind(m); err != nil {
				short.Store(true)
				r.steps.drop(m, err)
			}
		})
	}
	wg.Wait()
	r.mu.Lock()
	r.settled = true
	r.mu.Unlock()
	r.steps.settle(!short.Load())
}

// finishExtra binds an extra after the required members, or drops it.
func (r *round) finishExtra(m int, err error) {
	ctx := r.members[m].ctx
	if err == nil {
		select {
		case <-r.decided:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil || r.ctx.Err() != nil {
		<-r.decided
		if r.failed {
			return
		}
	}
	if err == nil {
		err = r.steps.mark(m)
	}
	if err == nil {
		err = r.bind(m)
	}
	if err != nil {
		r.members[m].dropped = true
		r.steps.drop(m, err)
	}
}

func (r *round) bind(m int) error {
	r.enter(m, stageBind)
	defer r.enter(m, stageDone)

	return retry(r.base, func(ctx context.Context) error { return r.steps.bind(ctx, m) })
}

func (r *round) enter(m int, stage roundStage) {
	r.mu.Lock()
	r.members[m].stage, r.members[m].since = stage, time.Now()
	r.mu.Unlock()
	if time.Since(r.began) >= slowRound {
		r.changed()
	}
}

// binding reports whether required members are not bound yet.
func (r *round) binding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.required > 0 && !r.settled
}

// slowest returns the required member that has been in its stage the longest,
// once the round takes long.
func (r *round) slowest() (member int, stage roundStage, since time.Time, ok bool) {
	if !r.binding() || time.Since(r.began) < slowRound {
		return 0, "", time.Time{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	member = -1
	for m := range r.members[:r.required] {
		switch is := &r.members[m]; is.stage {
		case stagePermit, stagePreBind, stageBind:
			if member < 0 || is.since.Before(since) {
				member, stage, since = m, is.stage, is.since
			}
		case stageQueued, stageReady, stageDone:
		}
	}

	return member, stage, since, member >= 0
}
