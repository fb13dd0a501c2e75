// Package podtree reads the tree that the subgroups of a gang form.
//
// A gang lists its subgroups flat; each may name another one as its parent. Pods belong to the
// leaves, the entries that are not a parent:
//
// \tas it is written as it is meant
//
// \t{name: decode} (the gang)
// \t{name: workers, parent: decode} ├── decode
// \t{name: leaders, parent: decode} │ ├── workers <- pods
// \t{name: prefill} │ └── leaders <- pods
// \t └── prefill <- pods
//
// The package has two functions for such a list, which are separate on purpose:
//
//   - [Check] validates lists that people write. It is strict, and it
//     returns all violations at once, in an order that depends only on the
//     list.
//   - [New] builds the tree that a scheduler works with, also from lists that
//     were stored before validation existed. It is lenient where the meaning is
//     clear (a parent is looked up in lower case, an empty parent is the gang
//     itself) and returns an [Unusable] for the rest. It never builds a weaker
//     gang than the one that was requested.
//
// New always builds a tree of a list that passes Check, and both then resolve every parent to the
// same entry.
//
// # Case
//
// Check looks a parent up by its exact name. Only if that is missing does it take the first name
// that differs only by case. Such a pair always has a violation about its case, so the fallback
// never makes a list valid; it avoids a second message, that the parent was not found, which fixing
// the first would resolve. A missing parent or a cycle that remains after the case is fixed is
// reported in the same call.
//
// An empty name has a violation of its own, is never a duplicate, and matches no parent. Of several
// subgroups with one name, parents refer to the first.
//
// # Cost
//
// Both functions are linear in the list and do not recurse, so a chain of a million subgroups costs
// as much as a flat list.
package podtree
