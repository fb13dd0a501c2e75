// Package stock is what the stock synthesizers have in common: programs that
// deliver plain manifests, a kustomization or a Helm chart without code of
// your own.
//
// A Command speaks the protocol of synthesizers. It reads the inputs from
// standard input, has a Renderer make objects of them and of the files of its
// image, and writes the objects to standard output. The Renderer runs twice:
// objects that differ between the two runs fail the synthesis, because they
// would differ in every synthesis, and be rolled out each time.
//
// Every error names the file, the document and the field. A failure is an error result of the
// ResourceList, so the status of the Composition shows that message and nothing around it.
//
// The package is small on purpose: package helm, a module of its own with
// other versions of Kubernetes, uses it too.
package stock
