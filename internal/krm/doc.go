// Package krm speaks the protocol of KRM functions: a program reads a
// ResourceList from standard input and writes one to standard output.
//
// Encode creates the input of the program: its input objects, each with the key by which the
// program knows it. Decode parses its output: manifests and messages (results). The output of a
// program is not trusted: every item is checked before any is used, and the first invalid one is
// named by its index and field.
package krm
