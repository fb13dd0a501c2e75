package release_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// The walk restores a backup into a simulated API server, with new UIDs. It uses the
// decisions of the product; restore_manager_test.go has the steps of the controllers
// around them. In every state, each object that is missing can arrive, the manager and the
// garbage collector can act, and users can do what the restoration allows. States that are
// equal are visited once, so a walk covers all orders.
//
// The caches of the manager are current here. Stale caches and late verdicts are walked in
// packages pool and subnet. A release, which deletes, can be late here, too: it is carried
// out in any state after the one that it was decided in, unless the Subnet has changed.
//
// No time passes. A grace period is over once the objects that it waits for have arrived.

// A restoration is how a backup comes back. The backup has the pool p with the blocks of
// the claims lab and a, in this order, and the pool lab, which the SubnetPoolClaim lab
// made of its block, with the second block for the claim c. So a claim that is served as
// a new one has another block, or that of another claim. A new claim, which the backup
// does not have, asks for a block of p while the objects come.
type restoration struct {
	form form
	// alphabetical means that the backup comes back as Velero restores it: SubnetClaims,
	// SubnetPoolClaims, SubnetPools, Subnets.
	alphabetical bool
	// missing are objects that the backup does not have, and alive those that still
	// exist, such as "claim/a", or "claim" for all of a kind. The Subnet of a claim
	// is called "subnet/" and the name of the claim.
	missing, alive []string
	// unrecorded are claims without a record: it was not written yet.
	unrecorded []string
	// newPool, newCIDR and newCluster are what the new claim has in its spec, if that is
	// not any block of p for a cluster of its own.
	newPool, newCIDR, newCluster string
	noNewClaim                   bool
	// byHand means that a user created the pool lab, so that there is no SubnetPoolClaim
	// and its Subnet is for no claim.
	byHand bool
	// twice is a claim that a user deletes and restores once more.
	twice string
	// quick means that the blocks were taken a moment before the restore, saw that the
	// manager has seen the deletion of the claims.
	quick, saw bool
	// reuseAfter means that freed blocks of p stay unused for some time.
	reuseAfter bool
	// every means that arrivals, and steps of the manager, can come between any two
	// steps of the manager. Otherwise the manager acts until nothing changes, after
	// any arrival or not.
	every bool
	// slow means that the rest of the backup can take longer than the grace period
	// once everything of a pool has arrived.
	slow bool
	// ended means that a user may run arbor pools restored once everything is there.
	ended bool
}

// Suffixes of UIDs: before the backup, restored, restored once more, and created by the
// manager.
const (
	beforeSuffix   = ".1"
	restoredSuffix = ".2"
	againSuffix    = ".3"
	madeSuffix     = ".made"
)

// A model is a restoration and the rules that it happens under.
type model struct {
	restoration

	rules    rules
	store    *store
	now      time.Time
	suffix   string
	had      map[string]string // blocks by claim
	start    objects
	arrivals []arrival
	// of are the arrivals of each pool: claims and Subnets of the backup.
	of map[string]uint16
	// backed are all arrivals of the backup.
	backed uint16
	// claimsOf are the slots of the claims of each pool.
	claimsOf map[string]uint32
}

// An arrival is an object that is going to be created.
type arrival struct {
	label  string
	object metav1.Object
	suffix string
	slot   int
	fresh  bool   // not of the backup
	after  uint16 // the arrivals that must come before
	again  bool   // after it was deleted
}

func newModel(r restoration, broken rules) *model {
	m := &model{restoration: r, store: newStore(), had: map[string]string{}, of: map[string]uint16{}, claimsOf: map[string]uint32{}}
	m.rules.owners = broken.owners
	m.now, m.suffix = backedUp, beforeSuffix
	if r.quick {
		m.now = restoredAt
	}
	before := m.before()
	m.rules, m.now, m.suffix = broken, restoredAt, madeSuffix
	for i, there := range before.objects {
		if there == 0 {
			continue
		}
		o := m.store.all[there]
		label := labelOf(o)
		if listed(r.alive, label) {
			m.start[i] = there
		} else if !listed(r.missing, label) {
			m.arrivals = append(m.arrivals, arrival{label: label, object: m.backup(o), suffix: restoredSuffix, slot: i})
		}
	}
	if r.twice != "" {
		c := before.claim(r.twice)
		m.arrivals = append(m.arrivals, arrival{label: "claim/" + r.twice + " again", object: m.backup(c), suffix: againSuffix, slot: m.store.slot(c), again: true})
	}
	if !r.noNewClaim {
		c := newClaim(fresh, root, 26)
		if r.newPool != "" {
			c = newClaim(fresh, r.newPool, 28)
		}
		if r.newCIDR != "" {
			c.Spec.BlockSize, c.Spec.RequestedCIDR = nil, r.newCIDR
		}
		if r.newCluster != "" {
			c.Spec.ClusterID = r.newCluster
		}
		m.arrivals = append(m.arrivals, arrival{label: "the new claim", object: c, suffix: restoredSuffix, slot: m.store.slot(c), fresh: true})
	}
	m.index()

	return m
}

// index notes what belongs to each pool.
func (m *model) index() {
	m.claimsOf[root] = 1<<m.store.slots["claim/a"] | 1<<m.store.slots["claim/"+lab]
	m.claimsOf[lab] = 1 << m.store.slots["claim/c"]
	for i, a := range m.arrivals {
		of := ""
		switch x := a.object.(type) {
		case *v1alpha1.SubnetClaim:
			of = x.Spec.PoolRef
			m.claimsOf[of] |= 1 << a.slot
		case *v1alpha1.Subnet:
			of = x.Spec.PoolRef
		}
		if a.fresh {
			continue
		}
		m.backed |= 1 << i
		for j, b := range m.arrivals {
			if m.alphabetical && !b.fresh && resourceOf(b.object) < resourceOf(a.object) {
				m.arrivals[i].after |= 1 << j
			}
		}
		if of != "" {
			m.of[of] |= 1 << i
		}
	}
}

// resourceOf returns the name of an object's resource, which Velero sorts by.
func resourceOf(o metav1.Object) string { return strings.ToLower(fmt.Sprintf("%Ts", o)) }

func labelOf(o metav1.Object) string {
	switch x := o.(type) {
	case *v1alpha1.SubnetPool:
		return "pool/" + x.Name
	case *v1alpha1.SubnetPoolClaim:
		return "poolclaim/" + x.Name
	case *v1alpha1.Subnet:
		if x.Spec.ClaimRef == nil {
			return "subnet/" + x.Spec.Backs.Name
		}

		return "subnet/" + x.Spec.ClaimRef.Name
	}

	return "claim/" + o.GetName()
}

// listed reports whether a list has an object or its kind.
func listed(list []string, label string) bool {
	kind, _, _ := strings.Cut(label, "/")

	return slices.Contains(list, label) || slices.Contains(list, kind)
}

func newClaim(name, pool string, length int32) *v1alpha1.SubnetClaim {
	return &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: network, Name: name, Generation: 1},
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: pool, ClusterID: "cluster-" + name, BlockSize: &length},
	}
}

// before lets the manager bind the claims of an empty cluster.
func (m *model) before() *server {
	s := &server{model: m}
	p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: network, Name: root}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/24"}}
	if m.reuseAfter {
		p.Spec.ReuseAfter = &metav1.Duration{Duration: time.Hour}
	}
	s.create(p)
	early := newClaim(fresh, lab, 28)
	for _, o := range []metav1.Object{m.madeLab(), newClaim("a", root, 26), early, newClaim("c", lab, 28)} {
		s.create(o)
		m.settle(s)
	}
	s.remove(early)
	m.settle(s)
	for _, name := range []string{"a", "c"} {
		m.had[name] = s.claim(name).Status.AllocatedCIDR
	}
	m.had[lab] = s.pool(lab).Open()

	return s
}

// madeLab returns what a user creates to have the pool lab.
func (m *model) madeLab() metav1.Object {
	meta := metav1.ObjectMeta{Namespace: network, Name: lab}
	if m.byHand {
		return &v1alpha1.SubnetPool{ObjectMeta: meta, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/26", Parent: root}}
	}

	return &v1alpha1.SubnetPoolClaim{ObjectMeta: meta, Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: root, DesiredBlockSize: 26}}
}

// settle lets the manager act until nothing changes.
func (m *model) settle(s *server) {
	for before := (objects{}); before != s.objects; {
		before = s.objects
		for _, st := range m.steps() {
			st.run(s)
		}
		for at := firstSubnet; at < m.store.used; at++ {
			if s.releasable(at) {
				s.remove(m.store.all[s.objects[at]])
			}
		}
	}
}

// backup returns an object as the backup has it.
func (m *model) backup(o metav1.Object) metav1.Object {
	o = copyOf(o)
	c, ok := o.(*v1alpha1.SubnetClaim)
	if ok && (m.rules.noRecord || slices.Contains(m.unrecorded, c.Name)) {
		delete(c.Annotations, v1alpha1.BlockAnnotation)
	}

	return o
}

// A step is what a controller does about one object. It reads only the slots of its
// mask, so what it does need not be computed again for each state.
type step struct {
	what string
	// about is the slot of the object, plus one. Without it there is nothing to do.
	about int
	mask  uint32
	// pool is the pool whose arrivals matter, all whether all arrivals do.
	pool string
	all  bool
	run  func(*server)
	memo map[input]objects
}

// comings are the creations of the objects that arrive.
func (m *model) comings() []step {
	all := make([]step, len(m.arrivals))
	for i, a := range m.arrivals {
		mask := uint32(1) << a.slot
		if o, ok := a.object.(*v1alpha1.Subnet); ok {
			mask |= m.store.taken[o.Spec.PoolRef]
		}
		all[i] = step{what: a.label, mask: mask, run: func(s *server) { s.restore(a.object, m.form, a.suffix) }}
	}

	return all
}

// steps are those of the manager, without releases.
func (m *model) steps() []step {
	claimAt := func(name string) uint32 { return 1 << m.store.slots["claim/"+name] }
	pools := map[string]uint32{root: 1 << rootSlot, lab: 1 << labSlot}
	slots := map[string]int{root: rootSlot, lab: labSlot}
	both := pools[root] | pools[lab]
	var all []step
	for _, name := range []string{root, lab} {
		all = append(all,
			step{"guard pool " + name, slots[name] + 1, both | m.claimsOf[name] | m.store.taken[root], name, false, func(s *server) { s.guard(name) }, nil},
			step{"judge pool " + name, slots[name] + 1, both | m.store.taken[root] | m.store.taken[name], "", false, func(s *server) { s.poolStatus(name) }, nil},
			step{"end the restore of pool " + name, slots[name] + 1, pools[name], "", true, func(s *server) { s.endByUser(name) }, nil})
	}
	all = append(all, step{"serve the pool claim", poolClaimSlot + 1, both | 1<<poolClaimSlot | claimAt(lab), "", false, (*server).advance, nil})
	for at := firstClaim; at < firstSubnet; at++ {
		of := root
		if m.claimsOf[lab]>>at&1 == 1 {
			of = lab
		}
		name := m.claimName(at)
		all = append(all,
			step{"allocate for " + name, at + 1, both | m.claimsOf[of] | m.store.taken[of], "", false, func(s *server) {
				if c := s.claim(name); c != nil {
					s.allocate(c)
				}
			}, nil},
			step{"bind " + name, at + 1, 1<<at | m.store.taken[of], "", false, func(s *server) { s.bind(name) }, nil})
	}
	for at := firstSubnet; at < m.store.used; at++ {
		of := root
		if m.store.taken[lab]>>at&1 == 1 {
			of = lab
		}
		name := m.subnetName(at)
		all = append(all, step{"judge Subnet " + name, at + 1, both | m.claims() | m.store.taken[of], "", false, func(s *server) { s.reconcileSubnet(at) }, nil})
		if of == root {
			all = append(all, step{"release backing Subnet " + name, at + 1, both | m.claims() | m.store.taken[root] | m.store.taken[lab], "", false, func(s *server) { s.releaseBacking(at) }, nil})
		}
	}

	return all
}

func (m *model) claims() uint32 { return m.claimsOf[root] | m.claimsOf[lab] }

func (m *model) claimName(at int) string  { return m.nameOf(at, "claim/") }
func (m *model) subnetName(at int) string { return m.nameOf(at, "subnet/") }

func (m *model) nameOf(at int, kind string) string {
	for key, slot := range m.store.slots {
		if slot == at {
			return strings.TrimPrefix(key, kind)
		}
	}

	return ""
}

// A state is all that matters for what can still happen.
type state struct {
	objects objects
	arrived uint16
	// late are the Subnets whose release was decided in some state since they got
	// their resourceVersion, by slot.
	late uint32
	// deleted are the claims that users have deleted, by slot.
	deleted uint32
}

// A walk visits every state that can be reached.
type walk struct {
	*model

	states []state
	from   []int // the state before, and the step from there
	by     []string
	edges  [][2]int32
	ends   []int
	seen   map[state]int
	sets   map[uint16]bool // what had arrived, in any state
	plan   []step          // of the manager
	coming []step          // of the restore, by arrival
	known  int             // slots that the steps are for
	gone   map[input]bool  // whether a Subnet is released
	now    int             // the state that is expanded
	alone  bool            // nothing has changed it so far
	found  string          // what is wrong, and how it came about
}

// An input is what a step reads.
type input struct {
	objects         objects
	quiet, complete bool
	deleted         uint32
}

// explore walks until it finds something wrong, or has seen everything.
func explore(m *model) *walk {
	x := &walk{model: m, seen: map[state]int{}, sets: map[uint16]bool{}, gone: map[input]bool{}}
	x.add(state{objects: m.start}, "")
	for x.now = 0; x.now < len(x.states) && x.found == ""; x.now++ {
		s := x.states[x.now]
		x.alone = true
		x.plans()
		x.restores(s)
		x.users(s)
		if x.every {
			x.acts(s)
		} else {
			x.settles(s)
		}
		if x.alone {
			x.ends = append(x.ends, x.now)
			if found := x.wrongAtEnd(s); found != "" {
				x.fail("", found)
			}
		}
	}
	if x.found == "" {
		x.endless()
	}

	return x
}

// add notes a state.
func (x *walk) add(s state, by string) {
	if x.now < len(x.states) && s == x.states[x.now] {
		return
	}
	x.alone = false
	at, known := x.seen[s]
	if !known {
		at = len(x.states)
		x.seen[s] = at
		x.sets[s.arrived] = true
		x.states, x.from, x.by = append(x.states, s), append(x.from, x.now), append(x.by, by)
	}
	x.edges = append(x.edges, [2]int32{int32(x.now), int32(at)})
}

// fail notes what is wrong after a step from the state that is expanded.
func (x *walk) fail(step, found string) {
	if x.found != "" {
		return
	}
	var way []string
	if step != "" {
		way = append(way, step)
	}
	for at := x.now; at > 0; at = x.from[at] {
		way = append(way, x.by[at])
	}
	slices.Reverse(way)
	x.found = strings.Join(way, ", ") + ": " + found
}

// complete reports whether everything has arrived.
func (x *walk) complete(s state) bool { return s.arrived == 1<<len(x.arrivals)-1 }

// quiet reports whether everything of the backup that the restore of a pool waits for has
// arrived.
func (x *walk) quiet(s state, pool string) bool {
	of := x.backed
	if x.slow {
		of = x.of[pool]
	}

	return s.arrived&of == of
}

// server returns the API server in a state.
func (x *walk) server(s state) *server {
	return &server{model: x.model, objects: s.objects, complete: x.complete(s), deleted: s.deleted}
}

// restores creates the objects that have not arrived yet.
func (x *walk) restores(s state) {
	for i, a := range x.arrivals {
		if s.arrived>>i&1 == 1 || s.arrived&a.after != a.after || a.again && s.deleted>>a.slot&1 == 0 {
			continue
		}
		next := s
		next.arrived |= 1 << i
		o := x.do(s, &x.coming[i])
		x.add(x.write(next, o, a.label), a.label)
	}
}

// users deletes the claim that is restored twice.
func (x *walk) users(s state) {
	if x.twice == "" || s.deleted != 0 {
		return
	}
	on := x.server(s)
	if c := on.claim(x.twice); c != nil {
		next, by := s, "delete claim/"+x.twice
		next.deleted |= 1 << x.store.slot(c)
		on.remove(c)
		x.add(x.write(next, on.objects, by), by)
	}
}

// acts are single steps of the manager and of the garbage collector.
func (x *walk) acts(s state) {
	for i := range x.plan {
		st := &x.plan[i]
		if o := x.do(s, st); o != s.objects {
			x.add(x.write(s, o, st.what), st.what)
		}
	}
	for at := firstSubnet; at < x.store.used; at++ {
		if s.late>>at&1 == 1 {
			next, by := x.release(s, at)
			x.add(next, by)
		}
	}
	x.add(x.collect(s), "collect garbage")
}

// settles lets the manager and the garbage collector act until nothing changes.
func (x *walk) settles(s state) {
	x.add(x.collect(s), "collect garbage")
	const patience = 100
	next := s
	for round := range patience {
		x.plans()
		before := next
		for i := range x.plan {
			if o := x.do(next, &x.plan[i]); o != next.objects {
				next = x.write(next, o, x.plan[i].what)
			}
		}
		for at := firstSubnet; at < x.store.used; at++ {
			if next.late>>at&1 == 1 {
				next, _ = x.release(next, at)
			}
		}
		next = x.collect(next)
		if next == before {
			break
		}
		if round+1 == patience {
			x.fail("the manager acts", "it never comes to an end")
		}
	}
	if found := x.wrongReason(next); found != "" {
		x.fail("the manager acts", found)
	}
	x.add(next, "the manager acts")
}

// release deletes a Subnet whose release was decided.
func (x *walk) release(s state, at int) (state, string) {
	on := x.server(s)
	o, _ := get[*v1alpha1.Subnet](on, at)
	on.remove(o)
	by := "release Subnet " + o.Name

	return x.write(s, on.objects, by), by
}

// collect lets the garbage collector act.
func (x *walk) collect(s state) state {
	for _, there := range s.objects {
		if there != 0 && len(x.store.all[there].GetOwnerReferences()) > 0 {
			on := x.server(s)
			on.collectGarbage()

			return x.write(s, on.objects, "collect garbage")
		}
	}

	return s
}

// plans makes the steps. There are more when a Subnet has a new name.
func (x *walk) plans() {
	if x.known == x.store.used {
		return
	}
	x.known = x.store.used
	x.plan, x.coming = x.steps(), x.comings()
	for _, all := range [][]step{x.plan, x.coming} {
		for i := range all {
			all[i].memo = map[input]objects{}
		}
	}
}

// do returns what a step makes of a state.
func (x *walk) do(s state, st *step) objects {
	if st.about > 0 && s.objects[st.about-1] == 0 {
		return s.objects
	}
	in := input{objects: only(s.objects, st.mask), quiet: st.pool != "" && x.quiet(s, st.pool), complete: st.all && x.complete(s)}
	out, ok := st.memo[in]
	if !ok {
		on := &server{model: x.model, objects: in.objects, quiet: in.quiet, complete: in.complete}
		st.run(on)
		out = on.objects
		st.memo[in] = out
	}
	if out == in.objects {
		return s.objects
	}
	for i := range s.objects {
		if st.mask>>i&1 == 1 || out[i] != 0 {
			s.objects[i] = out[i]
		}
	}

	return s.objects
}

func only(o objects, mask uint32) objects {
	for i := range o {
		if mask>>i&1 == 0 {
			o[i] = 0
		}
	}

	return o
}

// write returns the state with other objects. What was decided about an object that has
// changed has no effect any more.
func (x *walk) write(s state, o objects, by string) state {
	if found := x.lost(s, o); found != "" {
		x.fail(by, found)
	}
	for at := firstSubnet; at < x.store.used; at++ {
		if o[at] != s.objects[at] && (!x.rules.releaseAnyVersion || o[at] == 0) {
			s.late &^= 1 << at
		}
	}
	s.objects = o
	x.decideReleases(&s)
	if found := x.wrong(s); found != "" {
		x.fail(by, found)
	}

	return s
}

// decideReleases notes the Subnets that a manager decides to release.
func (x *walk) decideReleases(s *state) {
	complete := x.complete(*s)
	for at := firstSubnet; at < x.store.used; at++ {
		if s.objects[at] == 0 || s.late>>at&1 == 1 {
			continue
		}
		mask := uint32(1<<rootSlot|1<<labSlot|1<<at) | x.store.taken[lab]
		if of := x.store.facts[s.objects[at]].claim; of >= 0 {
			mask |= 1 << of
		}
		in := input{objects: only(s.objects, mask), complete: complete, deleted: s.deleted}
		gone, ok := x.gone[in]
		if !ok {
			gone = (&server{model: x.model, objects: in.objects, complete: complete, deleted: s.deleted}).releasable(at)
			x.gone[in] = gone
		}
		if gone {
			s.late |= 1 << at
		}
	}
}

// endless finds a state from which no end can be reached.
func (x *walk) endless() {
	before := make([][]int32, len(x.states))
	for _, e := range x.edges {
		before[e[1]] = append(before[e[1]], e[0])
	}
	reaches := make([]bool, len(x.states))
	todo := slices.Clone(x.ends)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if reaches[at] {
			continue
		}
		reaches[at] = true
		for _, from := range before[at] {
			todo = append(todo, int(from))
		}
	}
	if at := slices.Index(reaches, false); at >= 0 {
		x.now = at
		x.fail("", "the manager never comes to an end")
	}
}
