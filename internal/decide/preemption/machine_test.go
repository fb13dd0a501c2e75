package preemption_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/decide/preemption"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// in returns a state that is in a phase since the start.
func in(p preemption.Phase) preemption.State { return preemption.State{Phase: p, Since: start} }

func TestNext(t *testing.T) {
	fresh := preemption.Facts{Now: start, Applies: true}
	after := func(d time.Duration, change func(*preemption.Facts)) preemption.Facts {
		f := fresh
		f.Now = start.Add(d)
		if change != nil {
			change(&f)
		}

		return f
	}
	cases := map[string]struct {
		reason string
		state  preemption.State
		facts  preemption.Facts
		action preemption.Action
		phase  preemption.Phase
		again  time.Duration // after the start, 0 for never
	}{
		"IdleAndPlaced": {
			"A gang that runs has nothing to do.",
			in(preemption.Idle), after(0, func(f *preemption.Facts) { f.Placed = true }),
			preemption.Wait, preemption.Idle, 0,
		},
		"IdleAndNotTried": {
			"A search without a failed try would evict for a gang that may fit.",
			in(preemption.Idle), fresh, preemption.Wait, preemption.Idle, 0,
		},
		"IdleAndUnplaced": {
			"A failed try starts a search.",
			in(preemption.Idle), after(0, func(f *preemption.Facts) { f.Unplaced = true }), preemption.Search, preemption.Idle, 0,
		},
		"IdleAndUnprepared": {
			"Pods would be evicted for room that the gang cannot use.",
			in(preemption.Idle), after(0, func(f *preemption.Facts) { f.Unplaced, f.Unprepared = true, start.Add(time.Hour) }),
			preemption.Wait, preemption.Idle, time.Hour,
		},
		"BackedOffAndUnprepared": {
			"The same holds when the back-off is over.",
			in(preemption.BackedOff), after(time.Minute, func(f *preemption.Facts) { f.Unplaced, f.Unprepared = true, start.Add(time.Hour) }),
			preemption.Wait, preemption.Idle, time.Hour,
		},
		"PreparedAgain": {
			"The gang may be bound this time.",
			in(preemption.Idle), after(time.Hour, func(f *preemption.Facts) { f.Unplaced, f.Unprepared = true, start.Add(time.Hour) }),
			preemption.Search, preemption.Idle, 0,
		},
		"FreedAndUnprepared": {
			"Others can use the room until then.",
			in(preemption.Freed), after(time.Second, func(f *preemption.Facts) { f.Unprepared = start.Add(time.Hour) }),
			preemption.Release, preemption.Freed, 0,
		},
		"PlannedWaits": {
			"The scheduling goroutine has to verify the plan.",
			in(preemption.Planned), after(time.Second, nil), preemption.Wait, preemption.Planned, preemption.PlanTimeout,
		},
		"PlannedTooLong": {
			"A plan that nobody verifies is outdated.",
			in(preemption.Planned), after(preemption.PlanTimeout, nil), preemption.Release, preemption.Planned, 0,
		},
		"RecordFirst": {
			"Nothing may be evicted before another process could know why.",
			in(preemption.Reserved), fresh, preemption.Record, preemption.Reserved, 0,
		},
		"ThenNominate": {
			"The places are part of what another process needs.",
			in(preemption.Recorded), fresh, preemption.Nominate, preemption.Recorded, 0,
		},
		"ThenEvict": {
			"Record and places are written.",
			in(preemption.Nominated), fresh, preemption.Evict, preemption.Nominated, 0,
		},
		"VictimsTerminate": {
			"A failed try does not start another search while victims terminate.",
			in(preemption.Evicted), after(time.Second, func(f *preemption.Facts) { f.Victims, f.Unplaced = 3, true }),
			preemption.Wait, preemption.Evicted, time.Second + preemption.RoomTimeout,
		},
		"LastVictimGone": {
			"The time to be placed begins with the last victim.",
			in(preemption.Evicted), after(time.Hour, nil), preemption.Wait, preemption.Freed, time.Hour + preemption.RoomTimeout,
		},
		"CacheBehind": {
			"A victim without a grace period is gone at once. A try before the scheduler's cache knows would fail, and the gang would back off.",
			in(preemption.Evicted), after(time.Hour, func(f *preemption.Facts) { f.Cached = 1 }),
			preemption.Wait, preemption.Evicted, time.Hour + 20*time.Millisecond,
		},
		"CacheBehindForever": {
			"The deadline holds all the same.",
			in(preemption.Evicted), after(time.Hour, func(f *preemption.Facts) { f.Cached, f.Deadline = 1, start }),
			preemption.Release, preemption.Evicted, 0,
		},
		"VictimStuck": {
			"A victim that does not terminate must not keep the gang waiting forever.",
			in(preemption.Evicted), after(time.Hour, func(f *preemption.Facts) { f.Victims, f.Stuck = 1, []string{"a/b"} }),
			preemption.Release, preemption.Evicted, 0,
		},
		"FreedInTime": {
			"A try that fails at once, because others were faster, does not end the reservation.",
			in(preemption.Freed), after(29*time.Second, func(f *preemption.Facts) { f.Unplaced = true }),
			preemption.Wait, preemption.Freed, preemption.RoomTimeout,
		},
		"FreedTooLong": {
			"Room is not kept for a gang that cannot use it.",
			in(preemption.Freed), after(preemption.RoomTimeout, nil), preemption.Release, preemption.Freed, 0,
		},
		"PlacedMeanwhile": {
			"A gang that found room elsewhere evicts nobody.",
			in(preemption.Reserved), after(0, func(f *preemption.Facts) { f.Placed = true }), preemption.Release, preemption.Reserved, 0,
		},
		"DeletedMeanwhile": {
			"A plan for another group is not carried out.",
			in(preemption.Nominated), after(0, func(f *preemption.Facts) { f.Applies = false }), preemption.Release, preemption.Nominated, 0,
		},
		"EditedBeforeEviction": {
			"Another search costs nothing, and may find fewer victims.",
			in(preemption.Nominated), after(0, func(f *preemption.Facts) { f.Changed = true }), preemption.Release, preemption.Nominated, 0,
		},
		"EditedAfterEviction": {
			"The room is of use to the gang as it is now, too.",
			in(preemption.Evicted), after(0, func(f *preemption.Facts) { f.Changed, f.Victims = true, 1 }), preemption.Renew, preemption.Evicted, 0,
		},
		"EditedWhenFreed": {
			"The same holds when the victims are gone.",
			in(preemption.Freed), after(0, func(f *preemption.Facts) { f.Changed = true }), preemption.Renew, preemption.Freed, 0,
		},
		"EditedAgain": {
			"A plan is recorded only for the gang as it is now.",
			in(preemption.Evicted), after(0, func(f *preemption.Facts) { f.Changed, f.Unrecorded, f.Victims = true, true, 1 }), preemption.Renew, preemption.Evicted, 0,
		},
		"Renewed": {
			"A plan that was renewed is recorded again.",
			in(preemption.Evicted), after(0, func(f *preemption.Facts) { f.Unrecorded, f.Victims = true, 1 }), preemption.RecordAgain, preemption.Evicted, 0,
		},
		"MemberMissing": {
			"Its controller creates it again soon.",
			in(preemption.Evicted), after(time.Second, func(f *preemption.Facts) { f.Incomplete, f.Victims = true, 1 }),
			preemption.Wait, preemption.Evicted, time.Second + preemption.RoomTimeout,
		},
		"MemberMissingTooLong": {
			"Room is not kept for a gang that cannot be placed.",
			preemption.State{Phase: preemption.Evicted, Since: start, Incomplete: start},
			after(preemption.RoomTimeout, func(f *preemption.Facts) { f.Incomplete, f.Victims = true, 1 }),
			preemption.Release, preemption.Evicted, 0,
		},
		"MemberMissingBeforeEviction": {
			"No pod is evicted for a gang that cannot be placed now.",
			in(preemption.Nominated), after(0, func(f *preemption.Facts) { f.Incomplete = true }),
			preemption.Wait, preemption.Nominated, preemption.RoomTimeout,
		},
		"MemberMissingWhenFreed": {
			"The time to be placed is not extended by that.",
			in(preemption.Freed), after(29*time.Second, func(f *preemption.Facts) { f.Incomplete = true }),
			preemption.Wait, preemption.Freed, preemption.RoomTimeout,
		},
		"MemberMissingAndBackedOff": {
			"A pod that is created again does not end the back-off.",
			preemption.State{Phase: preemption.BackedOff, Until: start.Add(time.Minute)},
			after(0, func(f *preemption.Facts) { f.Incomplete = true }), preemption.Wait, preemption.BackedOff, time.Minute,
		},
		"LongGracePeriod": {
			"How long a victim may take is its own.",
			in(preemption.Evicted), after(time.Hour, func(f *preemption.Facts) { f.Victims = 1 }),
			preemption.Wait, preemption.Evicted, time.Hour + preemption.RoomTimeout,
		},
		"NeverDeleted": {
			"A victim that the API server does not delete must not keep the gang waiting forever.",
			in(preemption.Evicted), after(preemption.MaxEviction+1, func(f *preemption.Facts) { f.Victims, f.Running = 1, 1 }),
			preemption.Release, preemption.Evicted, 0,
		},
		"Deadline": {
			"A scheduler that is restarted again and again must not keep room forever.",
			in(preemption.Freed), after(time.Second, func(f *preemption.Facts) { f.Deadline = start }), preemption.Release, preemption.Freed, 0,
		},
		"BeforeTheDeadline": {
			"The deadline is not over.",
			in(preemption.Freed), after(time.Second, func(f *preemption.Facts) { f.Deadline = start.Add(time.Minute) }),
			preemption.Wait, preemption.Freed, preemption.RoomTimeout,
		},
		"RetryLater": {
			"An API error is not retried at once.",
			preemption.State{Phase: preemption.Nominated, Since: start, Errors: 1, Retry: start.Add(time.Second)},
			fresh,
			preemption.Wait, preemption.Nominated, time.Second,
		},
		"BackedOff": {
			"A gang that failed does not evict again at once.",
			preemption.State{Phase: preemption.BackedOff, Until: start.Add(time.Minute)},
			after(0, func(f *preemption.Facts) { f.Unplaced = true }), preemption.Wait, preemption.BackedOff, time.Minute,
		},
		"BackOffOver": {
			"The failed try of the back-off counts when it is over.",
			preemption.State{Phase: preemption.BackedOff, Until: start},
			after(0, func(f *preemption.Facts) { f.Unplaced = true }), preemption.Search, preemption.Idle, 0,
		},
		"DeletionEndsBackOff": {
			"The next group of that name is another one.",
			preemption.State{Phase: preemption.BackedOff, Until: start.Add(time.Minute)},
			after(0, func(f *preemption.Facts) { f.Applies = false }), preemption.Wait, preemption.Idle, 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state, action, at := tc.state.Next(tc.facts)
			if action != tc.action || state.Phase != tc.phase {
				t.Errorf("%s\nThe action is %v in phase %v, want %v in %v.", tc.reason, action, state.Phase, tc.action, tc.phase)
			}
			want := time.Time{}
			if tc.again > 0 {
				want = start.Add(tc.again)
			}
			if !at.Equal(want) {
				t.Errorf("%s\nIt looks again at %v, want %v.", tc.reason, at, want)
			}
		})
	}
}

func TestReleased(t *testing.T) {
	cases := map[string]struct {
		reason string
		state  preemption.State
		facts  preemption.Facts
		cause  preemption.Cause
		want   preemption.State
	}{
		"Placed": {
			"Success forgets all failures.",
			preemption.State{Phase: preemption.Freed, Failures: 3},
			preemption.Facts{Now: start, Applies: true, Placed: true},
			preemption.Done,
			preemption.State{},
		},
		"Deleted": {
			"The next failed try searches at once.",
			preemption.State{Phase: preemption.Evicted, Failures: 1},
			preemption.Facts{Now: start},
			preemption.Superseded,
			preemption.State{Phase: preemption.Idle, Since: start, Failures: 1},
		},
		"Expired": {
			"The second failure backs off for twice as long.",
			preemption.State{Phase: preemption.Freed, Failures: 1},
			preemption.Facts{Now: start, Applies: true},
			preemption.Expired,
			preemption.State{Phase: preemption.BackedOff, Since: start, Failures: 2, Until: start.Add(2 * preemption.FirstBackOff)},
		},
		"Stuck": {
			"A stuck victim backs off.",
			preemption.State{Phase: preemption.Evicted},
			preemption.Facts{Now: start, Applies: true, Victims: 1, Stuck: []string{"a/b"}},
			preemption.Blocked,
			preemption.State{Phase: preemption.BackedOff, Since: start, Failures: 1, Until: start.Add(preemption.FirstBackOff)},
		},
		"EditedBeforeEviction": {
			"The search is repeated at once.",
			preemption.State{Phase: preemption.Nominated},
			preemption.Facts{Now: start, Applies: true, Changed: true},
			preemption.Superseded,
			preemption.State{Phase: preemption.Idle, Since: start},
		},
		"MembersMissing": {
			"Victims were evicted in vain, so the gang backs off.",
			preemption.State{Phase: preemption.Evicted},
			preemption.Facts{Now: start, Applies: true, Incomplete: true},
			preemption.Superseded,
			preemption.State{Phase: preemption.BackedOff, Since: start, Failures: 1, Until: start.Add(preemption.FirstBackOff)},
		},
		"Unprepared": {
			"Its own time says when the gang may preempt again.",
			preemption.State{Phase: preemption.Freed},
			preemption.Facts{Now: start, Applies: true, Unprepared: start.Add(time.Hour)},
			preemption.Unprepared,
			preemption.State{Phase: preemption.Idle, Since: start},
		},
		"NeverVerified": {
			"An outdated plan is searched for again.",
			preemption.State{Phase: preemption.Planned},
			preemption.Facts{Now: start, Applies: true},
			preemption.Outdated,
			preemption.State{Phase: preemption.Idle, Since: start, Outdated: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, cause := tc.state.Released(tc.facts)
			if diff := cmp.Diff(tc.want, got); diff != "" || cause != tc.cause {
				t.Errorf("%s\nThe cause is %v, want %v; the state differs (-want +got):\n%s", tc.reason, cause, tc.cause, diff)
			}
		})
	}
}

func TestLimitsGrow(t *testing.T) {
	s := preemption.State{}
	var budgets []time.Duration
	for range 6 {
		budgets = append(budgets, s.Budget())
		s = s.Exceeded(start)
	}
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	if diff := cmp.Diff(want, budgets); diff != "" {
		t.Errorf("A search that took too long has more time the next time, up to a minute (-want +got):\n%s", diff)
	}
	if s = s.Found(start); s.Budget() != preemption.FirstBudget {
		t.Errorf("After a search that succeeded, the budget is %s.", s.Budget())
	}
	s = preemption.State{}
	for range preemption.MaxVerifications - 1 {
		if s = s.Rejected(start); s.Phase != preemption.Idle {
			t.Fatalf("An outdated plan is searched for again, but the phase is %v.", s.Phase)
		}
	}
	if s = s.Rejected(start); s.Phase != preemption.BackedOff {
		t.Errorf("After %d outdated plans the gang backs off, but the phase is %v.", preemption.MaxVerifications, s.Phase)
	}
	s = in(preemption.Evicted)
	late := start.Add(time.Hour)
	for range 4 {
		next, final := s.Failed(late)
		if s = next; final {
			t.Fatal("An action has its time from the first error on, however long the phase takes.")
		}
	}
	s = s.Did(preemption.Renew, late)
	if _, final := s.Failed(late.Add(preemption.RetryTimeout + 1)); !final {
		t.Error("An action that fails for longer than the limit is given up, however often the gang is edited.")
	}
	s = s.Did(preemption.RecordAgain, late)
	if _, final := s.Failed(late.Add(preemption.RetryTimeout + 1)); final {
		t.Error("After a success, an error is the first one.")
	}
}

// An edit ends a back-off and a delay, and nothing that is under way.
func TestEdited(t *testing.T) {
	cases := map[string]struct {
		reason      string
		state, want preemption.State
	}{
		"BackedOff": {
			"A group that was edited is another problem.",
			preemption.State{Phase: preemption.BackedOff, Until: start.Add(time.Minute), Failures: 5, Slow: 2},
			preemption.State{Slow: 2},
		},
		"Delayed": {"The delay may be another one.", preemption.State{}.Delay(start.Add(time.Hour)), preemption.State{}},
		"Evicted": {"The room is verified again.", in(preemption.Evicted), in(preemption.Evicted)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.state.Edited()); diff != "" {
				t.Errorf("%s\nThe state differs (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Whatever happens in whatever order: nothing is evicted before it is recorded and
// nominated, room is never kept forever, and a gang that is placed or deleted holds no
// room.
func TestRandomWalks(t *testing.T) {
	for seed := range uint64(2000) {
		walk(t, rand.New(rand.NewPCG(seed, seed)))
	}
}

func walk(t *testing.T, random *rand.Rand) {
	t.Helper()
	var s preemption.State
	var done []preemption.Action
	f := preemption.Facts{Now: start, Applies: true}
	for range 60 {
		f.Now = f.Now.Add(time.Duration(random.IntN(12)) * time.Second)
		f.Unplaced, f.Placed, f.Applies = random.IntN(3) > 0, random.IntN(20) == 0, random.IntN(15) > 0
		f.Victims, f.Stuck = random.IntN(3), nil
		f.Incomplete, f.Changed, f.Unrecorded = random.IntN(10) == 0, random.IntN(10) == 0, random.IntN(10) == 0
		state, action, at := s.Next(f)
		if s = state; action == preemption.Wait && s.Phase >= preemption.Planned && at.IsZero() {
			t.Fatalf("In phase %v it waits forever after %v.", s.Phase, done)
		}
		switch action {
		case preemption.Search:
			done = nil
			if s = s.Found(f.Now); random.IntN(4) > 0 {
				s = s.Verified(f.Now)
			}
		case preemption.Record, preemption.Nominate, preemption.Evict:
			if random.IntN(5) == 0 {
				s, _ = s.Failed(f.Now)

				break
			}
			done = append(done, action)
			s = s.Did(action, f.Now)
		case preemption.Renew, preemption.RecordAgain:
			if len(done) < 3 {
				t.Fatalf("A plan is renewed after %v.", done)
			}
			if s = s.Did(action, f.Now); random.IntN(2) == 0 {
				f.Applies = false
				s, _ = s.Released(f)
			}
		case preemption.Release:
			s, _ = s.Released(f)
			if s.Phase != preemption.Idle && s.Phase != preemption.BackedOff {
				t.Fatalf("After a release the phase is %v.", s.Phase)
			}
		case preemption.Wait:
			if (f.Placed || !f.Applies) && s.Phase != preemption.Idle {
				t.Fatalf("A gang that is placed or deleted is in phase %v.", s.Phase)
			}
		}
		want := []preemption.Action{preemption.Record, preemption.Nominate, preemption.Evict}
		if len(done) > len(want) || !cmp.Equal(done, want[:len(done)], cmp.Comparer(func(a, b []preemption.Action) bool {
			return len(a) == len(b) && (len(a) == 0 || a[len(a)-1] == b[len(b)-1])
		})) {
			t.Fatalf("The actions were %v.", done)
		}
	}
}

// A gang for which no search can help is not searched for at every event.
func TestPause(t *testing.T) {
	s := preemption.State{}.Pause(start, 50*time.Millisecond)
	f := preemption.Facts{Now: start, Applies: true, Unplaced: true}
	if _, action, at := s.Next(f); action != preemption.Wait || !at.Equal(start.Add(time.Second)) {
		t.Errorf("The action is %v until %v.", action, at)
	}
	f.Now = start.Add(time.Second)
	if _, action, _ := s.Next(f); action != preemption.Search {
		t.Errorf("After the pause the action is %v.", action)
	}
}
