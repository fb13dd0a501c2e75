package synthesis_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

// A market has tenants whose compositions compete for slots. Programs of the tenant "hung"
// never end.
type market struct {
	*testing.T

	r       *rand.Rand
	slots   int
	tenants []string
	ledger  *synthesis.Ledger
	all     map[string]*enov1.Composition
	// turns is when each tenant got its last slot, and version the last resourceVersion.
	turns            map[string]int
	version, created int
	now              time.Time
}

func newMarket(t *testing.T, seed uint64, slots int, tenants ...string) *market {
	t.Helper()
	m := &market{
		T: t, r: rand.New(rand.NewPCG(seed, 3)), slots: slots, tenants: tenants, ledger: synthesis.NewLedger(),
		all: map[string]*enov1.Composition{}, turns: map[string]int{}, now: epoch,
	}
	m.ledger.SetSynthesizer(synthesizer())

	return m
}

// set stores a change of a composition.
func (m *market) set(c *enov1.Composition) {
	m.version++
	c.ResourceVersion = strconv.Itoa(m.version)
	m.all[c.Name] = c
	m.ledger.Set(c)
}

func (m *market) create(tenant string) {
	m.created++
	m.set(named(fmt.Sprintf("%s-%d", tenant, m.created), fresh, namespace(tenant)))
}

// finish ends the program of a composition.
func (m *market) finish(c *enov1.Composition) {
	c = c.DeepCopy()
	done := synthesis.Done{UUID: c.Status.InFlightSynthesis.UUID, Inputs: c.Status.InputRevisions}
	if c.Status.CurrentSynthesis != nil {
		done.BasedOn = c.Status.CurrentSynthesis.UUID
	}
	var ok bool
	if c.Status, ok = synthesis.Promote(&c.Status, done, m.now); !ok {
		m.Fatalf("cannot promote %+v", c.Status)
	}
	m.set(c)
}

// plan begins what the ledger plans, and returns it.
func (m *market) plan() []synthesis.Start {
	plan := m.ledger.Plan(synthesis.Limits{Concurrency: m.slots}, m.now)
	for _, s := range plan.Begin {
		c := s.Composition.DeepCopy()
		if !synthesis.Running(&c.Status) {
			m.ledger.Served(c.Namespace)
			m.turns[c.Namespace] = m.version + 1
		}
		c.Status = synthesis.Begin(s, fmt.Sprintf("u%d", m.version), m.now)
		m.set(c)
	}

	return plan.Begin
}

// inFlight counts syntheses by tenant, and all of them.
func (m *market) inFlight() (map[string]int, int) {
	count, sum := map[string]int{}, 0
	for _, c := range m.all {
		if synthesis.Running(&c.Status) {
			count[c.Namespace]++
			sum++
		}
	}

	return count, sum
}

// kept is how many slots only a tenant without synthesis in flight gets.
func (m *market) kept() int {
	if m.slots == 1 {
		return 0
	}

	return max(1, m.slots/5)
}

// slowly assigns slots one by one, and walks all compositions for each.
func (m *market) slowly() []string {
	count, sum := m.inFlight()
	var begun []string
	for free := m.slots - sum; ; free-- {
		var best *enov1.Composition
		for _, c := range m.all {
			_, ok := synthesis.Want(c, synthesizer())
			if !ok || synthesis.Running(&c.Status) || slices.Contains(begun, c.Name) || free <= 0 || free <= m.kept() && count[c.Namespace] > 0 {
				continue
			}
			if best == nil || m.before(count, c, best) {
				best = c
			}
		}
		if best == nil {
			return begun
		}
		begun = append(begun, best.Name)
		count[best.Namespace]++
	}
}

func (m *market) before(count map[string]int, a, b *enov1.Composition) bool {
	first, _ := synthesis.Want(a, synthesizer())
	second, _ := synthesis.Want(b, synthesizer())

	return cmp.Or(
		cmp.Compare(count[a.Namespace], count[b.Namespace]), cmp.Compare(m.turns[a.Namespace], m.turns[b.Namespace]),
		cmp.Compare(first.Cause, second.Cause), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	) < 0
}

// step has something happen at random.
func (m *market) step() {
	m.now = m.now.Add(time.Second)
	for range m.r.IntN(4) {
		m.create(m.tenants[m.r.IntN(len(m.tenants))])
	}
	for _, name := range slices.Sorted(maps.Keys(m.all)) {
		c := m.all[name]
		chance := m.r.IntN(60)
		switch {
		case chance < 20 && synthesis.Running(&c.Status) && c.Namespace != "hung":
			m.finish(c)
		case chance < 3:
			c = c.DeepCopy()
			c.Generation++
			m.set(c)
		case chance > 56:
			m.ledger.Remove(c.Namespace, c.Name, c.UID)
			delete(m.all, name)
		}
	}
}

// TestSlots compares the plan with that of the slow twin while compositions come, change and
// go, and checks what is promised to tenants.
func TestSlots(t *testing.T) {
	for seed := range uint64(60) {
		m := newMarket(t, seed, 1+int(seed)%12, "hung", "a", "b", "c", "d")
		for range 80 {
			m.step()
			want := m.slowly()
			var got []string
			for _, s := range m.plan() {
				if !synthesis.Running(&s.Composition.Status) {
					got = append(got, s.Composition.Name)
				}
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: -slow, +ledger:\n%s", seed, diff)
			}
			m.check(seed)
		}
	}
}

func (m *market) check(seed uint64) {
	count, sum := m.inFlight()
	if sum > m.slots {
		m.Fatalf("seed %d: %d syntheses are in flight, in %d slots", seed, sum, m.slots)
	}
	for tenant, n := range count {
		if n > max(1, m.slots-m.kept()) {
			m.Fatalf("seed %d: %s has %d of %d slots", seed, tenant, n, m.slots)
		}
	}
	for _, c := range m.all {
		_, wants := synthesis.Want(c, synthesizer())
		switch free := m.slots - sum; {
		case !wants || synthesis.Running(&c.Status):
		case free > m.kept():
			m.Fatalf("seed %d: %s waits, and %d slots are free", seed, c.Name, free)
		case free > 0 && count[c.Namespace] == 0:
			m.Fatalf("seed %d: %s waits, %d slots are free, and its tenant has none", seed, c.Name, free)
		}
	}
}

// TestTurns has more tenants than slots. The oldest one has most compositions and creates and
// deletes them all the time, and gets no more slots than the rest.
func TestTurns(t *testing.T) {
	tenants := []string{"a", "b", "c", "d", "e", "f", "g"}
	m := newMarket(t, 0, 3, tenants...)
	served := map[string]int{}
	for range 10 * len(tenants) {
		for _, tenant := range tenants {
			m.create(tenant)
		}
		for _, c := range m.all {
			if synthesis.Running(&c.Status) {
				m.finish(c)
			}
		}
		for _, s := range m.plan() {
			served[s.Composition.Namespace]++
		}
		for name, c := range m.all {
			if c.Namespace == "a" && !synthesis.Running(&c.Status) {
				m.ledger.Remove("a", name, c.UID)
				delete(m.all, name)
			}
		}
	}
	for _, tenant := range tenants {
		if n := served[tenant]; n < 29 || n > 31 {
			t.Errorf("of 210 syntheses, %s got %d: %v", tenant, n, served)
		}
	}
}
