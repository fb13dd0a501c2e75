package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// Binary returns the path of a built program. make test builds them; the
// variable, ARBOR for arbor, lets it hand in one with the race detector on.
func Binary(name, variable string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join(Root(), "bin", name)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built: run make build first: %w", name, err)
	}

	return path, nil
}

// Root is the directory of the module.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err) // a test without a working directory cannot go on
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			panic("there is no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}
