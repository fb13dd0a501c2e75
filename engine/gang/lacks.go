package gang

import "github.com/arbor-control/arbor/engine/podtree"

// Lacks returns for each node of the tree what it lacks, nil for those for which
// enough pods exist. Pods of a node that lacks some are never tried.
func Lacks(tree *podtree.Tree, members []Member, rules Rules) []*Lack {
	c := count(tree, members, rules)
	all := make([]*Lack, tree.Len())
	for i := range all {
		if !c.enough(i) {
			all[i] = c.lack(i)
		}
	}

	return all
}
