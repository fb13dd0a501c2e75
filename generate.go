// Package arbor is the root of the module; it holds the list of everything
// that is generated. `make generate` runs it, `make test` fails when running it
// would change anything.
package arbor

//go:generate go tool -modfile=tools/generate/go.mod controller-gen object paths=./api/...
//go:generate go tool -modfile=tools/generate/go.mod controller-gen crd:maxDescLen=400 paths=./api/... output:crd:dir=api/crds
//go:generate go test ./test/words -run TestGlossary -update

// What the chart carries with it: Helm sees nothing outside of its folder.
//go:generate sh -c "rm -rf charts/arbor/files && mkdir -p charts/arbor/files/crds charts/arbor/files/rules charts/arbor/files/dashboards charts/arbor/files/policies"
//go:generate sh -c "cp api/crds/*.yaml charts/arbor/files/crds && cp monitoring/rules/*.yaml charts/arbor/files/rules && cp monitoring/dashboards/*.json charts/arbor/files/dashboards && cp api/policies/*.yaml charts/arbor/files/policies"

// The base for kustomize is what the chart makes of its own values. An overlay replaces the image.
//go:generate sh -c "bin/helm template arbor charts/arbor --namespace arbor-system --set image.repository=registry.example.com/arbor-manager | grep -v -e helm.sh/chart -e managed-by:.Helm -e ^#.Source >deploy/kustomize/arbor.yaml"

// The pages of docs/reference that list what the code has.
//go:generate go tool -modfile=tools/reference/go.mod crd-ref-docs --source-path=api --config=tools/reference/crd-ref-docs.yaml --renderer=markdown --output-mode=group --output-path=docs/reference/api --max-depth=20 --log-level=ERROR
//go:generate go run ./tools/docs

// The import rules that test/architecture checks, as tables for contributors.
//go:generate go run ./test/architecture/generate
