// Package source reads the objects that a command is about: from files, or from the cluster that the
// flags name.
//
// A [Scope] is where a command looks. A [Lister] lists objects of a cluster, so that tests run on objects in
// memory. An [Editor] changes objects of the address API.
package source
