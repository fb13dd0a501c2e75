// Package executor runs the programs of Synthesizers.
//
// An Executor takes a Job, what to run with which input, and returns what the
// program wrote. What that means is the business of others: package krm reads
// it.
//
// Process runs the command on this machine, as the user who runs this one.
//
// Socket has it run on the other side of a unix socket, by whoever calls Serve
// there. In a pod these are two containers: what runs the program has nothing but
// the socket, and what has credentials runs no program. See package publisher.
package executor
