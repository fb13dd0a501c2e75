package fields

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Merge returns the entries as the server would keep them: one of an identity,
// none without fields, Apply before Update and then by time.
//
// Several entries of one identity become one that holds what any of them
// holds. Of entries of one applier in several versions the last counts, since
// paths of different versions cannot be mixed.
func (es Entries) Merge() Entries {
	at := map[Identity]int{}
	merged := make(Entries, 0, len(es))
	for _, e := range es {
		id := e.Identity()
		i, ok := at[id]
		switch {
		case !ok:
			at[id] = len(merged)
			merged = append(merged, e)
		case merged[i].APIVersion == e.APIVersion:
			merged[i].Time = max(merged[i].Time, e.Time)
			merged[i].Fields = merged[i].fields().Union(e.fields())
		default:
			merged[i] = e
		}
	}
	merged = slices.DeleteFunc(merged, func(e Entry) bool { return e.fields().Empty() })
	slices.SortStableFunc(merged, compareEntries)

	return merged
}

// compareEntries is the order in which the server keeps entries. Times are
// compared as text, which is right for the one form that the server writes.
func compareEntries(a, b Entry) int {
	return cmp.Or(
		strings.Compare(string(a.Operation), string(b.Operation)),
		strings.Compare(a.Time, b.Time),
		strings.Compare(a.Manager, b.Manager),
		strings.Compare(a.APIVersion, b.APIVersion),
		strings.Compare(a.Subresource, b.Subresource),
	)
}

// find returns the index of the entry of that identity, or -1.
func (es Entries) find(id Identity) int {
	return slices.IndexFunc(es, func(e Entry) bool { return e.Identity() == id })
}

// Equal says whether both lists mean the same: who holds what, in which
// version. Times, order, and entries without fields mean nothing.
func Equal(a, b Entries) bool {
	a, b = a.Merge(), b.Merge()
	if len(a) != len(b) {
		return false
	}
	for _, e := range a {
		i := b.find(e.Identity())
		if i < 0 || b[i].APIVersion != e.APIVersion || !same(e.Fields, b[i].Fields) {
			return false
		}
	}

	return true
}

// same says whether two sets have the same members. Equals would tell sets
// apart by branches without any.
func same(a, b *fieldpath.Set) bool {
	return a.Equals(b) || a.Difference(b).Empty() && b.Difference(a).Empty()
}
