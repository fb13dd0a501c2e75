package licence_test

import (
	"testing"


	"github.com/arbor-control/arbor/tools/release/licence"
	"github.com/arbor-control/arbor/tools/release/product"
)

const root = "../../.."

// Everything that is linked into what is shipped has a licence that allows it.
func TestShipped(t *testing.T) {
	for _, p := range product.Platforms {
		modules, err := licence.Linked(t.Context(), root, p.OS, p.Arch, product.Packages(product.InRelease(root))...)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range licence.Check(modules) {
			t.Error(wrong)
		}
		for _, m := range modules {
			t.Log(m.Path, m.Version, m.IDs())
		}
	}
}
