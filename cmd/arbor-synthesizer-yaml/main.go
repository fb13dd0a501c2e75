// The stock synthesizer "yaml": see docs/tasks/stock-synthesizers.md.
package main

import (
	"os"

	"github.com/arbor-control/arbor/internal/stock/plain"
)

// release is set by the linker; see the Makefile.
var release = "development"

func main() { os.Exit(plain.Command(release).Main()) }
