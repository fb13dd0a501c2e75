// The stock synthesizer "kustomize": see docs/tasks/stock-synthesizers.md.
package main

import (
	"os"

	"github.com/arbor-control/arbor/internal/stock/kustomize"
)

// release is set by the linker; see the Makefile.
var release = "development"

func main() { os.Exit(kustomize.Command(release).Main()) }
