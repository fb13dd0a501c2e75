package ipam

import (
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/tree"
)

// Ancestors returns a name of a pool and the names of the pools above it, the nearest
// first. read returns the pool of a name, or nil if it does not exist, which ends the path.
//
// Where parents form a cycle, each name is there once, and back is the index of the name that
// would come again; otherwise back is -1. There are no ancestors of the empty name.
func Ancestors(name string, read func(name string) (*v1alpha1.SubnetPool, error)) (path []string, back int, err error) {
	if name == "" {
		return nil, tree.None, nil
	}

	return tree.Path(name, func(name string) (string, bool, error) {
		p, err := read(name)
		if err != nil || p == nil {
			return "", false, err
		}

		return p.ParentName(), p.ParentName() != "", nil
	})
}
