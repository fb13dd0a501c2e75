package fields

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Merge returns the entries as the server would keep them: one for each identity, none without
// fields, Apply before Update and then by time.
//
// Several entries of one identity become one that holds the union. Of several Apply entries of one
// manager in different versions the last counts, because paths of different versions cannot be
// mixed.
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

// compareEntries orders entries as the server does. It compares times as text, which is correct for
// the one format that the server writes.
func compareEntries(a, b Entry) int {
	return cmp.Or(
		strings.Compare(string(a.Operation), string(b.Operation)),
		strings.Compare(a.Time, b.Time),
		strings.Compare(a.Manager, b.Manager),
		strings.Compare(a.APIVersion, b.APIVersion),
		strings.Compare(a.Subresource, b.Subresource),
	)
}

// find returns the index of the entry with that identity, or -1.
func (es Entries) find(id Identity) int {
	return slices.IndexFunc(es, func(e Entry) bool { return e.Identity() == id })
}

// Equal reports whether both lists have the same identities with the same fields and versions. It
// ignores times, order, and entries without fields.
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

// same reports whether two sets have the same members. Set.Equals would also compare branches
// without members.
func same(a, b *fieldpath.Set) bool {
	return a.Equals(b) || a.Difference(b).Empty() && b.Difference(a).Empty()
}
