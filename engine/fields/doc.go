// Package fields finds out which field manager owns which field of a Kubernetes object, how
// ownership affects a removal, and how to move ownership from one manager to another.
//
// The API server keeps, in metadata.managedFields, one entry for each manager with the set of paths
// that the manager holds. Two managers can hold the same path. When a manager applies an object
// without a path that it held, the server removes the path only if no other manager holds it, and
// decides that path by path:
//
// \tinitContainers: eno legacy eno applies without it
// \t- name: bash . name . name stays
// \t image: base:1 image is removed
// \t command: [sh] command stays
//
// The result is a container without an image, so the server rejects the whole apply: "image:
// Required value". If legacy held the image as well, the apply would succeed and the container
// would stay forever. Neither force nor another apply helps, because the other entry does not
// change. The solution is to move the paths of that item from one entry to the other, and then to
// apply.
//
// This package plans what to move and predicts the result. It reads entries and an object, and
// returns values: it has no client and needs no schema.
//
// \tentries := Read(object) the entries that the server has
// \ttree := New(object, entries) the owners of every field
// \ttree.CheckOwnership(scope, manager) whether one manager owns all of a scope
// \ttree.Removals(manager, previous, next) what an apply removes, and which managers prevent the
// rest
// \tplan := NewPlan(object, entries, request) the entries to write instead
// \tUndo(object, entries, plan.Record()) the entries that restore the ownership
//
// # Entries
//
// [Entries] are distinguished by [Identity], as in the server, and merged before anything else.
// [Equal] compares their meaning. The server ignores a whole list that has one invalid entry, and
// responds with status 200; [Entries.Check] finds such entries.
//
// # Scopes
//
// A [Scope] selects fields of an object, such as spec.template.spec.initContainers[name=~^aks-]. A
// scope inside an atomic field is widened to that field, with a note. Status, finalizers and owner
// references are never moved, and entries of a subresource are never changed.
//
// # Without a schema
//
// Sets reveal most of a schema: k:{"name":"x"} is an item of a list with the key name, v:"x" is a
// value of a set, and a path with nothing below it, where the object has something below it, is
// atomic. All items of a list have the same structure. Where sets do not reveal the structure,
// nothing is guessed from names, and the result reports that ([Opaque], [KeysUnknown]).
//
// # How much is moved
//
// By default a plan moves only what is [Needed]. An item is moved with everything in it, so that it
// can be removed as a whole, and its siblings stay with their managers. A field like replicas stays
// with the manager that set it, even if it is in the scope. Paths that the object does not have are
// not moved: if a manager that applies held them, its next apply would remove the list around them.
//
// # Tests
//
// The tests apply random objects with the server's own merge code, and look for every value of the
// object in the result. A second implementation that works on lists of lines checks trees and
// plans.
//
// # Cost
//
// Everything is linear in the size of the object and its entries, except for sorting the fields of
// each node.
package fields
