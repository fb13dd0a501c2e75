// Command generate writes the import rules into the pages that show them. Run it in the root
// of the module.
package main

import (
	"fmt"
	"os"

	"github.com/arbor-control/arbor/test/architecture"
)

func main() {
	if err := architecture.Generate("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
