package release_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/arbor-control/arbor/internal/decide/ipam/release"
)

var everyStep = flag.Bool("every-step", false, "let objects arrive after every step of the manager, in all restorations")

// Parts of a backup.
var (
	withoutChild = []string{"pool/lab", "poolclaim", "claim/lab", "subnet/lab", "claim/c", "subnet/c"}
	withoutC     = []string{"claim/c", "subnet/c"}
	onlyBlock    = []string{"claim", "subnet/a", "subnet/c", "poolclaim", "pool/lab"}
	onlyPools    = []string{"claim", "subnet"}
)

// restorations are those after which every claim has the block that it had.
var restorations = map[string]struct {
	reason      string
	restoration restoration
}{
	"Kubectl": {"ownerReferences stay, and the status is dropped.", restoration{saw: true, slow: true, ended: true}},
	"Velero":  {"An object that exists is left as it is.", restoration{form: velero, saw: true, slow: true, ended: true}},
	"VeleroStatus": {
		"The status of a Subnet or a pool has another UID and counts as none; that of a claim names the block that it had.",
		restoration{form: veleroStatus, alphabetical: true, saw: true, slow: true, ended: true, every: true},
	},
	"StatusInAnyOrder": {"Also if the Subnet arrives first.", restoration{form: veleroStatus, missing: withoutChild, saw: true, slow: true, ended: true, every: true}},
	"EveryStep":        {"Objects can arrive after every single write of the manager.", restoration{missing: withoutC, slow: true, ended: true, every: true}},
	"Unrecorded":       {"A claim without a record takes its Subnet.", restoration{unrecorded: []string{"a", "c", lab}, ended: true}},
	"NoSubnets":        {"A claim without a Subnet takes the block of its record.", restoration{missing: []string{"subnet"}, slow: true, ended: true}},
	"VeleroNoSubnets":  {"Also in Velero's order.", restoration{form: velero, alphabetical: true, missing: []string{"subnet"}, slow: true, ended: true, every: true}},
	"NoClaims":         {"The block of a claim that does not come back stays taken.", restoration{form: velero, missing: []string{"claim"}, saw: true, slow: true, ended: true}},
	"NoPools":          {"Without a pool, claims wait and nothing is lost.", restoration{missing: []string{"pool"}, slow: true}},
	"NoPoolClaims":     {"A pool does not depend on the pool claim that it was made for.", restoration{form: velero, missing: []string{"poolclaim"}, slow: true, ended: true}},
	"NoChildPool": {
		"The pool that a pool claim makes again waits for its Subnets, too.",
		restoration{missing: []string{"pool/lab"}, unrecorded: []string{"c"}, newPool: lab, ended: true},
	},
	"OnlyBlock":       {"A backing Subnet that nothing else came back for stays.", restoration{missing: onlyBlock, saw: true, slow: true, ended: true}},
	"NewInChild":      {"The new claim can be one of the child pool.", restoration{unrecorded: []string{"c"}, newPool: lab, ended: true}},
	"NewAsksForBlock": {"The new claim can ask for the very block of another.", restoration{missing: []string{"subnet"}, newPool: lab, newCIDR: "10.0.0.16/28"}},
	"NewOfOneCluster": {"Of two claims with one clusterID, the name decides.", restoration{missing: withoutC, newCluster: "cluster-a", slow: true, ended: true}},
	"PoolsAlive": {
		"Only claims and Subnets were deleted: the UIDs of the pools do not show it, so the records decide.",
		restoration{alive: []string{"pool", "poolclaim", "claim/lab", "subnet/lab"}, noNewClaim: true, saw: true, every: true},
	},
	"BlockGone": {
		"The claim for the block of a pool claim, and its Subnet, are gone: the pool is the record.",
		restoration{alive: []string{"pool"}, missing: onlyPools, noNewClaim: true, every: true},
	},
	"StatusWithoutSubnets": {
		"With restoreStatus a claim comes back Bound, but without its Subnet it has no block yet.",
		restoration{form: veleroStatus, missing: []string{"subnet"}},
	},
	"StatusBeforeClaim": {
		"A backing Subnet with the status of a backup may arrive before its claim.",
		restoration{form: veleroStatus, missing: withoutC, every: true},
	},
	"BlockBeforePool": {
		"Neither the claim for the block of a pool claim nor its Subnet comes back, and the pool claim may come before the pool.",
		restoration{form: velero, missing: onlyPools},
	},
	"BlockMadeFirst": {
		"The pool claim may create the claim for its block before that of the backup arrives, which is then left out.",
		restoration{form: velero, missing: []string{"subnet"}},
	},
	"EndedTooEarly": {
		"A user may end the restore before recorded claims are served, while the new claim asks for the very block of one.",
		restoration{missing: []string{"subnet"}, newPool: lab, newCIDR: "10.0.0.16/28", ended: true},
	},
	"Quick":         {"A backup can be restored before its Subnets are old.", restoration{missing: withoutC, quick: true, slow: true, ended: true}},
	"QuickNoClaims": {"Also then the block of a claim that does not come back stays taken.", restoration{missing: []string{"claim"}, quick: true, slow: true, ended: true}},
	"Twice":         {"A claim is deleted and restored once more.", restoration{twice: "a", missing: withoutChild, slow: true, every: true}},
	"ByHand":        {"A pool that a user created has a Subnet that is for no claim.", restoration{byHand: true, missing: withoutC, slow: true, ended: true, every: true}},
	"ByHandStatus":  {"Also with the status of a backup.", restoration{byHand: true, form: veleroStatus, missing: withoutC, slow: true, ended: true, every: true}},
	"ByHandVelero":  {"With a claim in the pool.", restoration{byHand: true, form: velero, slow: true, ended: true}},
	"ByHandAlive": {
		"Only the pool and what is in it were deleted: its parent does not show that anything is restored.",
		restoration{byHand: true, alive: []string{"pool/p", "claim/a", "subnet/a"}, noNewClaim: true, saw: true, every: true},
	},
	"ByHandAliveStatus": {
		"Also with the status of a backup.",
		restoration{byHand: true, form: veleroStatus, alive: []string{"pool/p", "claim/a", "subnet/a"}, noNewClaim: true, every: true},
	},
	"ByHandBlockAlive": {
		"The finalizer of the pool was removed by force: its Subnet and what is in it are still there.",
		restoration{byHand: true, alive: []string{"pool/p", "claim", "subnet"}, noNewClaim: true, every: true},
	},
	"ByHandBlockAlone": {
		"Nothing is in it: the Subnet is released, or bound to the restored pool if that is there in time.",
		restoration{byHand: true, alive: []string{"pool/p", "claim/a", "subnet/a", "subnet/lab"}, missing: withoutC, noNewClaim: true, every: true},
	},
	"ByHandNoPool":    {"The pool does not come back.", restoration{byHand: true, missing: []string{"pool/lab"}, slow: true, ended: true}},
	"ByHandNoSubnets": {"The pool gets another Subnet for its block.", restoration{byHand: true, missing: []string{"subnet"}, ended: true}},
	"TwiceCooling": {
		"The block that it freed is kept from others, not from it.",
		restoration{twice: "a", missing: withoutChild, reuseAfter: true, slow: true, every: true},
	},
}

// A backup that comes back with new UIDs gives every claim the block that it had. The
// objects arrive in any order, Velero's among them, and the manager and the garbage
// collector act after any arrival or not.
func TestRestoreInAnyOrder(t *testing.T) {
	for name, tc := range restorations {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			r := tc.restoration
			r.every = r.every || *everyStep
			x := explore(newModel(r, rules{}))
			if x.found != "" || len(x.ends) == 0 {
				t.Errorf("%s\n%d end states; found %s", tc.reason, len(x.ends), x.found)
			}
			// Everything that has not arrived can arrive in every state, so the walk
			// has all orders if it has all sets.
			if all := 1 << len(x.arrivals); len(x.sets) != all && r.twice == "" && !r.alphabetical {
				t.Errorf("%d of %d sets of objects have arrived", len(x.sets), all)
			}
			t.Logf("%d objects, %d states, %d of them end states, %s", len(x.arrivals), len(x.states), len(x.ends), time.Since(began).Round(time.Millisecond))
		})
	}
}

// finds checks that a walk finds what is wrong.
func finds(t *testing.T, reason string, m *model, want string) {
	t.Helper()
	x := explore(m)
	if !strings.Contains(x.found, want) {
		t.Errorf("%s\nfound %q in %d states, want %q", reason, x.found, len(x.states), want)
	}
	t.Logf("%d states: %s", len(x.states), x.found)
}

// The walk finds what is wrong with rules that leave something out.
func TestEveryClauseOfRestoreIsNeeded(t *testing.T) {
	const (
		renumbered = "instead of"
		tooEarly   = "before the restore is over"
		mayCome    = "may still come"
		waits      = "does not get its block back"
	)
	cases := map[string]struct {
		reason string
		world  string
		rules  rules
		want   string
	}{
		"PoolOfBackup":     {"A Subnet of a backup is not of the pool that was deleted: no pool has had it.", "ByHandAlive", rules{poolOfBackup: true}, mayCome},
		"Record":           {"A claim whose Subnet is not restored must know its block.", "NoSubnets", rules{noRecord: true}, renumbered},
		"RecordAlone":      {"Also if the pool was never gone.", "PoolsAlive", rules{noRecord: true}, renumbered},
		"RecordedFirst":    {"Recorded claims are served before others.", "NoSubnets", rules{recordedInAnyOrder: true}, waits},
		"RecordedWaits":    {"A restore is not over while a recorded claim waits, also if that could not be served first.", "NewAsksForBlock", rules{recordedIgnored: true, recordedInAnyOrder: true}, waits},
		"Epoch":            {"A restored pool allocates nothing new.", "Kubectl", rules{noEpoch: true}, tooEarly},
		"EpochUnrecorded":  {"Nor to a claim that had a block before.", "Unrecorded", rules{noEpoch: true}, renumbered},
		"EpochReplaced":    {"The UID of the backup stays until the restore is over.", "Kubectl", rules{epochReplaced: true}, tooEarly},
		"AdoptByName":      {"A restored claim has another UID.", "NewOfOneCluster", rules{adoptByUID: true}, waits},
		"AdoptOwn":         {"A Subnet of the same clusterID may be another claim's.", "NewOfOneCluster", rules{adoptByCluster: true}, tooEarly},
		"ReleaseVersion":   {"A Subnet that was adopted since is not released.", "Twice", rules{releaseAnyVersion: true}, "has it"},
		"OriginalTime":     {"A Subnet of a backup is not of the claim that was deleted.", "Velero", rules{anyTime: true}, mayCome},
		"OriginalAlive":    {"Also if its pool was never gone.", "PoolsAlive", rules{anyTime: true}, mayCome},
		"OriginalPool":     {"Nor is a Subnet of a backup that is not old.", "QuickNoClaims", rules{anyPool: true}, mayCome},
		"StatusUID":        {"A status of a backup is no verdict.", "StatusInAnyOrder", rules{statusOfBackup: true}, mayCome},
		"ClaimStatusUID":   {"The status of a claim of a backup is not its own.", "StatusWithoutSubnets", rules{claimStatusOfBackup: true}, "share"},
		"BlockOfPoolLater": {"Also if the pool comes after the claim for its block.", "BlockBeforePool", rules{blockUnrecordedLater: true}, renumbered},
		"NoOwners":         {"The garbage collector deletes what has an owner of the past.", "Kubectl", rules{owners: true}, "is deleted"},
		"ChildOfClaim":     {"A child pool is not in the way of its own block.", "NoSubnets", rules{childInTheWay: true}, waits},
		"BlockOfPool":      {"The claim for the block of a pool asks for that block.", "BlockGone", rules{blockUnrecorded: true}, renumbered},
		"ChildRestoring":   {"A child pool that is made again is restored as its parent is.", "NoChildPool", rules{childNotRestoring: true}, renumbered},
		"PoolClaimByName":  {"A restored pool claim has another UID.", "NewOfOneCluster", rules{poolClaimByUID: true}, "the pool claim does not have its pool"},

		"CoolingInsists": {"A claim that can be given no other block need not wait for it.", "TwiceCooling", rules{coolsForOwner: true}, waits},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			finds(t, tc.reason, newModel(restorations[tc.world].restoration, tc.rules), tc.want)
		})
	}
}

// The walk finds what is wrong if the release rules leave out a clause that a restore
// needs. The other clauses are needed by TestEveryClauseIsNeeded.
func TestEveryClauseOfReleaseIsNeeded(t *testing.T) {
	const mayCome, has = "may still come", "has it"
	cases := map[string]struct {
		reason           string
		claimed, backing string
		world            string
		want             string
	}{
		"Unknown":       {"The claim of a Subnet may not have arrived.", "Unknown", "", "Velero", mayCome},
		"Expected":      {"The pool of a backing Subnet may not have arrived.", "", "Expected", "ByHandAlive", mayCome},
		"ExpectedAlone": {"Nor may its parent.", "", "Expected", "ByHand", mayCome},
		"Child":         {"The pool is bound to the Subnet, or about to be.", "", "Child", "ByHandAlive", has},
		"Adoption":      {"Also if the Subnet had another pool.", "", "Child", "ByHandBlockAlone", has},
		"Foreign":       {"The status of a backup does not tell that a pool is gone.", "", "Status", "ByHandAliveStatus", mayCome},
		"Unclaimed":     {"The claim of a backing Subnet may not have arrived.", "", "Unclaimed", "OnlyBlock", mayCome},
		"Claim":         {"The pool of a claim may not have arrived.", "", "Claim", "NoPoolClaims", has},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(restorations[tc.world].restoration, rules{})
			if tc.claimed != "" {
				release.WithoutClaimed(t, tc.claimed)
			}
			if tc.backing != "" {
				release.WithoutBacking(t, tc.backing)
			}
			finds(t, tc.reason, m, tc.want)
		})
	}
}

// These restorations do not give every claim its block back. When the walk no longer
// finds one of them, move it to restorations.
func TestRestoreLimits(t *testing.T) {
	cases := map[string]struct {
		reason      string
		restoration restoration
		want        string
	}{
		"SlowAndUnrecorded": {
			"The restore of p is over before the pool of a pool claim arrives: the pool claim makes one that allocates at once.",
			restoration{unrecorded: []string{"c"}, slow: true},
			"instead of",
		},
		"QuickAndSeen": {
			"A Subnet that is restored within two minutes after its block was taken and its claim deleted looks as if it was created for that claim.",
			restoration{missing: withoutChild, quick: true, saw: true},
			"may still come",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			finds(t, tc.reason, newModel(tc.restoration, rules{}), tc.want)
		})
	}
}
