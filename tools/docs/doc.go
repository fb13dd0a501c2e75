// Docs writes the generated pages of docs/reference from the source code: labels and annotations, conditions and
// events, metrics, and the commands of arbor. `make generate` runs it. It reads files only and needs no cluster.
//
// Pages about constants are made from their comments, so that a page is right when the comment is.
package main
