package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/cli/clitest"
)

// written is an object of the address API, on five lines: its fields are on the
// last.
func written(kind, name, spec string) string {
	return fmt.Sprintf("---\napiVersion: plexaubnet.io/v1alpha1\nkind: %s\nmetadata: {%s}\nspec: {%s}\n", kind, name, spec)
}

func TestLintPools(t *testing.T) {
	const (
		other = " (choose other addresses, or set spec.parent if one is taken from the other)"
		free  = " (choose a block that is free, or let a SubnetClaim find one)"
	)

	a := written("SubnetPool", "name: a", "cidr: 10.0.0.0/16")

	tests := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Fine": {
			reason: "what can be there together is fine, in whichever file",
			files: map[string]string{
				"a.yaml": a + written("SubnetPool", "name: b", "cidr: 10.0.16.0/20, parent: a"),
				"b.yaml": written("SubnetClaim", "name: c", "poolRef: a, clusterID: c, blockSize: 24") + written("SubnetClaim", "name: d", "poolRef: a, clusterID: d, requestedCIDR: 10.0.1.0/24"),
				"c.yaml": written("SubnetPoolClaim", "name: e", "parentPoolRef: a, desiredBlockSize: 20") + written("Subnet", "name: f", "poolRef: a, clusterID: f, cidr: 10.0.2.0/24"),
			},
		},
		"Alone": {
			reason: "each is held to the rules of its kind",
			files: map[string]string{"a.yaml": written("SubnetPool", "name: a", "cidr: 10.0.0.1/16, maxBlockSize: 64") +
				written("SubnetPool", "name: b", "cidr: 10.1.0.0/16, maxBlockSize: 64, defaultBlockSize: 8") +
				written("Subnet", "name: s", "poolRef: x, clusterID: c, cidr: 10.0.0.1/24")},
			want: []string{
				"a.yaml:5: error: SubnetPool a: spec.cidr: 10.0.0.1/16 has bits set behind its length (write 10.0.0.0/16)",
				"a.yaml:10: error: SubnetPool b: spec.maxBlockSize: IPv4 has no prefix of length 64 (choose a length of at most 32)",
				"a.yaml:10: warning: SubnetPool b: spec.defaultBlockSize: a /8 does not fit into 10.1.0.0/16; the condition Exhausted is about the whole pool instead",
				"a.yaml:15: error: Subnet s: spec.cidr: 10.0.0.1/24 has bits set behind its length (write 10.0.0.0/24)",
			},
		},
		"Schema": {
			reason: "what the schema says is not said twice, and hides nothing",
			files: map[string]string{"a.yaml": written("SubnetPool", "name: a, labels: {x: 1}", "cidr: ten, defaultBlockSize: many") +
				written("SubnetPool", "name: b", "cidr: 5") + written("SubnetPool", "name: c", "cidr: 10.0.0.1/16, strategy: Best")},
			want: []string{
				`a.yaml:4: error: SubnetPool a: metadata.labels[x]: "1" must be a string, not a number (put the value in quotes)`,
				`a.yaml:5: error: SubnetPool a: spec.defaultBlockSize: "many" must be of type integer, not string (write a whole number without quotes)`,
				`a.yaml:5: error: SubnetPool a: spec.cidr: "ten" is not a CIDR (write an address and a length, such as 10.0.0.0/16 or fd00::/48)`,
				`a.yaml:10: error: SubnetPool b: spec.cidr: "5" must be of type string, not integer (put the value in quotes)`,
				`a.yaml:15: error: SubnetPool c: spec.strategy: "Best" is not supported (use one of "Linear", "Buddy")`,
				`a.yaml:15: error: SubnetPool c: spec.cidr: 10.0.0.1/16 has bits set behind its length (write 10.0.0.0/16)`,
			},
		},
		"Roots": {
			reason: "pools that overlap are named where each is written",
			files:  map[string]string{"a.yaml": a, "d/b.yaml": "# b\n\n" + written("SubnetPool", "name: b", "cidr: 10.0.1.0/24")},
			want: []string{
				"a.yaml:5: error: SubnetPool a: spec.cidr: 10.0.0.0/16 overlaps 10.0.1.0/24 of pool b, which is a root pool of this namespace too" + other,
				"d/b.yaml:7: error: SubnetPool b: spec.cidr: 10.0.1.0/24 overlaps 10.0.0.0/16 of pool a, which is a root pool of this namespace too" + other,
			},
		},
		"Namespaces": {
			reason: "pools of different namespaces do not meet",
			files:  map[string]string{"a.yaml": a, "b.yaml": written("SubnetPool", "name: b, namespace: x", "cidr: 10.0.1.0/24")},
		},
		"Outside": {
			reason: "a child lies in its parent, by spec or by label",
			files: map[string]string{
				"a.yaml": a, "b.yaml": written("SubnetPool", "name: b", "cidr: 10.1.0.0/24, parent: a"),
				"c.yaml": written("SubnetPool", "name: c, labels: {plexaubnet.io/parent: a}", "cidr: 10.2.0.0/24"),
			},
			want: []string{
				"b.yaml:5: error: SubnetPool b: spec.cidr: 10.1.0.0/24 is not inside of 10.0.0.0/16, which its parent a has (choose a part of 10.0.0.0/16, or another parent)",
				"c.yaml:5: error: SubnetPool c: spec.cidr: 10.2.0.0/24 is not inside of 10.0.0.0/16, which its parent a has (choose a part of 10.0.0.0/16, or another parent)",
			},
		},
		"Cycle": {
			reason: "nobody is taken from himself; where the field is absent, its nearest ancestor is named",
			files: map[string]string{"a.yaml": written("SubnetPool", "name: a", "cidr: 10.0.0.0/16, parent: b") +
				written("SubnetPool", "name: b, labels: {plexaubnet.io/parent: a}", "cidr: 10.0.0.0/16") + written("SubnetPool", "name: c", "cidr: 10.3.0.0/16, parent: c")},
			want: []string{
				"a.yaml:5: error: SubnetPool a: spec.parent: pool a would be taken from itself: a -> b -> a (name a parent that is not among its own children, or none)",
				"a.yaml:10: error: SubnetPool b: spec.parent: pool b would be taken from itself: b -> a -> b (name a parent that is not among its own children, or none)",
				"a.yaml:15: error: SubnetPool c: spec.parent: pool c would be taken from itself: c -> c (name a parent that is not among its own children, or none)",
			},
		},
		"Subnets": {
			reason: "Subnets that overlap are named both, though their pool is elsewhere",
			files: map[string]string{
				"a.yaml": written("Subnet", "name: s", "poolRef: x, clusterID: s, cidr: 10.0.0.0/24"),
				"b.yaml": written("Subnet", "name: t", "poolRef: x, clusterID: t, cidr: 10.0.0.0/25") + written("Subnet", "name: u", "poolRef: z, clusterID: t, cidr: 10.0.0.0/25"),
			},
			want: []string{
				"a.yaml:5: error: Subnet s: spec.cidr: 10.0.0.0/24 overlaps 10.0.0.0/25 of Subnet t" + free,
				"b.yaml:5: error: Subnet t: spec.cidr: 10.0.0.0/25 overlaps 10.0.0.0/24 of Subnet s" + free,
			},
		},
		"Misplaced": {
			reason: "a Subnet lies in its pool, and not in a child of it",
			files: map[string]string{"a.yaml": a + written("SubnetPool", "name: b", "cidr: 10.0.16.0/20, parent: a") +
				written("Subnet", "name: s", "poolRef: a, clusterID: s, cidr: 10.1.0.0/24") + written("Subnet", "name: t", "poolRef: a, clusterID: t, cidr: 10.0.16.0/24")},
			want: []string{
				"a.yaml:15: error: Subnet s: spec.cidr: 10.1.0.0/24 is not inside of pool a, 10.0.0.0/16 (choose a part of 10.0.0.0/16, or another pool)",
				"a.yaml:20: error: Subnet t: spec.cidr: 10.0.16.0/24 overlaps 10.0.16.0/20 of the child pool b (take it from pool b, or choose a block that is free)",
			},
		},
		"Claims": {
			reason: "a claim asks for what its pool has",
			files: map[string]string{"a.yaml": written("SubnetPool", "name: a", "cidr: 10.0.0.0/16, minBlockSize: 20, maxBlockSize: 28") +
				written("SubnetClaim", "name: c", "poolRef: a, clusterID: c, blockSize: 29") + written("SubnetClaim", "name: d", "poolRef: a, clusterID: d, requestedCIDR: 10.1.0.0/24") +
				written("SubnetPoolClaim", "name: e", "parentPoolRef: a, desiredBlockSize: 16")},
			want: []string{
				"a.yaml:10: error: SubnetClaim c: spec.blockSize: pool a allocates blocks from /20 to /28, not /29",
				"a.yaml:15: error: SubnetClaim d: spec.requestedCIDR: 10.1.0.0/24 is not inside of pool a, 10.0.0.0/16: ask for a block of that, or of another pool",
				"a.yaml:20: error: SubnetPoolClaim e: spec.desiredBlockSize: pool a allocates blocks from /20 to /28, not /16",
			},
		},
		"Absent": {
			reason: "what is not among the files may be in the cluster",
			files: map[string]string{"a.yaml": written("SubnetPool", "name: b", "cidr: 10.1.0.0/24, parent: x") + written("Subnet", "name: s", "poolRef: x, clusterID: s, cidr: 10.2.0.0/24") +
				written("SubnetClaim", "name: c", "poolRef: x, clusterID: c, blockSize: 99") + written("SubnetPoolClaim", "name: e", "parentPoolRef: x, desiredBlockSize: 99")},
		},
		"Twice": {
			reason: "an object that is written twice does not overlap itself, and the last one counts",
			files:  map[string]string{"a.yaml": a, "b.yaml": a, "c.yaml": written("SubnetPool", "name: c", "cidr: 10.0.9.0/24")},
			want: []string{
				"b.yaml:4: warning: SubnetPool a: metadata.name: the same object is defined in a.yaml:4, and the last one applied wins (remove or rename one of the two)",
				"b.yaml:5: error: SubnetPool a: spec.cidr: 10.0.0.0/16 overlaps 10.0.9.0/24 of pool c, which is a root pool of this namespace too" + other,
				"c.yaml:5: error: SubnetPool c: spec.cidr: 10.0.9.0/24 overlaps 10.0.0.0/16 of pool a, which is a root pool of this namespace too" + other,
			},
		},
		"Unnamed": {
			reason: "objects that get their names later are not taken for one",
			files:  map[string]string{"a.yaml": written("SubnetPool", "generateName: a-", "cidr: 10.0.0.0/16") + written("SubnetPool", "generateName: a-", "cidr: 10.0.0.0/16")},
		},
		"Misspelt": {
			reason: "a kind that is spelt otherwise is compared as well",
			files:  map[string]string{"a.yaml": a + written("Subnetpool", "name: b", "cidr: 10.0.0.0/24")},
			want: []string{
				"a.yaml:5: error: SubnetPool a: spec.cidr: 10.0.0.0/16 overlaps 10.0.0.0/24 of pool b, which is a root pool of this namespace too" + other,
				`a.yaml:8: error: Subnetpool b: kind: kind "Subnetpool" is unknown (write "SubnetPool")`,
				"a.yaml:10: error: Subnetpool b: spec.cidr: 10.0.0.0/24 overlaps 10.0.0.0/16 of pool a, which is a root pool of this namespace too" + other,
			},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Folder(t, tc.files)
			got := clitest.Run(t, New, "", "-f", ".")

			if diff := cmp.Diff(tc.want, clitest.Lines(got.Out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if want := min(1, strings.Count(got.Out, ": error: ")); got.Code != want {
				t.Errorf("exit %d, want %d", got.Code, want)
			}
		})
	}
}

// BenchmarkLintPools1000 is a whole run over 1,000 files, each with a pool and
// what is taken from it.
func BenchmarkLintPools1000(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("f%d.yaml", i)] = written("SubnetPool", fmt.Sprintf("name: p%d", i), fmt.Sprintf("cidr: 10.%d.%d.0/24", i/256, i%256)) +
			written("SubnetClaim", fmt.Sprintf("name: c%d", i), fmt.Sprintf("poolRef: p%d, clusterID: c, blockSize: 28", i)) +
			written("Subnet", fmt.Sprintf("name: s%d", i), fmt.Sprintf("poolRef: p%d, clusterID: s, cidr: 10.%d.%d.0/28", i, i/256, i%256))
	}

	clitest.Folder(b, files)
	lintAll(b)
}
