// Package synthesis runs one synthesis of a Composition, from its inputs to the
// slices that become the current ones.
//
// A Runner reads the inputs (make.go), executes the program, writes slices and promotes them by one
// write to the status (publish.go). A synthesis that was canceled or superseded by then is not
// promoted. A failure is written to the status too.
//
// The manager has Runners for what it runs itself, and every pod of a synthesis
// has one. They do not know where they are: that is the business of the executor.
package synthesis
