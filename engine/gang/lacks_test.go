package gang_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/gang"
)

// A lack of one of two optional subgroups is not a lack of the gang.
func TestLacks(t *testing.T) {
	c := tree(set("", "s", 1), leaf("s", "x", 2), leaf("s", "y", 3)).
		with(2, "x", gang.Waiting, gpu(1)).with(1, "y", gang.Waiting, gpu(1)).with(1, "y", gang.Held, gpu(1))
	got := map[string]string{}
	for i, lack := range gang.Lacks(c.tree, c.members, gang.Rules{}) {
		if lack != nil {
			got[c.tree.Node(i).Name] = lack.Message(c.tree)
		}
	}
	want := map[string]string{"y": `subgroup "y" has 1 of min 3 pods, and 1 that may not be placed yet`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Lacks(...): -want, +got:\n%s", diff)
	}
	if gang.Missing(c.tree, c.members, gang.Rules{}) != nil {
		t.Error("the gang itself lacks pods")
	}
}
