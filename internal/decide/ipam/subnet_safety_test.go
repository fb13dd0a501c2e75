package ipam_test

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"testing"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

// A subnetWorld is an API server with a few Subnets, and every write that managers with old
// snapshots could still make.
//
// Managers need no state of their own. A decision on a Subnet comes from some snapshot that
// contains it in some version, and is written on condition of that version. So at any moment the
// writes that can still have an effect are the decisions from all states since the Subnet got its
// current version: any number of managers, each as slow as possible, and each deciding any number
// of times.
type subnetWorld struct {
	now      []object
	verdicts [][]v1alpha1.SubnetPhase // per Subnet, since its current version
	clock    int
}

// object is one Subnet: not there yet, there, or gone for good.
type object struct {
	block   ipam.SubnetFacts
	created bool
	touched bool
	gone    bool
}

func (o object) there() bool { return o.created && !o.gone }

// A decider is the decision under test, or a broken copy of it.
type decider func(b ipam.SubnetFacts, pool *ipam.PoolRanges, others iter.Seq[ipam.SubnetFacts]) ipam.SubnetDecision

// subnetRules are what the walk takes as given.
type subnetRules struct {
	decide decider
	// unconditional writes ignore the version that was decided on.
	unconditional bool
}

var everything = openedPool("10.0.0.0/8")

// look adds the decision on each Subnet that is in the present state.
func (w *subnetWorld) look(r subnetRules) {
	var there []ipam.SubnetFacts
	for _, o := range w.now {
		if o.there() {
			there = append(there, o.block)
		}
	}
	for i, o := range w.now {
		if !o.there() {
			continue
		}
		phase := r.decide(o.block, everything, slices.Values(there)).Phase
		if !slices.Contains(w.verdicts[i], phase) {
			w.verdicts[i] = append(w.verdicts[i], phase)
		}
	}
}

// write gives a Subnet a new version; decisions on the old one are void.
func (w *subnetWorld) write(r subnetRules, i int, change func(*object)) {
	w.clock++
	change(&w.now[i])
	w.now[i].block.Version = strconv.Itoa(w.clock)
	if !r.unconditional {
		w.verdicts[i] = nil
	}
}

func (w *subnetWorld) clone() *subnetWorld {
	c := &subnetWorld{now: slices.Clone(w.now), clock: w.clock}
	for _, v := range w.verdicts {
		c.verdicts = append(c.verdicts, slices.Clone(v))
	}

	return c
}

// number reads a version; a Subnet that was not created yet has none.
func number(version string) int {
	n, _ := strconv.Atoi(version)

	return n
}

// key is the same for worlds that are equivalent: versions matter by their order only.
func (w *subnetWorld) key() string {
	order := make([]int, len(w.now))
	for i := range w.now {
		for j := range w.now {
			if number(w.now[j].block.Version) < number(w.now[i].block.Version) {
				order[i]++
			}
		}
	}
	key := ""
	for i, o := range w.now {
		said := slices.Clone(w.verdicts[i])
		slices.Sort(said)
		key += fmt.Sprintf("%s %t %t %t %d %v;", o.block.Phase, o.created, o.touched, o.gone, order[i], said)
	}

	return key
}

// collision returns two Subnets that are in use and overlap.
func (w *subnetWorld) collision() string {
	for i, a := range w.now {
		for _, b := range w.now[i+1:] {
			if a.there() && b.there() && a.block.Phase == v1alpha1.SubnetAllocated && b.block.Phase == v1alpha1.SubnetAllocated && a.block.Prefix.Overlaps(b.block.Prefix) {
				return a.block.Name + " and " + b.block.Name
			}
		}
	}

	return ""
}

// A subnetWalk visits every world that can be reached.
type subnetWalk struct {
	rules subnetRules
	seen  map[string]bool
	found string // how to get to a collision
}

// next are all the things that can happen in a world.
func (s *subnetWalk) next(w *subnetWorld, path string) {
	if s.found != "" || s.seen[w.key()] {
		return
	}
	s.seen[w.key()] = true
	if c := w.collision(); c != "" {
		s.found = path + ": " + c

		return
	}
	for i, o := range w.now {
		switch {
		case !o.created:
			s.step(w, i, path+" create "+o.block.Name, func(o *object) { o.created = true })
		case o.there():
			if !o.touched {
				s.step(w, i, path+" touch "+o.block.Name, func(o *object) { o.touched = true })
			}
			s.step(w, i, path+" delete "+o.block.Name, func(o *object) { o.gone = true })
			for _, phase := range w.verdicts[i] {
				if phase != o.block.Phase {
					s.step(w, i, path+" "+o.block.Name+"="+string(phase), func(o *object) { o.block.Phase = phase })
				}
			}
		}
	}
}

func (s *subnetWalk) step(w *subnetWorld, i int, path string, change func(*object)) {
	n := w.clone()
	n.write(s.rules, i, change)
	n.look(s.rules)
	s.next(n, path)
}

func exploreSubnets(r subnetRules, prefixes []string) *subnetWalk {
	w := &subnetWorld{verdicts: make([][]v1alpha1.SubnetPhase, len(prefixes))}
	for i, p := range prefixes {
		w.now = append(w.now, object{block: subnetBlock(string(rune('a'+i)), p, v1alpha1.SubnetPending, 0)})
	}
	s := &subnetWalk{rules: r, seen: map[string]bool{}}
	s.next(w, "")

	return s
}

var layouts = map[string][]string{
	"TwoEqual":       {"10.0.0.0/24", "10.0.0.0/24"},
	"TwoSizes":       {"10.0.0.0/24", "10.0.0.0/25"},
	"ThreeEqual":     {"10.0.0.0/24", "10.0.0.0/24", "10.0.0.0/24"},
	"OneAroundTwo":   {"10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25"},
	"Nested":         {"10.0.0.0/23", "10.0.0.0/24", "10.0.0.0/25"},
	"OneIsInnocent":  {"10.0.0.0/24", "10.0.0.0/25", "10.0.1.0/24"},
	"ThreeInnocents": {"10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"},
}

// No order of creations, touches, deletions, looks and late writes makes two
// overlapping Subnets Allocated.
func TestAllocatedOnce(t *testing.T) {
	for name, prefixes := range layouts {
		t.Run(name, func(t *testing.T) {
			s := exploreSubnets(subnetRules{decide: ipam.DecideSubnet}, prefixes)
			if s.found != "" {
				t.Errorf("a collision:%s", s.found)
			}
			t.Logf("%d worlds", len(s.seen))
		})
	}
}

// The walk finds what is wrong with rules that leave something out; so it would
// have found it in ours.
func TestEverySubnetClauseIsNeeded(t *testing.T) {
	cases := map[string]struct {
		reason string
		rules  subnetRules
	}{
		"PendingIsIgnored": {
			reason: "Two managers that each see the other's block Pending must not both allow theirs.",
			rules: subnetRules{decide: func(b ipam.SubnetFacts, pool *ipam.PoolRanges, others iter.Seq[ipam.SubnetFacts]) ipam.SubnetDecision {
				return ipam.DecideSubnet(b, pool, func(yield func(ipam.SubnetFacts) bool) {
					for o := range others {
						if o.Phase == v1alpha1.SubnetAllocated && !yield(o) {
							return
						}
					}
				})
			}},
		},
		"NewerWins": {
			reason: "The order must be that of the server, not the reverse: a newer block can appear after the look.",
			rules: subnetRules{decide: func(b ipam.SubnetFacts, pool *ipam.PoolRanges, others iter.Seq[ipam.SubnetFacts]) ipam.SubnetDecision {
				b.Version = strconv.Itoa(1000 - number(b.Version))

				return ipam.DecideSubnet(b, pool, func(yield func(ipam.SubnetFacts) bool) {
					for o := range others {
						o.Version = strconv.Itoa(1000 - number(o.Version))
						if !yield(o) {
							return
						}
					}
				})
			}},
		},
		"Unconditional": {
			reason: "A decision on an old version must not be written: another block may have become older since.",
			rules:  subnetRules{decide: ipam.DecideSubnet, unconditional: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if s := exploreSubnets(tc.rules, layouts["TwoSizes"]); s.found == "" {
				t.Errorf("%s\nno collision in %d worlds", tc.reason, len(s.seen))
			} else {
				t.Logf("found:%s", s.found)
			}
		})
	}
}

// TestOneSubnetWins checks that, of blocks that overlap and are only created and decided on, one is
// allowed in the end: safety must not be the result of a deadlock.
func TestOneSubnetWins(t *testing.T) {
	for name, prefixes := range layouts {
		t.Run(name, func(t *testing.T) {
			var blocks []ipam.SubnetFacts
			for i, p := range prefixes {
				blocks = append(blocks, subnetBlock(string(rune('a'+i)), p, v1alpha1.SubnetPending, i+1))
			}
			for i := range blocks {
				blocks[i].Phase = ipam.DecideSubnet(blocks[i], everything, slices.Values(blocks)).Phase
			}
			if blocks[0].Phase != v1alpha1.SubnetAllocated {
				t.Errorf("the first of all is %s", blocks[0].Phase)
			}
		})
	}
}
