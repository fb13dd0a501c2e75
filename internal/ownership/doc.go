// Package ownership moves the ownership of fields on a real API server. What is
// to be moved is said by package fields of the engine; this package reads,
// writes, looks at what came of it, and puts it back if it was for nothing.
//
//	CheckOwnership(object, scope, manager)        who has a part of an object
//	m := New(client, Options{Manager: "eno"})
//	m.Plan(ctx, Request{Object: o, Desired: d})   what would be moved, and what an apply does before and after that
//	m.Migrate(ctx, Request{…})                    does it
//	m.Undo(ctx, record)                           puts it back, by another process if need be
//
// # The order of a migration
//
//  1. Read the object, with its managed fields.
//  2. Apply what is desired, as a dry run. If that works and leaves nothing
//     behind that should go, nothing needs to be moved.
//  3. Plan, keep the record, write the entries: first as a dry run, then under
//     the resource version that was read. The object must come back with the
//     entries as planned and otherwise as it was. The server says 200 to entries
//     that it ignores, so its answer is read, not believed.
//  4. Apply what is desired, under the resource version of that write: first as a
//     dry run, then for good. Each time, what should go must be gone, and the
//     manager must own what it applies. In the end, what others hold and the apply
//     does not name must be as it was.
//  5. If the apply fails, or the dry run shows that it would not do what it should,
//     put the entries back. Once it is done, nothing is put back.
//
// A connection can end after the server did what it was asked. So an apply that
// nobody answered is looked for in the object before anything is put back.
//
// Whoever loses a race begins again with what is there then. Nothing is written
// if nothing is to be moved. Without a desired state there are only steps 1 and
// 3.
//
// # What the client has to be
//
// It needs the rights to get and to patch the object, and no others. It should
// read from the server and not from a cache. Caches often leave managed fields
// out; where the object seems to have none, the server is asked again.
//
// # Records
//
// A [Record] is what [Migrator.Undo] needs. It is kept in a [Journal] before
// anything is written, so that it survives this process. The one that comes with
// this package writes files. An annotation would change the object, and the size
// of it for good; a ConfigMap would need rights that have nothing to do with the
// object, and would outlive it. Who wants either can write a Journal of three
// lines.
//
// # Fights
//
// A manager that takes back what was moved, again and again, is left alone after
// a few rounds, and reported. After an hour of peace it is forgotten.
package ownership
