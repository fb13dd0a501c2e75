package fields

import (
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Reason explains why a plan differs from its request.
type Reason string

const (
	// Lifted means that the scope is inside of Fields, which are atomic.
	Lifted Reason = "Lifted"
	// KeysUnknown means that the scope is inside of a list whose keys are unknown.
	KeysUnknown Reason = "KeysUnknown"
	// Subresource means that the entry was written through a subresource and is not changed.
	Subresource Reason = "Subresource"
	// OtherVersion means that the entry is in another version and is not changed. If it is the
	// applier's own, nothing can be moved to it.
	OtherVersion Reason = "OtherVersion"
	// Retagged means that the entry was in another version and was read as if it were in the
	// object's. If it is the applier's own, Fields were dropped from it, because the object does
	// not have them.
	Retagged Reason = "Retagged"
	// NeverMoved means that the scope includes Fields, which are never moved.
	NeverMoved Reason = "NeverMoved"
	// Untracked means that the object has no entries, and Fields are the first.
	Untracked Reason = "Untracked"
	// WouldBeEmpty means that nothing is changed, because no entry would be left.
	WouldBeEmpty Reason = "WouldBeEmpty"

	// Gone means that the object no longer has Fields, so they cannot be restored.
	Gone Reason = "Gone"
	// Taken means that Fields are not restored to the entry, because By holds them now.
	Taken Reason = "Taken"
)

// A Note explains a decision of a plan to a person.
type Note struct {
	Reason Reason
	// Entry is the entry that the note is about, or zero.
	Entry Identity
	// Version is the version of that entry, if the note is about versions.
	Version string
	// By is the manager that holds Fields, for Taken.
	By Identity
	// Fields are the fields that the note is about, nil for all.
	Fields *fieldpath.Set
}

// maxPaths is the maximum number of paths in the text of a note.
const maxPaths = 5

func (n Note) String() string {
	paths := n.paths()
	switch n.Reason {
	case Lifted:
		return paths + " can only be held as a whole; the scope is widened to it"
	case KeysUnknown:
		return paths + " is a list of which no manager names an item, so the keys of its items are unknown"
	case NeverMoved:
		return paths + " is in the scope and is never moved"
	case Untracked:
		return "the object has no entries; this makes the first"
	case WouldBeEmpty:
		return "nothing is changed: no entry would be left, and the server would drop all ownership"
	default:
		return fmt.Sprintf("%s %s", n.Entry, n.about(paths))
	}
}

// about returns the text of a note about an entry and some of its fields.
func (n Note) about(paths string) string {
	switch n.Reason {
	case Subresource:
		return fmt.Sprintf("keeps %s: fields written through a subresource are not moved", paths)
	case OtherVersion:
		return fmt.Sprintf("keeps %s: they are in version %s, which cannot be mixed with the object's", paths, n.Version)
	case Retagged:
		return fmt.Sprintf("was in version %s and is read in the version of the object: %s", n.Version, paths)
	case Gone:
		return fmt.Sprintf("cannot get %s back: the object no longer has them", paths)
	case Taken:
		return fmt.Sprintf("cannot get %s back: %s has them now", paths, n.By)
	default:
		return string(n.Reason)
	}
}

func (n Note) paths() string {
	all := FormatPaths(n.Fields)
	switch {
	case len(all) == 0:
		return "its fields"
	case len(all) > maxPaths:
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxPaths], ", "), len(all)-maxPaths)
	default:
		return strings.Join(all, ", ")
	}
}
