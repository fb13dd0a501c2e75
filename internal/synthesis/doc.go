// Package synthesis runs one synthesis of a Composition, from its inputs to the
// slices that become the current ones.
//
// A Runner reads the inputs (make.go), has the program executed, writes slices
// and promotes them by one write to the status (publish.go). What nobody waits for
// any more by then is not promoted. Why it failed, it writes to the status too.
//
// The manager has Runners for what it runs itself, and every pod of a synthesis
// has one. They do not know where they are: that is the business of the executor.
package synthesis
