// Package fields knows who owns which field of a Kubernetes object, what that
// does to a removal, and how to move ownership from one manager to another.
//
// The server keeps, in metadata.managedFields, one entry for each manager with
// the set of paths that the manager holds. Two managers can hold the same path.
// When one that applies no longer names something, the server removes it only
// if nobody else holds it, and that is decided path by path:
//
//	initContainers:                 eno       legacy     eno applies without it
//	- name: bash                    . name    . name     stays
//	  image: base:1                 image                goes
//	  command: [sh]                           command    stays
//
// What would be left is a container without an image, so the server refuses the
// whole apply: "image: Required value". Had legacy held the image as well, there
// would be no error, and the container would stay for ever. Neither force nor
// another apply helps, since the other entry stays what it is. The way out is to
// move the paths of that item from one entry to the other, and then to apply.
//
// This package says what is to be moved and what then happens. It reads entries
// and an object, and returns values: it has no client, and knows no schema.
//
//	entries := Read(object)                       what the server has
//	tree := New(object, entries)                  who owns every field
//	tree.CheckOwnership(scope, manager)           whether one owns all of a part
//	tree.Removals(manager, previous, next)        what an apply would remove, or not, and because of whom
//	plan := NewPlan(object, entries, request)     the entries to be written instead
//	Undo(object, entries, plan.Record())          those that put it back
//
// # Entries
//
// [Entries] are told apart by [Identity], as the server does it. They are
// merged before anything else. [Equal] compares what they mean. The server
// ignores a list with a single bad entry, and says 200; [Entries.Check] finds
// what it would take exception to.
//
// # Scopes
//
// A [Scope] is a part of an object, such as
// spec.template.spec.initContainers[name=~^aks-]. A scope that is inside of
// something that can only be held as a whole is taken as that, with a note.
// Status, finalizers and owner references are never moved, and entries of a
// subresource never touched.
//
// # Without a schema
//
// Sets tell most of what a schema would: k:{"name":"x"} is an item of a list
// with the key name, v:"x" a value of a set, and a path without anything below,
// where the object has something below, is held as a whole. What is known of a
// list in one item holds in all of them. Where sets do not tell, nothing is
// guessed from names, and the result says so ([Opaque], [KeysUnknown]).
//
// # How much is moved
//
// By default as little as will do: see [Needed]. An item is moved with all that
// is in it, so that it can go as one, and its siblings stay where they are. A
// field like replicas stays with whoever set it, even if it is in the scope.
// Paths that the object does not have are not moved: held by one who applies,
// they would take the list around them with them.
//
// # How it is known to be right
//
// The tests have the server's own merge code apply to random objects, and look
// for every value of the object in what comes out. A twin that does everything
// with lists of lines checks trees and plans.
//
// # Cost
//
// Everything is linear in the bytes of the object and its entries, but for
// sorting the fields of each node.
package fields
