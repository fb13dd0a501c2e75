package ipam_test

import (
	"iter"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

const (
	low, all = 0b0011, 0b1111
)

func root(specs ...uint8) poolSlot                    { return poolSlot{parent: -1, specs: specs} }
func child(parent int, specs ...uint8) poolSlot       { return poolSlot{parent: parent, specs: specs} }
func poolOfClaim(parent int, specs ...uint8) poolSlot { return poolSlot{parent, specs, true} }

func sub(of int, mask uint8) subSlot { return subSlot{pool: of, backs: -1, mask: mask} }
func stored(of int, mask uint8) subSlot {
	return subSlot{pool: of, backs: -1, mask: mask, stored: true}
}
func backs(of, child int, mask uint8) subSlot { return subSlot{pool: of, backs: child, mask: mask} }
func of(cluster string, s subSlot) subSlot {
	s.cluster = cluster

	return s
}

func parentAndChild(ops uint8) world {
	return world{pools: []poolSlot{root(low), child(0, 1)}, subs: []subSlot{backs(0, 1, 1), sub(0, 1), sub(1, 1)}, ops: ops}
}

func poolClaim(ops uint8) world {
	return world{pools: []poolSlot{root(low), poolOfClaim(0, 1)}, subs: []subSlot{backs(0, 1, 1), sub(0, 1), sub(1, 1)}, ops: ops}
}

func usedChild(ops uint8) world {
	return world{pools: []poolSlot{root(low), child(0, 1)}, subs: []subSlot{backs(0, 1, 1), sub(0, 1), stored(1, 1)}, used: true, ops: ops}
}

func forcedChild(ops uint8) world {
	w := parentAndChild(ops)
	w.force = true

	return w
}

var worlds = map[string]func() world{
	"EqualRoots": func() world {
		return world{pools: []poolSlot{root(low), root(low)}, subs: []subSlot{sub(0, 1), sub(1, 1)}, ops: 3}
	},
	"RootsThatGrow": func() world {
		return world{pools: []poolSlot{root(1, all), root(2, low)}, subs: []subSlot{sub(0, 2), sub(1, 2)}, ops: 3}
	},
	"RootsThatMove": func() world {
		return world{pools: []poolSlot{root(1, 4), root(2, 4)}, subs: []subSlot{sub(0, 4), sub(1, 4), sub(0, 1)}, ops: 2}
	},
	"ThreeRoots": func() world {
		return world{pools: []poolSlot{root(1), root(low), root(low)}, subs: []subSlot{sub(1, 2), sub(2, 2)}, ops: 1}
	},
	"Chain": func() world {
		return world{pools: []poolSlot{root(1), root(low), root(2)}, ops: 2}
	},
	"Shrink": func() world {
		return world{pools: []poolSlot{root(low, 1)}, subs: []subSlot{sub(0, 2), sub(0, low)}, ops: 4}
	},
	"Child": func() world { return parentAndChild(2) },
	"ChildThatGrows": func() world {
		return world{pools: []poolSlot{root(low), child(0, 1, low)}, subs: []subSlot{backs(0, 1, 1), sub(0, 2), sub(1, 2)}, ops: 2}
	},
	"ChildAndParentResized": func() world {
		return world{pools: []poolSlot{root(low, 1, 2), child(0, 1, 2)}, subs: []subSlot{backs(0, 1, 1), sub(0, 2)}, ops: 3}
	},
	"ChildThatGrowsInItsBlock": func() world {
		return world{pools: []poolSlot{root(all), child(0, 1, low)}, subs: []subSlot{backs(0, 1, low), sub(0, 2), sub(1, 2)}, ops: 2}
	},
	"ThreeLevels": func() world {
		return world{pools: []poolSlot{root(low), child(0, 1), child(1, 1)}, subs: []subSlot{backs(0, 1, 1), backs(1, 2, 1), sub(2, 1), sub(0, 1)}}
	},
	"RootNextToFamily": func() world {
		return world{pools: []poolSlot{root(low, 2), child(0, 1), root(1)}, subs: []subSlot{backs(0, 1, 1), sub(1, 1), sub(2, 1)}, ops: 1}
	},
	"PoolClaim": func() world { return poolClaim(3) },
	"Cluster": func() world {
		return world{pools: []poolSlot{root(low)}, subs: []subSlot{of("c", sub(0, 1)), of("c", sub(0, 2)), of("c", sub(0, 2))}, ops: 2}
	},
	"UsedRoots": func() world {
		return world{pools: []poolSlot{root(low, 2), root(low)}, subs: []subSlot{sub(0, 1), stored(1, 1), stored(0, 2)}, used: true, ops: 3}
	},
	"ForcedRoot": func() world {
		return world{pools: []poolSlot{root(low, 2), root(low)}, subs: []subSlot{sub(0, 1), sub(1, 1)}, force: true, ops: 3}
	},
	"ForcedChild": func() world { return forcedChild(2) },
	"UsedShrunk": func() world {
		return world{pools: []poolSlot{root(low, 2), root(1)}, subs: []subSlot{stored(0, 1), sub(1, 1)}, used: true, ops: 3}
	},
	"UsedChild": func() world { return usedChild(2) },
	"UsedChildOfTwo": func() world {
		return world{pools: []poolSlot{root(low, 2), child(0, 1), root(low)}, subs: []subSlot{backs(0, 1, 1), sub(2, 1), stored(1, 1)}, used: true, ops: 1}
	},
}

// No order of events gives two owners the same addresses, and in no end state
// something waits for what is free.
func TestPoolWalk(t *testing.T) {
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			x := explore(w(), decisions())
			if x.found != "" || x.ends == 0 {
				t.Errorf("%d end states; found %s", x.ends, x.found)
			}
			t.Logf("%d states, %d of them end states, %d views, %s", len(x.states), x.ends, len(x.looks), time.Since(began).Round(time.Millisecond))
		})
	}
}

// withFacts breaks Open by a change of its facts.
func withFacts(change func(p *v1alpha1.SubnetPool, f *ipam.PoolFacts)) rules {
	r := decisions()
	r.open = func(p *v1alpha1.SubnetPool, f ipam.PoolFacts) ipam.PoolDecision {
		f.Others = slices.Clone(f.Others)
		change(p, &f)

		return ipam.DecidePool(p, f)
	}

	return r
}

// withPool breaks Decide by a change of the pool.
func withPool(change func(*ipam.PoolRanges)) rules {
	r := decisions()
	r.decide = func(b ipam.SubnetFacts, p *ipam.PoolRanges, others iter.Seq[ipam.SubnetFacts]) ipam.SubnetDecision {
		if p != nil {
			p = new(*p)
			change(p)
		}

		return ipam.DecideSubnet(b, p, others)
	}

	return r
}

func with(change func(*rules)) rules {
	r := decisions()
	change(&r)

	return r
}

// The walk finds what is wrong with rules that leave something out.
func TestEveryPoolClauseIsNeeded(t *testing.T) {
	cases := map[string]struct {
		reason string
		world  world
		rules  rules
	}{
		"R1a": {
			"A range that another pool has counts, also if that pool asks for another by now.", worlds["RootsThatMove"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) {
				for i := range f.Others {
					f.Others[i].Open = ipam.OtherPool{}.Open
				}
			}),
		},
		"R1b": {
			"Of two candidates the older one is served.", worlds["EqualRoots"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) {
				for i := range f.Others {
					f.Others[i].Candidate = false
				}
			}),
		},
		"R2Reentry": {
			"A pool that has lost must get a new version before it is opened.", worlds["Chain"](),
			withFacts(func(p *v1alpha1.SubnetPool, _ *ipam.PoolFacts) { p.Status.Lost = 0 }),
		},
		"R2Absent": {
			"A pool that has lost must not block other pools.", worlds["Chain"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) {
				for i := range f.Others {
					f.Others[i].Candidate = f.Others[i].Spec != f.Others[i].Open
				}
			}),
		},
		"R3Block": {
			"A child stays inside of its block.", worlds["ChildThatGrows"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) {
				if f.Backing.Prefix.IsValid() {
					f.Backing.Prefix = anywhere.Spec
				}
			}),
		},
		"R3Subnet": {
			"A child needs a backing Subnet.", parentAndChild(0),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) { f.Backing.Prefix = anywhere.Spec }),
		},
		"R3Protection":      {"A backing Subnet must not vanish.", parentAndChild(1), with(func(r *rules) { r.unprotected = true })},
		"R3ProtectionClaim": {"Nor must that of a SubnetPoolClaim.", poolClaim(1), with(func(r *rules) { r.unprotected = true })},
		"R3Binding":         {"A backing Subnet belongs to one incarnation of a pool.", parentAndChild(3), with(func(r *rules) { r.shared = true })},
		"R4Live":            {"The manager reads the pool after it has the Subnet.", worlds["Shrink"](), with(func(r *rules) { r.cached = true })},
		"R4Deleting":        {"Nothing is allocated in a pool that is being deleted.", worlds["EqualRoots"](), withPool(func(p *ipam.PoolRanges) { p.Deleting = false })},
		"R4SpecOnly":        {"The requested range is not the range that the pool has.", worlds["EqualRoots"](), withPool(func(p *ipam.PoolRanges) { p.Open = p.Spec })},
		"R4StatusOnly":      {"Addresses that are no longer requested are about to be given up.", worlds["Shrink"](), withPool(func(p *ipam.PoolRanges) { p.Spec = p.Open })},
		"R5List": {
			"Addresses are given up only after a live list.", worlds["Shrink"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) { f.Outside = ipam.SubnetListing{Live: true} }),
		},
		"R5Live": {
			"Such a list must not come from a cache.", worlds["Shrink"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) { f.Outside.Live = true }),
		},
		"R5Opening": {
			"Also when a pool of a name that Subnets use is opened.", worlds["ForcedRoot"](),
			withFacts(func(p *v1alpha1.SubnetPool, f *ipam.PoolFacts) {
				if p.Open() == "" {
					f.Outside = ipam.SubnetListing{Live: true}
				}
			}),
		},
		"Orphans": {
			"A pool that was removed by force leaves Subnets.", worlds["ForcedRoot"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) { f.Strays = nil }),
		},
		"R3ReleaseOrder": {"They are listed after the child is known to be gone.", forcedChild(2), with(func(r *rules) { r.listsFirst = true })},
		"R3Release":      {"A backing Subnet stays while Subnets of the child do.", forcedChild(2), with(func(r *rules) { r.releases = true })},
		"U2": {
			"A pool that was in use before pools were opened blocks other pools.", worlds["UsedRoots"](),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) { f.Strays = nil }),
		},
		"U2Subnets": {
			"The Subnets of such a pool count, not its present spec.cidr.", worlds["UsedShrunk"](),
			withFacts(func(p *v1alpha1.SubnetPool, f *ipam.PoolFacts) {
				f.Strays = slices.DeleteFunc(slices.Clone(f.Strays), func(s ipam.StraySubnet) bool {
					return !slices.ContainsFunc(f.Others, func(o ipam.OtherPool) bool {
						return o.Name == s.Pool && o.Spec.Overlaps(netip.MustParsePrefix(p.Spec.CIDR))
					})
				})
			}),
		},
		"U3": {
			"So does a child pool without a backing Subnet.", usedChild(0),
			withFacts(func(_ *v1alpha1.SubnetPool, f *ipam.PoolFacts) { f.Strays = nil }),
		},
		"Unconditional": {"A decision is about one version.", worlds["EqualRoots"](), with(func(r *rules) { r.unconditional = true })},
		"ClusterID": {
			"A pool has one block for each clusterID.", worlds["Cluster"](),
			with(func(r *rules) {
				r.decide = func(b ipam.SubnetFacts, p *ipam.PoolRanges, others iter.Seq[ipam.SubnetFacts]) ipam.SubnetDecision {
					b.Claimed = false

					return ipam.DecideSubnet(b, p, others)
				}
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := explore(tc.world, tc.rules)
			if x.found == "" {
				t.Errorf("%s\nnothing found in %d states", tc.reason, len(x.states))
			} else {
				t.Logf("%d states: %s", len(x.states), x.found)
			}
		})
	}
}
