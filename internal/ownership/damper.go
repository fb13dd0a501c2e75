package ownership

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/fields"
)

// maxFights is how many objects are remembered.
const maxFights = 10_000

// A fight is over a scope of one object, with one manager.
type fight struct {
	uid     types.UID
	scope   string
	manager string
}

// A damper counts how often fields were moved from the same manager, and reports when that is too
// often.
type damper struct {
	rounds int
	memory time.Duration
	now    func() time.Time

	mu     sync.Mutex
	fights map[fight]round
}

type round struct {
	count int
	last  time.Time
}

// contested are the managers that had as many rounds as there are.
func (d *damper) contested(uid types.UID, scopes []fields.Scope, moves []fields.Move) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for _, f := range fightsOf(uid, scopes, moves) {
		if r := d.fights[f]; r.count >= d.rounds && d.now().Sub(r.last) < d.memory {
			names = append(names, f.manager)
		}
	}

	return names
}

// moved counts a round.
func (d *damper) moved(uid types.UID, scopes []fields.Scope, moves []fields.Move) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, f := range fightsOf(uid, scopes, moves) {
		r := d.fights[f]
		if now.Sub(r.last) >= d.memory {
			r.count = 0
		}
		d.fights[f] = round{count: r.count + 1, last: now}
	}
	if len(d.fights) > maxFights {
		d.forget(now)
	}
}

// forget drops what is over, or else the half that is longest ago.
func (d *damper) forget(now time.Time) {
	times := make([]time.Time, 0, len(d.fights))
	for _, r := range d.fights {
		times = append(times, r.last)
	}
	slices.SortFunc(times, time.Time.Compare)
	before := now.Add(-d.memory)
	if half := times[len(times)/2]; half.After(before) {
		before = half
	}
	for f, r := range d.fights {
		if !r.last.After(before) {
			delete(d.fights, f)
		}
	}
}

// fightsOf are those that the moves of a plan are rounds of.
func fightsOf(uid types.UID, scopes []fields.Scope, moves []fields.Move) []fight {
	texts := make([]string, len(scopes))
	for i, s := range scopes {
		texts[i] = s.String()
	}
	scope := strings.Join(texts, "\n")
	var all []fight
	var names []string
	for _, m := range moves {
		if name := m.From.Manager; name != "" && !slices.Contains(names, name) {
			names = insert(names, name)
		}
	}
	for _, name := range names {
		all = append(all, fight{uid: uid, scope: scope, manager: name})
	}

	return all
}
