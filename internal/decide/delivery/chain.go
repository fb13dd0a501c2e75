package delivery

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Chains returns the resources that are about one object, if there are several, by
// their places in the list and in the order in which they run: by readiness group,
// then a resource before its Patches, then in the order of the list. Tombstones are
// not among them.
func Chains(resources []*Resource) [][]int {
	by := map[Identity][]int{}
	var first []Identity
	for i, r := range resources {
		if r == nil || r.Tombstone {
			continue
		}
		if by[r.Target()] == nil {
			first = append(first, r.Target())
		}
		by[r.Target()] = append(by[r.Target()], i)
	}
	var all [][]int
	for _, target := range first {
		chain := by[target]
		if len(chain) < 2 {
			continue
		}
		slices.SortStableFunc(chain, func(a, b int) int {
			return cmp.Or(cmp.Compare(resources[a].ReadinessGroup, resources[b].ReadinessGroup), order(resources[a])-order(resources[b]))
		})
		all = append(all, chain)
	}

	return all
}

func order(r *Resource) int {
	if r.IsPatch() {
		return 1
	}

	return 0
}

// Supersedes reports whether a later member of a chain decides about something that
// an earlier one decides about too. The earlier one must not run again once the later
// one may: the two would undo each other. object is what the earlier one applies.
func Supersedes(later, earlier *Resource, object map[string]any) bool {
	switch {
	case later.Removes || earlier.Removes, later.Overridden() || earlier.Overridden():
		return true
	case !later.IsPatch():
		return true
	case earlier.IsPatch():
		return slices.ContainsFunc(later.paths, func(p string) bool {
			return slices.ContainsFunc(earlier.paths, func(q string) bool { return within(p, q) || within(q, p) })
		})
	}

	return slices.ContainsFunc(later.paths, func(p string) bool { return names(object, pointer(p)) })
}

// within reports whether one JSON pointer is below another, or the same.
func within(p, q string) bool { return p == q || strings.HasPrefix(p, q+"/") }

// pointer splits a JSON pointer.
func pointer(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.Split(text, "/")[1:]
	for i := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(all[i])
	}

	return all
}

// names reports whether an object has something at a path, or a value that the path
// leads through.
func names(object any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch at := object.(type) {
	case map[string]any:
		next, ok := at[path[0]]

		return ok && names(next, path[1:])
	case []any:
		i, err := strconv.Atoi(path[0])

		return err != nil || i >= len(at) || names(at[i], path[1:])
	}

	return true
}
