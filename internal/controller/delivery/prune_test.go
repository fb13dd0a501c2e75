package delivery

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// dropping is a composition whose synthesis has only tombstones, and its slices. The
// tombstones are those of the syntheses.
func dropping(syntheses ...string) (*enov1.Composition, []enov1.ResourceSlice) {
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "current"}
	all := make([]enov1.ResourceSlice, 1)
	for i, uuid := range syntheses {
		all[0].Spec.Resources = append(all[0].Spec.Resources, enov1.Manifest{
			Manifest: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m%d","namespace":"n"}}`, i),
			Deleted:  true, DroppedBy: uuid,
		})
	}

	return c, all
}

// TestConfirmation has a confirmation of a prune, and a later synthesis that would prune
// the same objects.
func TestConfirmation(t *testing.T) {
	cases := map[string]struct {
		reason    string
		confirmed []string // the syntheses that dropped the objects, when it was confirmed
		now       []string
		restarted bool
		blocked   bool
	}{
		"Same":         {reason: "It is confirmed.", confirmed: []string{"a", "a"}, now: []string{"a", "a"}},
		"Restarted":    {reason: "It is confirmed, whichever manager decides.", confirmed: []string{"a", "a"}, now: []string{"a", "a"}, restarted: true},
		"Again":        {reason: "The objects were delivered since, and another synthesis dropped them.", confirmed: []string{"a", "a"}, now: []string{"b", "b"}, blocked: true},
		"Again later":  {reason: "So they were, and the manager was restarted.", confirmed: []string{"a", "a"}, now: []string{"b", "b"}, restarted: true, blocked: true},
		"One again":    {reason: "One of them was delivered since.", confirmed: []string{"a", "a"}, now: []string{"a", "b"}, blocked: true},
		"Fewer":        {reason: "It holds for fewer objects.", confirmed: []string{"a", "a", "a"}, now: []string{"a", "a"}},
		"Several":      {reason: "Two syntheses dropped them.", confirmed: []string{"a", "b"}, now: []string{"a", "b"}, restarted: true},
		"Not recorded": {reason: "An earlier release stored the tombstones.", confirmed: []string{"", ""}, now: []string{"", ""}, restarted: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := idle()
			d.PruneGuard, _ = ParsePruneGuard(PruneGuardEmpty)
			c, all := dropping(tc.confirmed...)
			old := d.NewView(c, all)
			digest, _ := old.Pruned()
			confirm := map[string]string{enov1.AnnotationConfirmPrune: digest.Digest}
			c.Annotations = confirm
			if err := d.GuardPruning(t.Context(), old, nil, c); err != nil || old.PruneSet.Blocked != "" {
				t.Fatalf("%s\nthe confirmation does not hold: %+v, %v", tc.reason, old.PruneSet, err)
			}
			if tc.restarted {
				old = nil
			}
			c, all = dropping(tc.now...)
			c.Annotations = confirm
			v := d.NewView(c, all)
			if err := d.GuardPruning(t.Context(), v, old, c); err != nil || v.PruneSet.Blocked != "" != tc.blocked {
				t.Errorf("%s\nblocked: %q, %v", tc.reason, v.PruneSet.Blocked, err)
			}
		})
	}
}
