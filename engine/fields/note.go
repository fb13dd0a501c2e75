package fields

import (
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Reason is why a plan is other than one might expect.
type Reason string

const (
	// Lifted : the scope is inside of Fields, which can only be held as a whole.
	Lifted Reason = "Lifted"
	// KeysUnknown : the scope is inside of a list, and nothing tells what its
	// items are known by.
	KeysUnknown Reason = "KeysUnknown"
	// Subresource : the entry was written through a subresource and is left
	// alone.
	Subresource Reason = "Subresource"
	// OtherVersion : the entry is in another version and is left alone. If it is
	// the applier's own, nothing can be moved to it.
	OtherVersion Reason = "OtherVersion"
	// Retagged : the entry was in another version and was read as if it were in
	// the object's. If it is the applier's own, Fields are what was left out of
	// it, because the object does not have them.
	Retagged Reason = "Retagged"
	// NeverMoved : the scope includes Fields, which are never moved.
	NeverMoved Reason = "NeverMoved"
	// Untracked : the object has no entries, and Fields are the first.
	Untracked Reason = "Untracked"
	// WouldBeEmpty : nothing is changed, because no entry would be left.
	WouldBeEmpty Reason = "WouldBeEmpty"

	// Gone : the object no longer has Fields, so they cannot be put back.
	Gone Reason = "Gone"
	// Taken : Fields are not put back to the entry, because By has them now.
	Taken Reason = "Taken"
)

// A Note is something about a plan that a person should know.
type Note struct {
	Reason Reason
	// Entry that it is about; nobody if it is about none.
	Entry Identity
	// Version of that entry, if it is about versions.
	Version string
	// By is who has Fields, for Taken.
	By Identity
	// Fields that it is about; nil if it is about all.
	Fields *fieldpath.Set
}

// maxPaths is how many paths a note names.
const maxPaths = 5

func (n Note) String() string {
	paths := n.paths()
	switch n.Reason {
	case Lifted:
		return paths + " can only be held as a whole; the scope is taken as that"
	case KeysUnknown:
		return paths + " is a list of which no manager names an item; nothing tells what the items are known by"
	case NeverMoved:
		return paths + " is in the scope and is never moved"
	case Untracked:
		return "the object has no entries; this makes the first"
	case WouldBeEmpty:
		return "nothing is changed: no entry would be left, and the server would forget who owned what"
	default:
		return fmt.Sprintf("%s %s", n.Entry, n.about(paths))
	}
}

// about is a clause about an entry and some of its fields.
func (n Note) about(paths string) string {
	switch n.Reason {
	case Subresource:
		return fmt.Sprintf("keeps %s: what is written through a subresource is left alone", paths)
	case OtherVersion:
		return fmt.Sprintf("keeps %s: they are in version %s, which cannot be mixed with the object's", paths, n.Version)
	case Retagged:
		return fmt.Sprintf("was in version %s and is read in the object's: %s", n.Version, paths)
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
