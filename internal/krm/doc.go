// Package krm speaks the protocol of KRM functions: a program reads a
// ResourceList from standard input and writes one to standard output.
//
// Encode makes what the program reads: its inputs, each with the key by which
// the program knows it. Decode reads what it wrote: manifests, and what it has
// to say (results). What a program writes is not trusted: every item is checked
// before any is used, and the first that is bad is named by its index and field.
package krm
