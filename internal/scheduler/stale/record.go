package stale

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

// A staleRecord is what the annotation [v2alpha2.StalenessAnnotation] has of one
// subgroup, or of the group itself.
type staleRecord struct {
	// Min and Children are the numbers that were met.
	Min      int `json:"min,omitempty"`
	Children int `json:"children,omitempty"`
	// Since is when it was first observed below them.
	Since *time.Time `json:"since,omitempty"`
}

// encodeStaleness returns the value of the annotation, "" if there is nothing to
// remember.
func encodeStaleness(record map[string]gang.Memory) (string, error) {
	if len(record) == 0 {
		return "", nil
	}
	all := make(map[string]staleRecord, len(record))
	for name, m := range record {
		r := staleRecord{Min: m.SatisfiedMin, Children: m.SatisfiedChildren}
		if m.Since != 0 {
			r.Since = new(time.Unix(0, m.Since).UTC())
		}
		all[name] = r
	}
	text, err := json.Marshal(all)

	return string(text), err
}

// decodeStaleness reads the annotation.
func decodeStaleness(text string) (map[string]gang.Memory, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no annotation has no records, which is no error
	}
	var all map[string]staleRecord
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	memory := make(map[string]gang.Memory, len(all))
	for name, r := range all {
		if r.Min < 0 || r.Children < 0 || r.Since != nil && (r.Since.Unix() <= 0 || r.Since.Year() > 2200) {
			return nil, fmt.Errorf("subgroup %q has numbers that no subgroup can have", name)
		}
		// Whatever is missing to the minimum that was met was lost.
		m := gang.Memory{Met: true, SatisfiedMin: r.Min, SatisfiedChildren: r.Children, Bound: r.Min}
		if r.Since != nil {
			m.Since = r.Since.UnixNano()
		}
		memory[name] = m
	}

	return memory, nil
}

// statusMemory returns which minimums were met when Arbor last wrote the status.
// The numbers of the group itself are not in the status, so its minMember counts
// only if the spec is still the same.
func statusMemory(pg *v2alpha2.PodGroup, tree *podtree.Tree) map[string]gang.Memory {
	memory := map[string]gang.Memory{}
	for _, s := range pg.Status.SubGroups {
		if !s.Satisfied {
			continue
		}
		m := gang.Memory{Met: true, SatisfiedMin: int(s.Min)}
		if s.MinSubGroup != nil {
			m.SatisfiedChildren = int(*s.MinSubGroup)
		}
		if _, isLeaf := tree.Leaf(s.Name); isLeaf {
			m.Bound = int(s.Placed)
		}
		memory[s.Name] = m
	}
	at := slices.IndexFunc(pg.Status.Conditions, func(c v2alpha2.PodGroupCondition) bool {
		return c.Type == v2alpha2.PodGroupScheduled && c.Status == metav1.ConditionTrue
	})
	if at < 0 {
		return memory
	}
	root := gang.Memory{Met: true}
	for _, child := range tree.Node(tree.Root()).Children {
		if memory[tree.Node(child).Name].Met {
			root.SatisfiedChildren++
		}
	}
	if pg.Spec.MinMember != nil && pg.Status.Conditions[at].ObservedGeneration == pg.Generation {
		root.SatisfiedMin = int(*pg.Spec.MinMember)
	}
	memory[tree.Node(tree.Root()).Name] = root

	return memory
}
