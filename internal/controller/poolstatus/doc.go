// Package poolstatus keeps the status of SubnetPools true. It is the only
// writer of it.
//
// A pool is looked at again when
//
//  1. a Subnet of it is created, changed or deleted,
//  2. a child pool of it is deleted,
//  3. a child pool of it is created or its spec changes,
//  4. its own spec changes,
//  5. somebody asks for it, by POST /recalculate,
//  6. the last look failed.
//
// A look reads counters of a view that the same events keep current, and never
// lists Subnets: it costs the same for ten and for fifty thousand of them.
package poolstatus
