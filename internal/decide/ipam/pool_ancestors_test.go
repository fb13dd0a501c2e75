package ipam_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/decide/ipam"
)

func TestAncestors(t *testing.T) {
	errRead := errors.New("cannot read")
	parents := map[string]string{"rack": "zone", "zone": "region", "region": "", "stray": "missing", "a": "b", "b": "c", "c": "b", "broken": "error"}
	cases := map[string]struct {
		reason string
		from   string
		want   []string
		back   int
		err    error
	}{
		"None":    {reason: "An empty name names no pool.", back: -1},
		"Root":    {reason: "A pool without a parent is alone.", from: "region", want: []string{"region"}, back: -1},
		"Chain":   {reason: "The nearest comes first.", from: "rack", want: []string{"rack", "zone", "region"}, back: -1},
		"Missing": {reason: "A parent that does not exist ends the path, and is named.", from: "stray", want: []string{"stray", "missing"}, back: -1},
		"Cycle":   {reason: "A cycle of other pools ends before a name comes again.", from: "a", want: []string{"a", "b", "c"}, back: 1},
		"Member":  {reason: "A pool on a cycle comes back to itself.", from: "c", want: []string{"c", "b"}, back: 0},
		"Error":   {reason: "An error is returned.", from: "broken", want: []string{"broken", "error"}, back: -1, err: errRead},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path, back, err := ipam.Ancestors(tc.from, func(name string) (*v1alpha1.SubnetPool, error) {
				if name == "error" {
					return nil, errRead
				}
				var p *v1alpha1.SubnetPool
				if parent, ok := parents[name]; ok {
					p = &v1alpha1.SubnetPool{Spec: v1alpha1.SubnetPoolSpec{Parent: parent}}
				}

				return p, nil
			})
			if diff := cmp.Diff(tc.want, path); diff != "" || back != tc.back || !errors.Is(err, tc.err) {
				t.Errorf("%s\nAncestors(%q) = back %d, error %v, want back %d, error %v: -want, +got:\n%s", tc.reason, tc.from, back, err, tc.back, tc.err, diff)
			}
		})
	}
}
