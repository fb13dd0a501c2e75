package rehearsal

import (
	"context"

	"github.com/arbor-control/arbor/internal/identity"
)

// A Server answers questions about single objects of any kind.
type Server interface {
	// Get returns an object.
	Get(ctx context.Context, ref identity.Ref) (map[string]any, error)
	// Find returns an object, in another version if its own is not served any more.
	Find(ctx context.Context, ref identity.Ref) (map[string]any, error)
	// Rehearse says what a write of the applier would make of an object, and
	// writes nothing.
	Rehearse(ctx context.Context, w Write) (map[string]any, error)
	// Scope reports whether a kind is namespaced, and whether the server knows it.
	Scope(group, kind string) (namespaced, known bool)
	// Annotate merges a patch into an object, as Arbor.
	Annotate(ctx context.Context, ref identity.Ref, patch []byte, dryRun bool) error
}

// A Write is a write that is only tried.
type Write struct {
	// Object is what is applied.
	Object map[string]any
	// Replace has it written as a whole instead, over what has that version.
	Replace string
	// Patch is a JSON patch of the object instead.
	Patch []byte
	// Manager is the field manager.
	Manager string
}
