package manager_test

import (
	"debug/elf"
	"path/filepath"
	"testing"

	"github.com/arbor-control/arbor/test/cluster"
)

// What make build builds runs on every Linux: it asks for no C library. The
// manager of the other tests is another one, with the race detector, which does.
func TestProgramsAreStatic(t *testing.T) {
	for _, name := range []string{"arbor", "arbor-manager"} {
		f, err := elf.Open(filepath.Join(cluster.Root(), "bin", name))
		must(t, err)
		libraries, err := f.ImportedLibraries()
		must(t, err)
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s needs a dynamic linker, and %v", name, libraries)
			}
		}
		must(t, f.Close())
	}
}
