// Package health reports what is wrong with Arbor in a cluster, and what to do about it. It is a
// function of Facts that the caller collects.
//
// What could not be read is neither right nor wrong: such a check is Unknown, and names who could
// read it.
package health
