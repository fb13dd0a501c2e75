package delivery

import enov1 "github.com/arbor-control/arbor/api/eno/v1"

// LosesState reports whether the stored state of a resource lacks what is known of it, because
// another client has overwritten it. Differences in times and errors do not count: another
// manager delivers the same resource, and writes its own.
func LosesState(known, stored enov1.ResourceState) bool {
	return known.Reconciled && !stored.Reconciled ||
		known.Deleted && !stored.Deleted ||
		known.Ready != nil && stored.Ready == nil ||
		!stored.Deleted && (known.UID != "" && stored.UID == "" || known.Replaced != "" && stored.Replaced == "")
}
