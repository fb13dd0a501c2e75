// Package arbor is the root of the module; it holds the list of everything
// that is generated. `make generate` runs it, `make test` fails when running it
// would change anything.
package arbor

//go:generate go tool -modfile=tools/generate/go.mod controller-gen object paths=./api/...
//go:generate go tool -modfile=tools/generate/go.mod controller-gen crd:maxDescLen=400 paths=./api/... output:crd:dir=api/crds
