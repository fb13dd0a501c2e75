// Package plain delivers manifests as they are written: the synthesizer "yaml".
package plain

import (
	"flag"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/internal/stock"
)

// Command is the synthesizer. It reads the manifests of a directory, sorted by
// path, and then those of the inputs, in the order of the Synthesizer's refs.
func Command(release string) stock.Command {
	var dir string

	return stock.Command{
		Name: "arbor-synthesizer-yaml", Release: release,
		Register: func(flags *flag.FlagSet) {
			flags.StringVar(&dir, "dir", "/manifests", "Directory of the manifests: files named *.yaml, *.yml or *.json, also in directories below. Empty: only those of the inputs.")
		},
		Render: func(r stock.Request) (stock.Rendering, error) { return render(dir, r.Inputs) },
	}
}

func render(dir string, inputs []stock.Input) (stock.Rendering, error) {
	var out stock.Rendering
	found := 0
	add := func(prefix string, files map[string][]byte) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if !isManifest(name) {
				continue
			}
			found++
			objects, err := stock.Parse(path.Join(prefix, name), files[name])
			if err != nil {
				return err
			}
			out.Objects = append(out.Objects, objects...)
		}

		return nil
	}
	if dir != "" {
		files, err := stock.ReadDir(dir)
		if err != nil {
			return stock.Rendering{}, err
		}
		if err := add("", files); err != nil {
			return stock.Rendering{}, err
		}
	}
	for _, in := range inputs {
		if in.Files == nil {
			return stock.Rendering{}, fmt.Errorf("%s is a %s, and only ConfigMaps and Secrets can hold manifests", in, in.Kind)
		}
		if err := add(path.Join("inputs", in.Key), in.Files); err != nil {
			return stock.Rendering{}, err
		}
	}
	if found == 0 {
		// No file is a mistake in an image or a binding; a file without objects is a
		// decision.
		return stock.Rendering{}, fmt.Errorf("there are no manifests: no file in %s, and no entry of an input, is named *.yaml, *.yml or *.json", where(dir))
	}

	return out, nil
}

func where(dir string) string {
	if dir == "" {
		return "the inputs"
	}

	return dir
}

// isManifest reports whether a file holds manifests. Those in hidden directories,
// and hidden files, do not.
func isManifest(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return false
		}
	}

	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}
