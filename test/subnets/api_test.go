package subnets_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// object reads a manifest of the group, without its first lines.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf("apiVersion: plexaubnet.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: default}\nspec: %s\n", kind, name, spec)
	must(t, yaml.UnmarshalStrict([]byte(text), u))

	return u
}

// The API server enforces the schema: manifests of plexaubnet pass, and what CEL can reject is
// rejected with words.
func TestSchema(t *testing.T) {
	c := newClient(t)

	cases := map[string]struct {
		reason string
		kind   string
		spec   string
		want   string // "" means accepted
	}{
		"Pool":            {"The smallest pool.", "SubnetPool", "{cidr: 10.0.0.0/16}", ""},
		"PoolWhole":       {"Every field of the old API.", "SubnetPool", "{cidr: 10.0.0.0/16, defaultBlockSize: 24, minBlockSize: 20, maxBlockSize: 28, strategy: Buddy}", ""},
		"PoolLarge":       {"Lengths that the old API rejected.", "SubnetPool", "{cidr: 10.0.0.0/8, minBlockSize: 9, maxBlockSize: 32}", ""},
		"PoolSix":         {"IPv6.", "SubnetPool", "{cidr: 'fd00::/32', defaultBlockSize: 64}", ""},
		"PoolChild":       {"A pool of a pool.", "SubnetPool", "{cidr: 10.0.0.0/20, parent: big}", ""},
		"PoolReuse":       {"Blocks that rest after their release.", "SubnetPool", "{cidr: 10.0.0.0/16, reuseAfter: 1h30m}", ""},
		"PoolReuseWrong":  {"How long must be a duration.", "SubnetPool", "{cidr: 10.0.0.0/16, reuseAfter: tomorrow}", "spec.reuseAfter"},
		"PoolNoCIDR":      {"A pool needs addresses.", "SubnetPool", "{}", "spec.cidr: Required value"},
		"PoolBadCIDR":     {"Those must be addresses.", "SubnetPool", "{cidr: 10.0.0.0}", "spec.cidr in body must be of type cidr"},
		"PoolMinMax":      {"A least length above the greatest leaves nothing.", "SubnetPool", "{cidr: 10.0.0.0/16, minBlockSize: 28, maxBlockSize: 20}", "minBlockSize must not be larger than maxBlockSize"},
		"PoolTooLong":     {"No address has 129 bits.", "SubnetPool", "{cidr: 10.0.0.0/16, defaultBlockSize: 129}", "spec.defaultBlockSize"},
		"PoolStrategy":    {"There are two strategies.", "SubnetPool", "{cidr: 10.0.0.0/16, strategy: Random}", `supported values: "Linear", "Buddy"`},
		"Claim":           {"By size.", "SubnetClaim", "{poolRef: p, clusterID: c-1, blockSize: 24}", ""},
		"ClaimExact":      {"By address.", "SubnetClaim", "{poolRef: p, clusterID: c-1, requestedCIDR: 10.0.0.0/24}", ""},
		"ClaimBoth":       {"One of both, not both.", "SubnetClaim", "{poolRef: p, clusterID: c-1, blockSize: 24, requestedCIDR: 10.0.0.0/24}", "exactly one of blockSize and requestedCIDR must be set"},
		"ClaimNeither":    {"Nor neither.", "SubnetClaim", "{poolRef: p, clusterID: c-1}", "exactly one of blockSize and requestedCIDR must be set"},
		"ClaimClusterID":  {"Cluster IDs are lower case and short.", "SubnetClaim", "{poolRef: p, clusterID: Cluster, blockSize: 24}", "spec.clusterID"},
		"ClaimDashEnd":    {"A label value cannot end so, and Subnets repeat it as a label.", "SubnetClaim", "{poolRef: p, clusterID: edge-, blockSize: 24}", "spec.clusterID"},
		"ClaimDotBegin":   {"Nor begin so.", "SubnetClaim", "{poolRef: p, clusterID: .edge, blockSize: 24}", "spec.clusterID"},
		"ClaimNoPool":     {"A claim names a pool.", "SubnetClaim", "{poolRef: '', clusterID: c, blockSize: 24}", "spec.poolRef"},
		"Subnet":          {"A block made by hand.", "Subnet", "{poolRef: p, cidr: 10.0.0.0/24, clusterID: c, claimRef: {name: x, uid: u-1}}", ""},
		"SubnetSix":       {"IPv6 too.", "Subnet", "{poolRef: p, cidr: 'fd00::/64', clusterID: c}", ""},
		"SubnetNoCluster": {"A block belongs to a cluster.", "Subnet", "{poolRef: p, cidr: 10.0.0.0/24}", "spec.clusterID: Required value"},
		"PoolClaim":       {"A claim for a pool.", "SubnetPoolClaim", "{parentPoolRef: p, desiredBlockSize: 20}", ""},
		"PoolClaimNoSize": {"A size is required.", "SubnetPoolClaim", "{parentPoolRef: p}", "spec.desiredBlockSize: Required value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), object(t, tc.kind, strings.ToLower(name), tc.spec), client.FieldValidation("Strict"), client.DryRunAll)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\nit was rejected: %v", tc.reason, err)
			case tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\ngot  %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

// Fields that allocations depend on are immutable.
func TestImmutable(t *testing.T) {
	c := newClient(t)

	cases := map[string]struct {
		reason        string
		kind          string
		before, after string
		want          string
	}{
		"SubnetCIDR":   {"A block in use stays where it is.", "Subnet", "{poolRef: p, cidr: 10.0.0.0/24, clusterID: c}", "{poolRef: p, cidr: 10.0.1.0/24, clusterID: c}", "delete this Subnet and take another"},
		"ClaimSize":    {"A claim with a block keeps its spec.", "SubnetClaim", "{poolRef: p, clusterID: c, blockSize: 24}", "{poolRef: p, clusterID: c, blockSize: 25}", "delete this claim and make another"},
		"PoolClaim":    {"So does a claim for a pool.", "SubnetPoolClaim", "{parentPoolRef: p, desiredBlockSize: 20}", "{parentPoolRef: q, desiredBlockSize: 20}", "delete this claim and make another"},
		"PoolParent":   {"A pool does not change its parent.", "SubnetPool", "{cidr: 10.0.0.0/24, parent: p}", "{cidr: 10.0.0.0/24, parent: q}", "parent is immutable"},
		"PoolOrphan":   {"Nor lose it.", "SubnetPool", "{cidr: 10.0.0.0/24, parent: p}", "{cidr: 10.0.0.0/24}", "parent is immutable"},
		"PoolResize":   {"A pool may grow.", "SubnetPool", "{cidr: 10.0.0.0/24}", "{cidr: 10.0.0.0/20}", ""},
		"PoolStrategy": {"And choose otherwise from now on.", "SubnetPool", "{cidr: 10.0.0.0/24}", "{cidr: 10.0.0.0/24, strategy: Buddy}", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, tc.kind, "i-"+strings.ToLower(name), tc.before)
			must(t, c.Create(t.Context(), u))
			u.Object["spec"] = object(t, tc.kind, "x", tc.after).Object["spec"]
			err := c.Update(t.Context(), u)
			if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\ngot  %v\nwant %q", tc.reason, err, tc.want)
			}
			// Nothing that is stored is bricked by that.
			u.SetLabels(map[string]string{"a": "b"})
			u.Object["spec"] = object(t, tc.kind, "x", tc.before).Object["spec"]
			if err := c.Update(t.Context(), u); tc.want != "" && err != nil {
				t.Errorf("%s\nlabels cannot be written: %v", tc.reason, err)
			}
			must(t, c.Delete(t.Context(), u))
		})
	}
}
