package ipamcache

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
)

// Events at the same time, from any side, wake a pool once, by its namespace and
// name, and each event is counted.
func TestEventsCoalesce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.pool(Created, nil, eventPool("p", "10.0.0.0/16", ""))
		w.quiet()

		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				w.subnet(Created, nil, eventSubnet(i))
				w.subnet(Deleted, toolscache.DeletedFinalStateUnknown{Key: "ns/x", Obj: eventSubnet(i)}, nil)
			})
		}
		wg.Wait()
		if got := drain(w.everything); len(got) != 1 || got[0] != "p" {
			t.Errorf("woken are %v, want p once", got)
		}
		if w.seen[Created] != 100 || w.seen[Deleted] != 100 {
			t.Errorf("counted are %v, want 100 of each", w.seen)
		}
		if figures := w.pools.Figures(key, 1); figures.All.Len() != 0 {
			t.Errorf("%d are left", figures.All.Len())
		}
	})
}

// A Subnet and a child pool that are deleted within the time that is gathered wake
// the parent once; later than that, twice.
func TestTogether(t *testing.T) {
	for apart, want := range map[time.Duration]int{gather / 2: 1, 2 * gather: 2} {
		inBubble(t, func(w *world) {
			child := eventPool("child", "10.0.128.0/17", "p")
			w.pool(Created, nil, eventPool("p", "10.0.0.0/16", ""))
			w.pool(Created, nil, child)
			w.subnet(Created, nil, eventSubnet(1))
			w.quiet()

			parents := 0
			w.subnet(Deleted, eventSubnet(1), nil)
			w.pool(Updated, child, with(child, func(p *v1alpha1.SubnetPool) { p.DeletionTimestamp = &metav1.Time{} }))
			time.Sleep(apart) //nolint:forbidigo // the clock of the bubble jumps
			for w.everything.Len() > 0 {
				r, _ := w.everything.Get()
				w.everything.Done(r)
				if r.Name == "p" {
					parents++
				}
			}
			w.pool(Deleted, child, nil)
			for _, name := range drain(w.everything) {
				if name == "p" {
					parents++
				}
			}
			if parents != want {
				t.Errorf("%s apart, the parent was woken %d times, want %d", apart, parents, want)
			}
		})
	}
}

// TestWakes covers which events wake which listeners.
func TestWakes(t *testing.T) {
	pool, subnet := eventPool("p", "10.0.0.0/16", ""), eventSubnet(1)
	child, sloppy := eventPool("child", "10.0.128.0/17", "p"), eventPool("sloppy", "010.0.128.0/17", "p")
	invalid := with(eventSubnet(9), func(s *v1alpha1.Subnet) { s.Spec.CIDR = "010.0.1.0/24" })
	phase := func(p v1alpha1.SubnetPhase) func(*v1alpha1.Subnet) {
		return func(s *v1alpha1.Subnet) { s.Status.Phase = p }
	}
	version := func(p *v1alpha1.SubnetPool) { p.ResourceVersion = "2"; p.Status.AllocatedCount = 7 }
	ours := func(f *Feed) { f.Wrote(key, "2") }

	cases := map[string]struct {
		reason      string
		first       func(f *Feed)
		before, now any
		everything  []string
		room        []string
	}{
		"Created":         {reason: "A new Subnet leaves less room.", now: eventSubnet(2), everything: []string{"p"}},
		"Judged":          {reason: "The status of a Subnet changes no figure.", before: subnet, now: with(subnet, phase(v1alpha1.SubnetAllocated))},
		"Failed":          {reason: "A Subnet that has failed is gone.", before: subnet, now: with(subnet, phase(v1alpha1.SubnetFailed)), everything: []string{"p"}, room: []string{"p"}},
		"Deleted":         {reason: "So is one that is deleted.", before: subnet, everything: []string{"p"}, room: []string{"p"}},
		"DeletedUnknown":  {reason: "Something waits for it even if it is in no ledger.", before: invalid, room: []string{"p"}},
		"FailedUnknown":   {reason: "Likewise.", before: invalid, now: with(invalid, phase(v1alpha1.SubnetFailed)), room: []string{"p"}},
		"ChildDeleted":    {reason: "A child pool leaves room in its parent.", before: child, everything: []string{"child", "p"}, room: []string{"child", "p"}},
		"SloppyDeleted":   {reason: "A parent waits for a child of any CIDR.", before: sloppy, everything: []string{"sloppy"}, room: []string{"p", "sloppy"}},
		"Echo":            {reason: "Our own status wakes no controller.", first: ours, before: pool, now: with(pool, version)},
		"Foreign":         {reason: "A status of another does.", before: pool, now: with(pool, version), everything: []string{"p"}, room: []string{"p"}},
		"EchoOpened":      {reason: "A pool that is open now is a chance for claims.", first: ours, before: pool, now: with(pool, func(p *v1alpha1.SubnetPool) { version(p); p.Status.UID, p.Status.CIDR = p.UID, p.Spec.CIDR }), everything: []string{"p"}, room: []string{"p"}},
		"EchoSpec":        {reason: "After a relist our version can hold a change of the spec.", first: ours, before: pool, now: with(pool, func(p *v1alpha1.SubnetPool) { version(p); p.Spec.CIDR = "10.0.0.0/17" }), everything: []string{"p"}, room: []string{"p"}},
		"EchoDeleting":    {reason: "Or a deletion.", first: ours, before: pool, now: with(pool, func(p *v1alpha1.SubnetPool) { version(p); p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), everything: []string{"p"}, room: []string{"p"}},
		"EchoAnnotations": {reason: "Or an annotation.", first: ours, before: pool, now: with(pool, func(p *v1alpha1.SubnetPool) { version(p); p.Annotations = map[string]string{"a": "b"} }), everything: []string{"p"}, room: []string{"p"}},
		"EchoManaged": {reason: "Each write changes managedFields.", first: ours, before: pool, now: with(pool, func(p *v1alpha1.SubnetPool) {
			version(p)
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		})},
		"OtherKind": {reason: "Something else is not taken for a Subnet.", now: &metav1.Status{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.pool(Created, nil, pool)
				w.pool(Created, nil, child)
				w.subnet(Created, nil, subnet)
				if tc.first != nil {
					tc.first(w.Feed)
				}
				w.quiet()
				w.subnet(Updated, tc.before, tc.now) // each handler ignores the objects of the other
				w.pool(Updated, tc.before, tc.now)
				got, want := [][]string{sorted(drain(w.everything)), sorted(drain(w.room))}, [][]string{tc.everything, tc.room}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestMoves covers that what changes its place is taken from where it was.
func TestMoves(t *testing.T) {
	subnet, child := eventSubnet(1), eventPool("child", "10.0.128.0/17", "p")
	labeled := with(child, func(p *v1alpha1.SubnetPool) {
		p.Spec.Parent, p.Labels = "", map[string]string{v1alpha1.ParentLabel: "p"}
	})
	uid := func(o metav1.Object) { o.SetUID("another") }

	cases := map[string]struct {
		reason      string
		before, now any
		p, q        []string
	}{
		"Stays":        {reason: "Nothing moves.", before: subnet, now: subnet, p: []string{"uid-1"}},
		"SubnetMoved":  {reason: "A Subnet of one name is in another pool after a relist.", before: subnet, now: with(subnet, func(s *v1alpha1.Subnet) { uid(s); s.Spec.PoolRef = "q" }), q: []string{"another"}},
		"SubnetAgain":  {reason: "It was deleted and created.", before: subnet, now: with(subnet, func(s *v1alpha1.Subnet) { uid(s) }), p: []string{"another"}},
		"ChildAgain":   {reason: "So was a pool.", before: child, now: with(child, func(p *v1alpha1.SubnetPool) { uid(p) }), p: []string{"pool/another"}},
		"LabelChanged": {reason: "A pool that is not open follows its label.", before: labeled, now: with(labeled, func(p *v1alpha1.SubnetPool) { p.Labels[v1alpha1.ParentLabel] = "q" }), q: []string{"pool/uid-child"}},
		"LabelRemoved": {reason: "Also to nowhere.", before: labeled, now: with(labeled, func(p *v1alpha1.SubnetPool) { p.Labels = nil })},
		"Refused":      {reason: "A pool that is refused takes nothing.", before: child, now: with(child, func(p *v1alpha1.SubnetPool) { p.Status.Lost = 1 })},
		"Open": {reason: "An open pool keeps what it has.", before: child, now: with(child, func(p *v1alpha1.SubnetPool) {
			p.Status = v1alpha1.SubnetPoolStatus{UID: p.UID, CIDR: p.Spec.CIDR, Parent: "p", Lost: 1}
			p.Labels = map[string]string{v1alpha1.ParentLabel: "q"}
		}), p: []string{"pool/uid-child"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := NewFeed(NewPools(), func(string) {})
			for _, handle := range []func(kind string, before, now any){f.subnet, f.pool} {
				handle(Created, nil, tc.before)
				handle(Updated, tc.before, tc.now)
			}
			got := [][]string{ids(f, key), ids(f, types.NamespacedName{Namespace: "ns", Name: "q"})}
			if diff := cmp.Diff([][]string{tc.p, tc.q}, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// ids returns the IDs of the blocks of a pool.
func ids(f *Feed, pool types.NamespacedName) []string {
	var found []string
	f.pools.in(pool, func(p *ledger.Pool) {
		p.SetRange(space)
		figures := p.Figures(10)
		for _, b := range figures.First {
			found = append(found, b.ID)
		}
		// Delegated blocks are not listed, but they are in the way of others.
		for _, id := range []string{"pool/uid-child", "pool/another"} {
			if p.Drop(id) {
				found = append(found, id)
			}
		}
	})

	return found
}

// A pool that is older than what this process has written must not be taken for what
// is there: the event of that write wakes no controller.
func TestBehind(t *testing.T) {
	cases := map[string]struct {
		reason string
		wrote  string
		has    string
		want   bool
	}{
		"Nothing": {"Nothing was written here.", "", "7", false},
		"Older":   {"The cache has not seen it.", "10", "9", true},
		"Ours":    {"The cache has it.", "10", "10", false},
		"Newer":   {"Another client wrote after us.", "10", "11", false},
		"Strange": {"Of versions without an order nothing is known.", "b", "a", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := NewFeed(NewPools(), func(string) {})
			p := eventPool("p", "10.0.0.0/16", "")
			if tc.wrote != "" {
				f.Wrote(key, tc.wrote)
			}
			p.ResourceVersion = tc.has
			if got := f.Behind(p); got != tc.want {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
			f.Forget(key)
			if f.Behind(p) {
				t.Errorf("%s\nit remembers a pool that is gone", tc.reason)
			}
		})
	}
}

// Nothing is kept of pools that are gone.
func TestForgets(t *testing.T) {
	f := NewFeed(NewPools(), func(string) {})
	pool, subnet := eventPool("p", "10.0.0.0/16", ""), eventSubnet(1)
	f.subnet(Created, nil, subnet)
	f.pool(Created, nil, pool)
	f.Wrote(key, "2")
	f.pool(Deleted, pool, nil)
	f.subnet(Deleted, subnet, nil)
	f.subnet(Created, nil, with(subnet, func(s *v1alpha1.Subnet) { s.Status.Phase = v1alpha1.SubnetFailed }))
	if len(f.pools.keys()) != 0 || len(f.ours) != 0 || len(f.arrivals) != 0 {
		t.Errorf("kept are %v, %v, %v", f.pools.keys(), f.ours, f.arrivals)
	}
}

func TestLastArrival(t *testing.T) {
	inBubble(t, func(w *world) {
		begin := time.Now()
		w.pool(Created, nil, eventPool("p", "10.0.0.0/16", ""))
		if got := w.LastArrival(key); !got.Equal(begin) {
			t.Errorf("without a Subnet it is %s, want the start %s", got, begin)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble jumps
		created := time.Now()
		w.subnet(Created, nil, eventSubnet(1))
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble jumps
		w.subnet(Updated, eventSubnet(1), with(eventSubnet(1), func(s *v1alpha1.Subnet) { s.Status.Phase = v1alpha1.SubnetAllocated }))
		if got := w.LastArrival(key); !got.Equal(created) {
			t.Errorf("it is %s, want %s", got, created)
		}
	})
}

// A claim whose Subnet has failed is reported, also if no watch has seen the Subnet
// before that.
func TestOnLost(t *testing.T) {
	f := NewFeed(NewPools(), func(string) {})
	var lost []types.NamespacedName
	f.OnLost(func(pool types.NamespacedName) { lost = append(lost, pool) })
	f.pool(Created, nil, with(eventPool("p", "10.0.0.0/16", ""), func(p *v1alpha1.SubnetPool) { p.Status.UID, p.Status.CIDR = p.UID, p.Spec.CIDR }))
	if _, err := f.pools.Reserve(key, ledger.Request{Claim: "u", Length: 24}, time.Now()); err != nil {
		t.Fatal(err)
	}
	s := with(eventSubnet(0), func(s *v1alpha1.Subnet) {
		s.Spec.ClaimRef, s.Status.Phase = &v1alpha1.ClaimReference{Name: "c", UID: "u"}, v1alpha1.SubnetFailed
	})
	f.pools.Created(key, "u", ledger.Block{ID: string(s.UID)})
	f.subnet(Created, nil, s)
	if len(lost) != 1 || f.pools.Serves(key, "u") {
		t.Errorf("lost are %v, and the claim is served: %t", lost, f.pools.Serves(key, "u"))
	}
	f.subnet(Updated, s, s)
	if len(lost) != 1 {
		t.Errorf("lost are %v", lost)
	}
}
