// Package manifest reads Kubernetes manifests and remembers where every field
// stands.
//
// Sources converts the arguments of -f (files, folders, "-") to a sorted list of inputs. Each reads
// and parses them on all processors and passes every File to a function, whose results are returned
// in input order. A File is the Documents of one input and the Errors of the parts that could not
// be read: one bad document never hides the next.
//
// A Document holds plain JSON values, the same ones that kubectl would send:
// documents are cut at lines that begin with "---", scalars follow YAML 1.1
// ("yes" is true, 010 is eight), integral floats are integers, lists are
// flattened. Document.Line answers on which line a field such as
// spec.subGroups[2].parent is written.
//
// Input is not trusted: aliases may expand to a bounded number of values,
// nesting is bounded, and an anchor that contains itself is an error.
package manifest
