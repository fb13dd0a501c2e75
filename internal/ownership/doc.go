// Package ownership moves the ownership of fields on a real API server. Package
// fields of the engine decides what to move; this package reads, writes, checks
// the result, and restores the ownership if the apply fails.
//
//	CheckOwnership(object, scope, manager)        returns the owners of a part of an object
//	m := New(client, Options{Manager: "eno"})
//	m.Plan(ctx, Request{Object: o, Desired: d})   what would be moved, and what an apply does before and after that
//	m.Migrate(ctx, Request{…})                    does it
//	m.Undo(ctx, record)                           restores it, in another process if necessary
//
// # The order of a migration
//
//  1. Read the object, with its managed fields.
//  2. Apply the desired state, as a dry run. If that removes all it should, nothing
//     needs to be moved.
//  3. Plan, keep the record, write the entries: first as a dry run, then under
//     the resource version that was read. The object must have the entries as
//     planned, and no other change. The server responds with 200 to entries that it
//     ignores, so the object in the response is checked.
//  4. Apply the desired state, under the resource version of that write: first as a
//     dry run, then for real. Each time, the fields must be removed, and the manager
//     must own what it applies. In the end, what other managers hold and the apply
//     does not name must not have changed.
//  5. If the apply fails, or the dry run shows that it would not do what it should,
//     restore the entries. Once it is applied, nothing is restored.
//
// A connection can end after the server processed the request. So before anything is restored, the
// object is checked for an apply whose response was lost.
//
// After a lost race the migration starts again with the current object. Nothing is written if
// nothing has to be moved. Without a desired state there are only steps 1 and 3.
//
// # What the client has to be
//
// It needs only the permissions to get and to patch the object. It should read from the server and
// not from a cache. Caches often leave managed fields out; where the object seems to have none, the
// server is asked again.
//
// # Records
//
// A [Record] is what [Migrator.Undo] needs. It is kept in a [Journal] before anything is written,
// so that it survives this process. The Journal of this package writes files. An annotation would
// change the object, and its size permanently; a ConfigMap would need permissions that have nothing
// to do with the object, and would outlive it. Either can be implemented as a Journal of three
// lines.
//
// # Fights
//
// A manager that takes back what was moved, again and again, is left alone after
// a few rounds, and reported. After an hour of peace it is forgotten.
package ownership
