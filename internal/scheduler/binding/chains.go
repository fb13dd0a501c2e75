package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/internal/scheduler/placement"
)

// chains groups members that share a claim, by their index: the PreBind plugins
// of the second member must see what those of the first have written. Members
// of a chain are in the order in which they were placed, so that no required
// member waits for an extra.
func chains(held []placement.Holding) [][]int {
	var all [][]int
	owner := map[string]int{} // claim to chain
	for m, h := range held {
		at := -1
		names := claims(h.Pod)
		for _, name := range names {
			if i, ok := owner[name]; ok {
				at = join(all, owner, at, i)
			}
		}
		if at < 0 {
			at = len(all)
			all = append(all, nil)
		}
		all[at] = append(all[at], m)
		for _, name := range names {
			owner[name] = at
		}
	}
	for _, chain := range all {
		slices.Sort(chain)
	}

	return slices.DeleteFunc(all, func(chain []int) bool { return len(chain) == 0 })
}

// join merges two chains and returns the index of the result.
func join(all [][]int, owner map[string]int, a, b int) int {
	if a < 0 || a == b {
		return b
	}
	all[a] = append(all[a], all[b]...)
	all[b] = nil
	for name, i := range owner {
		if i == b {
			owner[name] = a
		}
	}

	return a
}

// claims lists the objects that pods can share and that PreBind plugins write.
func claims(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, "resource/"+*c.ResourceClaimName)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, "volume/"+v.PersistentVolumeClaim.ClaimName)
		}
	}

	return names
}
