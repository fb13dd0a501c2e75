package gang

import (
	"cmp"
	"math"
)

// fillAll fills up every set at and below i that is ok, from below.
func (r *run) fillAll(i int) (bool, error) {
	for _, child := range r.tree.Node(i).Children {
		if !r.ok[child] {
			continue
		}
		if ok, err := r.fillAll(child); err != nil || !ok {
			if err == nil {
				r.note(i, note{children: r.required[i] - 1, blocker: child})
			}

			return false, err
		}
	}

	return r.fill(i)
}

// fill brings a set whose children are satisfied up to its own minimum of
// pods. Further pods of satisfied leaves come first, because they take no more
// than what is missing, and then optional subgroups; if that is not enough,
// the other way round, because single pods may have taken the room of a
// subgroup. A false leaves what it has placed to be rolled back.
func (r *run) fill(i int) (bool, error) {
	if r.tree.Node(i).IsLeaf() || r.min[i] == 0 {
		return true, nil
	}
	missing := r.min[i] - r.bound[i] - r.filled[i]
	if missing <= 0 {
		return true, nil
	}
	begin := r.mark()
	_, misfit, err := r.singles(i, missing)
	if err == nil {
		err = r.optionals(i, begin.places+missing, true)
	}
	found := len(r.places) - begin.places
	if err != nil || found >= missing {
		return err == nil, err
	}
	r.note(i, note{room: r.filled[i], children: r.required[i], blocker: -1, misfit: misfit})
	r.rollback(begin)

	return r.quietly(func() (bool, error) {
		if err := r.optionals(i, begin.places+missing, false); err != nil {
			return false, err
		}
		_, _, err := r.singles(i, begin.places+missing-len(r.places))

		return err == nil && len(r.places) >= begin.places+missing, err
	})
}

// singles places up to limit surplus pods: at i if it is a leaf, otherwise at the satisfied leaves
// of the satisfied sets below. It returns how many found a place, and the first misfit.
func (r *run) singles(i, limit int) (found int, first *Misfit, err error) {
	for _, child := range r.tree.Node(i).Children {
		if !r.ok[child] {
			continue
		}
		more, misfit, err := r.singles(child, limit-found)
		if err != nil {
			return found, first, err
		}
		found += more
		first = cmp.Or(first, misfit)
	}
	for _, member := range r.waiting[i] {
		if found >= limit {
			break
		}
		if r.taken[member] {
			continue
		}
		ok, misfit, err := r.try(member)
		if err != nil {
			return found, first, err
		}
		if ok {
			found++
		}
		first = cmp.Or(first, misfit)
	}

	return found, first, nil
}

// optionals places subgroups that are not satisfied, each whole or not at all, in the satisfied
// sets at and below i, until there are so many places. With further, their surplus pods are placed
// too before it continues.
func (r *run) optionals(i, until int, further bool) error {
	for _, child := range r.tree.Node(i).Children {
		if len(r.places) >= until {
			return nil
		}
		before := r.ok[child]
		ok, err := r.attemptUnlessOk(child)
		if err == nil && ok && !before && further {
			_, _, err = r.singles(child, until-len(r.places))
		}
		if err == nil && ok {
			err = r.optionals(child, until, further)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

func (r *run) attemptUnlessOk(i int) (bool, error) {
	if r.ok[i] {
		return true, nil
	}

	return r.attempt(i, how{closed: true})
}

// extras places what the minimum does not need: first optional subgroups, then surplus pods. It
// continues for as long as that finds places, since a member that did not fit may fit next to one
// that was placed later. A second call adds nothing.
func (r *run) extras() error {
	before := len(r.places)
	if err := r.extraRound(); err != nil {
		return err
	}
	_, err := r.quietly(func() (bool, error) {
		for before < len(r.places) {
			before = len(r.places)
			if err := r.extraRound(); err != nil {
				return false, err
			}
		}

		return true, nil
	})

	return err
}

func (r *run) extraRound() error {
	if err := r.extraSets(r.tree.Root()); err != nil {
		return err
	}

	return r.extraPods(r.tree.Root())
}

func (r *run) extraSets(i int) error {
	for _, child := range r.tree.Node(i).Children {
		ok, err := r.whole(child)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := r.extraSets(child); err != nil {
			return err
		}
	}

	return nil
}

func (r *run) extraPods(i int) error {
	for _, child := range r.tree.Node(i).Children {
		if !r.ok[child] {
			continue
		}
		if err := r.extraPods(child); err != nil {
			return err
		}
	}
	if !r.tree.Node(i).IsLeaf() {
		return nil
	}
	_, misfit, err := r.singles(i, math.MaxInt)
	r.notes[i].misfit = misfit

	return err
}
