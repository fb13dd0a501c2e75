package observed

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// An Object is what a watch knows about an object.
type Object struct {
	// Known is true if there is a watch, which is current, and Present if the object exists.
	Known, Present bool
	// Unserved is true if the server does not serve the version of the kind any more, so that the
	// watch sees nothing.
	Unserved bool
	UID      types.UID
	Version  string
	// Own is a digest of the fields that we own, and Writer the other field manager that wrote last.
	Own, Writer string
	Deleting    bool
	// NoStatus is true if no field manager has written a status.
	NoStatus bool
}

// IsTerminating reports whether the object is being deleted, which a version did not show that is
// newer.
func (o Object) IsTerminating(version string) bool {
	return o.Deleting && !Older(o.Version, version)
}

// IsStill reports whether the object is not known to be newer than a version, "" for an object that
// did not exist.
func (o Object) IsStill(version string) bool {
	if !o.Present {
		return o.Known && version == ""
	}

	return o.reached(version)
}

// reached reports whether a version is that of the object, or newer.
func (o Object) reached(version string) bool {
	return o.Version == version || Older(o.Version, version)
}

// A Write is what the last write made of an object.
type Write struct {
	UID     types.UID
	Version string
	// OwnFields is the digest of the fields that we owned, "" if only the server knows them.
	OwnFields string
}

// IsSame reports whether an object is as it was written last, as far as we own it.
func (w Write) IsSame(seen Object) bool {
	switch {
	case seen.Unserved:
		return false
	case !seen.Known:
		return true // nothing is known that differs
	case !seen.Present:
		return false
	case seen.reached(w.Version):
		return true
	}

	return seen.UID == w.UID && seen.Own == w.OwnFields && w.OwnFields != "" && !seen.Deleting
}

// Older reports whether a resource version is before another. Those that cannot be compared are
// not.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)

	return err == nil && order < 0
}
