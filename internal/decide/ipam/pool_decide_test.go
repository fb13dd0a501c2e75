package ipam_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

// lost is a pool whose generation was rejected.
func lost(p *v1alpha1.SubnetPool) { p.Status.Lost = p.Generation }

func version(v string) change { return func(p *v1alpha1.SubnetPool) { p.ResourceVersion = v } }

func deleting(p *v1alpha1.SubnetPool) { p.DeletionTimestamp = new(metav1.Now()) }

// guarded is a pool that has its finalizer, in version 10.
func guarded(cidr string, changes ...change) v1alpha1.SubnetPool {
	p := a("x", cidr)
	p.Generation, p.ResourceVersion, p.Finalizers = 2, "10", []string{v1alpha1.Finalizer}
	for _, c := range changes {
		c(&p)
	}

	return p
}

func among(all ...v1alpha1.SubnetPool) ipam.PoolFacts {
	f := ipam.PoolFacts{Outside: ipam.SubnetListing{Live: true}}
	for i := range all {
		f.Others = append(f.Others, ipam.OtherPoolOf(&all[i]))
	}

	return f
}

func stray(s ipam.StraySubnet) ipam.PoolFacts {
	f := among()
	f.Strays = []ipam.StraySubnet{s}

	return f
}

func inBlock(cidr string) ipam.PoolFacts {
	f := among()
	f.HasParent = true
	if cidr != "" {
		f.Backing.Prefix = netip.MustParsePrefix(cidr)
	}

	return f
}

func TestDecidePool(t *testing.T) {
	const fix = ": choose other addresses, or delete or shrink one of the two"
	nothing, grant, list, again := ipam.PoolDecision{}, ipam.PoolDecision{Action: ipam.Grant}, ipam.PoolDecision{Action: ipam.NeedsList}, ipam.PoolDecision{Action: ipam.Clear}
	refuse := func(reason, message string) ipam.PoolDecision {
		return ipam.PoolDecision{Action: ipam.Reject, Reason: reason, Message: message}
	}
	overlap := func(message string) ipam.PoolDecision { return refuse("Overlap", message+fix) }
	childAmong := inBlock("10.0.0.0/16")
	childAmong.Others = among(a("y", "10.0.0.0/8", opened("10.0.0.0/8", ""))).Others
	undecided := ipam.PoolFacts{HasParent: true}
	noBlock := ipam.PoolFacts{HasParent: true, Backing: ipam.Backing{Reason: "Overlap", Message: "the parent has no such block"}}

	cases := map[string]struct {
		reason string
		pool   v1alpha1.SubnetPool
		facts  ipam.PoolFacts
		want   ipam.PoolDecision
	}{
		"Alone":       {"A root that overlaps nothing is opened.", guarded("10.0.0.0/16"), among(), grant},
		"Itself":      {"It does not overlap itself.", guarded("10.0.0.0/16"), among(guarded("10.0.0.0/16", version("9"))), grant},
		"Open":        {"A pool that has what it asks for needs no decision.", guarded("10.0.0.0/16", opened("10.0.0.0/16", "")), among(a("y", "10.0.0.0/16", opened("10.0.0.0/16", ""))), nothing},
		"Deleting":    {"One that is being deleted gets none.", guarded("10.0.0.0/16", deleting), among(), nothing},
		"Unprotected": {"Nor does one that could vanish.", a("x", "10.0.0.0/16"), among(), nothing},
		"OtherUID":    {"The status of another pool does not count.", guarded("10.0.0.0/16", opened("10.0.0.0/16", ""), func(p *v1alpha1.SubnetPool) { p.UID = "new" }), among(), grant},

		"Rubbish":  {"An invalid CIDR is rejected.", guarded("ten"), among(), refuse("InvalidCIDR", `"ten" is not a CIDR: write an address and a length, such as 10.0.0.0/16 or fd00::/48`)},
		"Unmasked": {"So are bits behind the length.", guarded("10.0.0.1/16"), among(), refuse("NotMasked", "10.0.0.1/16 has bits set behind its length: write 10.0.0.0/16")},
		"Mapped":   {"And IPv4 written as IPv6.", guarded("::ffff:10.0.0.0/104"), among(), refuse("IPv4AsIPv6", "::ffff:10.0.0.0/104 is IPv4 written as IPv6: write 10.0.0.0/8")},

		"Has":         {"The range of another root is not allocated twice, even if that root is younger.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", opened("10.0.0.0/8", ""), version("99"))), overlap("10.0.0.0/16 overlaps 10.0.0.0/8, which pool y has")},
		"HasStill":    {"Also if the other asks for something else by now.", guarded("10.0.0.0/16"), among(a("y", "11.0.0.0/8", opened("10.0.0.0/8", ""), version("99"))), overlap("10.0.0.0/16 overlaps 10.0.0.0/8, which pool y has")},
		"HasDeleting": {"Or is being deleted.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", opened("10.0.0.0/8", ""), deleting)), overlap("10.0.0.0/16 overlaps 10.0.0.0/8, which pool y has")},
		"Older":       {"Of two that ask, the older is first.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", version("9"))), overlap("10.0.0.0/16 overlaps 10.0.0.0/8, which pool y asked for first")},
		"OlderGrows":  {"Also if it has a range already.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", opened("10.1.0.0/16", ""), version("9"))), overlap("10.0.0.0/16 overlaps 10.0.0.0/8, which pool y asked for first")},
		"Younger":     {"A younger one does not count.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", version("11"))), grant},
		"Loser":       {"Nor does one that has lost.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", version("9"), func(p *v1alpha1.SubnetPool) { p.Generation = 1 }, lost)), grant},
		"Leaver":      {"Nor one that is being deleted.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", version("9"), deleting)), grant},
		"Foreign":     {"Children of other pools are inside of roots that count.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/16", from("z"), version("9"))), grant},
		"Family":      {"The other family has other addresses.", guarded("10.0.0.0/16"), among(a("y", "::/0", version("9"))), grant},
		"Version":     {"Versions that cannot be compared decide nothing.", guarded("10.0.0.0/16"), among(a("y", "10.0.0.0/8", version("x"))), nothing},
		"OwnVersion":  {"Neither the other's nor its own.", guarded("10.0.0.0/16", version("")), among(a("y", "10.0.0.0/8", version("9"))), nothing},

		"Lost":          {"A pool that has lost becomes a candidate first.", guarded("10.0.0.0/16", lost), among(), again},
		"LostUnlisted":  {"For that no live list is needed.", guarded("10.0.0.0/16", lost), ipam.PoolFacts{}, again},
		"LostStill":     {"It stays lost while the reason is there.", guarded("10.0.0.0/16", lost), among(a("y", "10.0.0.0/8", opened("10.0.0.0/8", ""))), overlap("10.0.0.0/16 overlaps 10.0.0.0/8, which pool y has")},
		"LostYounger":   {"A younger candidate is older than it would be then.", guarded("10.0.0.0/16", lost), among(a("y", "10.0.0.0/8", version("11"))), overlap("10.0.0.0/16 overlaps 10.0.0.0/8, which pool y asked for first")},
		"LostVersion":   {"Versions that cannot be compared clear nothing.", guarded("10.0.0.0/16", lost), among(a("y", "10.0.0.0/8", version("x"))), nothing},
		"LostBefore":    {"A rejection of another generation does not matter.", guarded("10.0.0.0/16", lost, func(p *v1alpha1.SubnetPool) { p.Generation++ }), among(), grant},
		"LostUndecided": {"A child whose Subnet is decided again is a candidate again.", guarded("10.0.0.0/16", from("p"), lost), undecided, again},

		"NoParent":     {"A child is opened in a parent.", guarded("10.0.0.0/16", from("p")), ipam.PoolFacts{}, refuse("NoParent", "the parent pool p does not exist: create it, or create this pool again with another parent")},
		"Undecided":    {"It waits for the phase of its Subnet.", guarded("10.0.0.0/16", labelled("p")), undecided, nothing},
		"NoBlock":      {"Which may be bad.", guarded("10.0.0.0/16", from("p")), noBlock, refuse("Overlap", "the parent has no such block")},
		"Backed":       {"Nothing else decides, no other pool either.", guarded("10.0.0.0/16", from("p")), childAmong, grant},
		"OutsideBlock": {"It cannot grow out of its block.", guarded("10.0.0.0/15", from("p"), opened("10.0.0.0/16", "p")), inBlock("10.0.0.0/16"), refuse("OutsideBlock", "10.0.0.0/15 is not inside of 10.0.0.0/16, the block that this pool has of its parent p: choose a part of that block, or create another child pool")},

		"Used":      {"A pool that was in use before pools were opened blocks other pools.", guarded("10.0.0.0/16"), stray(ipam.StraySubnet{Name: "s", CIDR: "10.0.1.0/24", Pool: "y", Exists: true}), refuse("InUse", "10.0.0.0/16 contains 10.0.1.0/24 of Subnet s, which pool y has, and that pool is not open: release the Subnet, or choose other addresses for one of the two pools")},
		"UsedChild": {"So does its own child, if nothing keeps its block.", guarded("10.0.0.0/16"), stray(ipam.StraySubnet{Name: "s", CIDR: "10.0.1.0/24", Pool: "c", Exists: true, Parent: "x"}), refuse("InUse", "the child pool c has Subnets, such as 10.0.1.0/24 of Subnet s, but no backing Subnet in this pool: stop the manager and run `arbor pools migrate`")},
		"Migrated":  {"After the migration something does.", guarded("10.0.0.0/16"), stray(ipam.StraySubnet{Name: "s", CIDR: "10.0.1.0/24", Pool: "c", Exists: true, Parent: "x", Backed: true}), grant},
		"Orphans":   {"Subnets without a pool are in use as well.", guarded("10.0.0.0/16"), stray(ipam.StraySubnet{Name: "s", CIDR: "10.0.1.0/24", Pool: "y"}), refuse("Orphans", "10.0.0.0/16 contains 10.0.1.0/24 of Subnet s, whose pool y does not exist: create that pool again, or delete the Subnet if its addresses are no longer used")},

		"First":      {"The first range is given after a live list.", guarded("10.0.0.0/16"), ipam.PoolFacts{}, list},
		"Grow":       {"A pool that grows needs none.", guarded("10.0.0.0/15", opened("10.0.0.0/16", "")), ipam.PoolFacts{}, grant},
		"Shrink":     {"One that shrinks does.", guarded("10.0.0.0/17", opened("10.0.0.0/16", "")), ipam.PoolFacts{}, list},
		"Move":       {"One that moves does.", guarded("10.1.0.0/16", opened("10.0.0.0/16", "")), ipam.PoolFacts{}, list},
		"Listed":     {"It gets its range if nothing is left out.", guarded("10.1.0.0/16", opened("10.0.0.0/16", "")), among(), grant},
		"LeavesOut":  {"Not otherwise.", guarded("10.0.0.0/17", opened("10.0.0.0/16", "")), ipam.PoolFacts{Outside: ipam.SubnetListing{Live: true, Example: "10.0.200.0/24 of Subnet s"}}, refuse("InUse", "10.0.0.0/17 leaves out 10.0.200.0/24 of Subnet s, which is in use: choose a CIDR that contains everything that was taken from the pool, or release that first")},
		"LeavesOut2": {"The store is enough to reject.", guarded("10.0.0.0/17"), ipam.PoolFacts{Outside: ipam.SubnetListing{Example: "10.0.200.0/24 of Subnet s"}}, refuse("InUse", "10.0.0.0/17 leaves out 10.0.200.0/24 of Subnet s, which is in use: choose a CIDR that contains everything that was taken from the pool, or release that first")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ipam.DecidePool(&tc.pool, tc.facts)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
