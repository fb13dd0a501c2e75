// Package groups is the commands about pod groups: the trees that they form, what a scheduler would do
// with them, and the dump of a cluster that it can be asked about elsewhere.
package groups
