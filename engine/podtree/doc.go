// Package podtree knows the tree that the subgroups of a gang form.
//
// A gang lists its subgroups flat; each may name another one as its parent.
// Pods belong to the entries that nobody names, the leaves:
//
//	as it is written                     as it is meant
//
//	{name: decode}                       (the gang)
//	{name: workers, parent: decode}      ├── decode
//	{name: leaders, parent: decode}      │   ├── workers   <- pods
//	{name: prefill}                      │   └── leaders   <- pods
//	                                     └── prefill       <- pods
//
// The package answers two questions about such a list, and keeps them apart
// on purpose:
//
//   - [Check] is the rule for lists that people write. It is strict, and it
//     returns everything that is wrong at once, in an order that depends on
//     nothing but the list.
//   - [New] builds the tree that a scheduler works with, also from lists that
//     were stored before there was a rule. It is lenient where the meaning is
//     plain (a parent is looked up in lower case, an empty parent is the gang
//     itself) and refuses the rest with an [Unusable]. It never makes up a
//     weaker gang than the one that was asked for.
//
// A list that passes Check always makes a tree, and Check and New then agree
// on what every parent means.
//
// # Case
//
// Check looks a parent up by its exact name. Only when there is none does it
// take the first name that differs by nothing but case. Such a pair always
// has a violation about its case already, so the fallback never lets a list
// pass; it avoids a second complaint, that the parent was not found, which
// mending the first would silence. What would still be wrong after the case
// is mended, a missing parent or a cycle, is reported in the same go.
//
// An empty name names nothing: it is a violation of its own, never a
// duplicate, and nobody's parent. Of several subgroups with one name, the
// first is the one that parents refer to.
//
// # Cost
//
// Both are linear in the list and use no recursion, so a chain of a million
// subgroups is as good as a flat list.
package podtree
