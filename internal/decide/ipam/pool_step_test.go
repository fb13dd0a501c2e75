package ipam_test

import "slices"

// A step is something that happens to a pool or a Subnet.
type step struct {
	what string
	slot int
}

// A walk visits every state that can be reached.
type walk struct {
	*world

	rules  rules
	states []state
	from   []int // the state before, and the step from there
	steps  []step
	seen   map[state]bool
	looks  map[view]flags
	now    int // the state that is expanded
	alone  bool
	ends   int
	found  string
}

// A view is what conclusions depend on, and flags are the conclusions.
type view struct {
	objects

	backed [maxSubs]uint8
}

type flags struct {
	pools [maxPools]uint8
	subs  [maxSubs]uint8
}

// explore walks until it finds a collision, something that is stuck, or has seen
// everything.
func explore(w world, r rules) *walk {
	x := &walk{world: &w, rules: r, seen: map[state]bool{}, looks: map[view]flags{}}
	x.add(x.start(), step{})
	for x.now = 0; x.now < len(x.states) && x.found == ""; x.now++ {
		s := x.states[x.now]
		x.alone = true
		x.users(&s)
		x.managers(&s)
		if x.alone {
			x.ends++
			if found := w.stuck(&s.objects); found != "" {
				x.fail(x.now, found)
			}
		}
	}

	return x
}

func (x *walk) start() state {
	s := state{ops: x.ops}
	for i, slot := range x.pools {
		if x.used {
			s.pools[i] = poolState{there: true, finalizer: true, spec: slot.specs[0], version: uint8(i)}
			s.made[i] = 1
		}
		if slot.claim {
			s.claim = claimActive
		}
	}
	for k, slot := range x.subs {
		if slot.stored {
			s.subs[k] = subState{there: true, phase: allocated, version: uint8(k)}
			s.ever.created[k] = 1
		}
	}

	return s
}

// add notes a state, and what can be concluded from it.
func (x *walk) add(s state, by step) {
	x.look(&s)
	if x.now < len(x.states) && s == x.states[x.now] {
		return
	}
	x.alone = false
	if x.seen[s] {
		return
	}
	x.seen[s] = true
	x.states, x.from, x.steps = append(x.states, s), append(x.from, x.now), append(x.steps, by)
	if found := x.collision(&s.objects); found != "" && x.found == "" {
		x.fail(len(x.states)-1, found)
	}
}

func (x *walk) fail(at int, found string) {
	var way []step
	for ; at > 0; at = x.from[at] {
		way = append(way, x.steps[at])
	}
	slices.Reverse(way)
	x.found = trace(way) + ": " + found
}

func (x *walk) look(s *state) {
	for k, slot := range x.subs {
		if b := s.subs[k]; slot.backs >= 0 && b.there && b.phase == allocated {
			s.ever.block = s.ever.block || x.pools[slot.backs].claim
			if !b.deleting && b.bound > 0 {
				s.ever.backed[k] |= 1 << (b.bound - 1)
			}
		}
	}
	at := view{s.objects, s.ever.backed}
	f, ok := x.looks[at]
	if !ok {
		for i := range x.pools {
			if s.pools[i].there {
				f.pools[i] = x.poolFlags(&s.objects, &s.ever, i, x.rules)
			}
		}
		for k := range x.subs {
			f.subs[k] = x.subFlags(&s.objects, k, x.rules)
		}
		x.looks[at] = f
	}
	for i := range x.pools {
		s.poolSays[i] |= f.pools[i]
	}
	for k := range x.subs {
		if s.subs[k].there {
			s.subSays[k] |= x.ordered(s.subSays[k], f.subs[k])
		}
		if x.rules.cached && f.subs[k]&poolAllows != 0 {
			s.ever.allowed[k] = true
		}
	}
}

// ordered leaves out what is read too early: a guard lists the Subnets of a child
// pool after it knows that the pool is gone.
func (x *walk) ordered(before, now uint8) uint8 {
	if (before|now)&ownerGone == 0 && !x.rules.listsFirst {
		now &^= childFree
	}

	return now
}

// writePool stores a pool under a new version, or removes it.
func (x *walk) writePool(s state, i int, p poolState, what string) {
	p.version = uint8(len(x.pools))
	if !p.there {
		p = poolState{}
	}
	s.pools[i] = p
	if !x.rules.unconditional || !p.there {
		s.poolSays[i] = 0
	}
	rank(len(x.pools), func(i int) (bool, *uint8) { return s.pools[i].there, &s.pools[i].version })
	x.add(s, step{what, i})
}

// writeSub stores a Subnet under a new version, or removes it.
func (x *walk) writeSub(s state, k int, b subState, what string) {
	b.version = uint8(len(x.subs))
	if !b.there {
		b = subState{}
	}
	s.subs[k] = b
	if !x.rules.unconditional || !b.there {
		s.subSays[k] = 0
	}
	rank(len(x.subs), func(i int) (bool, *uint8) { return s.subs[i].there, &s.subs[i].version })
	x.add(s, step{what, k})
}

// rank replaces versions by their order: nothing depends on more.
func rank(n int, version func(int) (bool, *uint8)) {
	var order []int
	for i := range n {
		if there, _ := version(i); there {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		_, v := version(a)
		_, u := version(b)

		return int(*v) - int(*u)
	})
	for at, i := range order {
		_, v := version(i)
		*v = uint8(at)
	}
}

// users are the steps that users take.
func (x *walk) users(s *state) {
	n := *s
	if n.ops > 0 {
		n.ops--
		x.change(s, n)
	}
	for i, slot := range x.pools {
		if s.pools[i].there || slot.claim || s.made[i] > first && (s.ops == 0 || s.made[i] > second) {
			continue
		}
		from, specs := n, slot.specs
		if s.made[i] == 0 {
			from, specs = *s, specs[:1]
		}
		from.made[i]++
		for _, spec := range specs {
			x.writePool(from, i, poolState{there: true, spec: spec, inc: s.made[i]}, "create p")
		}
	}
	for k, slot := range x.subs {
		if s.subs[k].there || slot.backs >= 0 || s.ever.created[k] != 0 && s.ops == 0 {
			continue
		}
		from := n
		if s.ever.created[k] == 0 {
			from = *s
			from.ever.created[k] = 1
		}
		x.writeSub(from, k, subState{there: true}, "create s")
	}
}

// change are the operations of users on what exists; n is the state with one
// operation less.
func (x *walk) change(s *state, n state) {
	for i, slot := range x.pools {
		p := s.pools[i]
		if !p.there {
			continue
		}
		x.writePool(n, i, p, "touch p")
		if p.deleting {
			continue
		}
		x.writePool(n, i, deleted(p), "delete p")
		if x.force && !x.waiting(s, i) {
			x.writePool(n, i, poolState{}, "remove by force p")
		}
		for _, spec := range slot.specs {
			if spec != p.spec {
				resized := p
				resized.spec, resized.lost = spec, false
				x.writePool(n, i, resized, "resize p")
			}
		}
	}
	for k, slot := range x.subs {
		if b := s.subs[k]; b.there && !b.deleting {
			b.there = slot.backs >= 0 && !x.rules.unprotected
			b.deleting = true
			x.writeSub(n, k, b, "delete s")
		}
	}
	if s.claim == claimActive {
		n.claim = releasing
		x.add(n, step{"delete the pool claim ", 0})
	}
}

// waiting reports whether a Subnet of pool i has no phase. A decision on it may be on its way, and
// nothing protects a pool that is removed by force from that.
func (x *walk) waiting(s *state, i int) bool {
	for k, slot := range x.subs {
		if b := s.subs[k]; b.there && b.phase == pending && slot.pool == i {
			return true
		}
	}

	return false
}

// deleted is a pool after a deletion request.
func deleted(p poolState) poolState {
	p.deleting, p.there = true, p.finalizer

	return p
}

// managers are the steps that managers take.
func (x *walk) managers(s *state) {
	for i, slot := range x.pools {
		switch {
		case s.pools[i].there:
			x.decidePool(s, i)
		case slot.claim && s.ever.block && s.made[i] <= second:
			// By a controller that is as late as it likes.
			n := *s
			n.made[i]++
			x.writePool(n, i, poolState{there: true, spec: slot.specs[0], inc: s.made[i]}, "the pool claim creates p")
		}
	}
	for k := range x.subs {
		if s.subs[k].there {
			x.decideSub(s, k)
			x.guard(s, k)
		} else {
			x.back(s, k)
		}
	}
	if s.claim == releasing {
		n := *s
		n.claim = claimGone
		x.add(n, step{"the pool claim is deleted ", 0})
	}
	x.migrate(*s)
}

// decidePool writes decisions on a pool.
func (x *walk) decidePool(s *state, i int) {
	p, says := s.pools[i], s.poolSays[i]
	if p.deleting {
		if says&noSubnets != 0 && says&noChildren != 0 {
			x.writePool(*s, i, poolState{}, "release p")
		}

		return
	}
	if x.pools[i].claim && s.claim == releasing {
		x.writePool(*s, i, deleted(p), "the pool claim deletes p")
	}
	if p.open == p.spec {
		return
	}
	if says&grants != 0 || says&grantsIfFits != 0 && says&fits != 0 {
		granted := p
		granted.open, granted.lost, granted.finalizer = p.spec, false, true
		x.writePool(*s, i, granted, "open p")
	}
	if says&refuses != 0 && !p.lost {
		refused := p
		refused.lost = true
		x.writePool(*s, i, refused, "reject p")
	}
	if says&clears != 0 && p.lost {
		cleared := p
		cleared.lost = false
		x.writePool(*s, i, cleared, "clear p")
	}
}

// decideSub writes decisions on a Subnet.
func (x *walk) decideSub(s *state, k int) {
	b, says := s.subs[k], s.subSays[k]
	if b.phase != pending || b.deleting {
		return
	}
	allows := says&poolAllows != 0 || s.ever.allowed[k]
	if allows && says&wins != 0 {
		good := b
		good.phase, good.bound = allocated, b.named
		x.writeSub(*s, k, good, "allocate s")
	}
	if says&poolFails != 0 || allows && says&loses != 0 {
		b.phase = failedPhase
		x.writeSub(*s, k, b, "fail s")
	}
}

// back creates a Subnet that backs a pool, for any incarnation that a manager has
// seen.
func (x *walk) back(s *state, k int) {
	child := x.subs[k].backs
	if child < 0 {
		return
	}
	if x.pools[child].claim {
		if s.ever.created[k] == 0 {
			n := *s
			n.ever.created[k] = 1
			x.writeSub(n, k, subState{there: true}, "the pool claim creates s")
		}

		return
	}
	for inc := range s.made[child] {
		if s.ever.created[k]>>inc&1 == 0 {
			n := *s
			n.ever.created[k] |= 1 << inc
			x.writeSub(n, k, subState{there: true, named: inc + 1}, "back s")
		}
	}
}

// guard binds and releases a Subnet that backs a pool.
func (x *walk) guard(s *state, k int) {
	b, says := s.subs[k], s.subSays[k]
	child := x.subs[k].backs
	if child < 0 {
		return
	}
	if says&ownerGone != 0 && (says&childFree != 0 || x.rules.releases) && (!x.pools[child].claim || s.claim == claimGone) {
		x.writeSub(*s, k, subState{}, "release s")
	}
	if b.phase != allocated || b.deleting {
		return
	}
	for inc := range s.made[child] {
		if b.bound == 0 || b.bound != inc+1 && (says&ownerGone != 0 || x.rules.shared) {
			bound := b
			bound.bound = inc + 1
			x.writeSub(*s, k, bound, "bind s")
		}
	}
}

// migrate gives each child pool that is in use the Subnet that backs it, while no
// manager runs: all that was concluded before is forgotten.
func (x *walk) migrate(s state) {
	if !x.used || s.ever.moved {
		return
	}
	done := false
	for k, slot := range x.subs {
		b := s.subs[k]
		if slot.backs < 0 || !s.pools[slot.backs].there || !x.inUse(&s.objects, slot.backs) || b.there && (b.phase == allocated || b.deleting) || x.takenFrom(&s, slot) {
			continue
		}
		s.subs[k] = subState{there: true, phase: allocated, bound: s.pools[slot.backs].inc + 1, version: uint8(len(x.subs))}
		s.ever.created[k] = 0xff
		done = true
	}
	if !done {
		return
	}
	rank(len(x.subs), func(i int) (bool, *uint8) { return s.subs[i].there, &s.subs[i].version })
	s.poolSays, s.subSays, s.ever.backed, s.ever.moved = [maxPools]uint8{}, [maxSubs]uint8{}, [maxSubs]uint8{}, true
	x.add(s, step{"migrate ", 0})
}

// takenFrom reports whether a block is not free: it is not the parent's, or an
// Allocated Subnet has addresses of it.
func (x *walk) takenFrom(s *state, slot subSlot) bool {
	if p := s.pools[slot.pool]; slot.mask&^p.spec != 0 || p.open != 0 && slot.mask&^p.open != 0 {
		return true
	}
	for j, other := range x.subs {
		if o := s.subs[j]; o.there && o.phase == allocated && other.pool == slot.pool && other.mask&slot.mask != 0 {
			return true
		}
	}

	return false
}
