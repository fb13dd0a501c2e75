// Package executor runs the programs of Synthesizers.
//
// An Executor takes a Job (a program and its input) and returns what the program wrote. It does not
// interpret the output: package krm parses it.
//
// Process runs the command on this machine, as the user who runs this one.
//
// Socket runs it on the other side of a unix socket, by the process that calls Serve there. In a
// pod these are two containers: the one that runs the program has nothing but the socket, and the
// one with credentials runs no program. See package publisher.
package executor
