package kustomize

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/yaml"
)

// Fields of a kustomization, by what they hold.
var (
	// roots are other kustomizations, or files. kustomize would clone what looks like
	// a repository.
	roots = []string{"resources", "bases", "components"}
	// paths are files, or YAML that stands right there.
	paths = []string{"crds", "configurations", "generators", "transformers", "validators", "patchesStrategicMerge"}
	// charts would be inflated by the program helm.
	charts = []string{"helmCharts", "helmChartInflationGenerator", "helmGlobals"}
)

// check looks for what kustomize would load from elsewhere or run, in the
// kustomization of a directory and in all that it refers to.
func (t tree) check(root string) error {
	if _, ok := t.kustomization(root); !ok {
		return fmt.Errorf("there is no %s in the directory %s", konfig.DefaultKustomizationFileName(), root)
	}

	return t.checkRoot(root, map[string]bool{})
}

// kustomization is the name of the file in a directory that says what to build.
func (t tree) kustomization(dir string) (string, bool) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if name = path.Join(dir, name); t.files[name] != nil {
			return name, true
		}
	}

	return "", false
}

func (t tree) checkRoot(dir string, seen map[string]bool) error {
	name, ok := t.kustomization(dir)
	if !ok || seen[dir] {
		return nil // kustomize says better what is wrong
	}
	seen[dir] = true
	var fields map[string]any
	if err := yaml.Unmarshal(t.files[name], &fields); err != nil {
		return fmt.Errorf("%s: invalid YAML: %w", name, plain(err))
	}
	if err := checkFields(name, fields); err != nil {
		return err
	}

	return t.checkRoots(dir, name, fields, seen)
}

// checkFields looks for charts and remote files in one kustomization.
func checkFields(name string, fields map[string]any) error {
	for _, field := range charts {
		if fields[field] != nil {
			return fmt.Errorf("%s: %s: kustomize does not render Helm charts here; use arbor-synthesizer-helm", name, field)
		}
	}
	for _, field := range paths {
		for i, entry := range list(fields[field]) {
			if text, ok := entry.(string); ok && isRemote(text) {
				return fmt.Errorf("%s: %s[%d]: %w", name, field, i, remote(text))
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if err := nested(fields[field], field); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}

	return nil
}

// checkRoots wants everything that is built to be in the tree.
func (t tree) checkRoots(dir, name string, fields map[string]any, seen map[string]bool) error {
	for _, field := range roots {
		for i, entry := range list(fields[field]) {
			text, ok := entry.(string)
			if !ok {
				continue // kustomize says better what is wrong
			}
			at := path.Join(dir, text)
			switch {
			case isRemote(text):
				return fmt.Errorf("%s: %s[%d]: %w", name, field, i, remote(text))
			case !t.has(at):
				return fmt.Errorf("%s: %s[%d]: there is no %s in the image, and remote bases cannot be used", name, field, i, at)
			}
			if err := t.checkRoot(at, seen); err != nil {
				return err
			}
		}
	}

	return nil
}

// has reports whether there is a file or a directory.
func (t tree) has(name string) bool {
	if t.files[name] != nil {
		return true
	}
	for file := range t.files {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}

	return false
}

// nested looks for files in generators, patches and replacements.
func nested(value any, at string) error {
	switch v := value.(type) {
	case []any:
		for i, entry := range v {
			if err := nested(entry, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := nestedField(v[key], key, at+"."+key); err != nil {
				return err
			}
		}
	}

	return nil
}

func nestedField(value any, key, at string) error {
	if !slices.Contains([]string{"path", "env", "envs", "files"}, key) {
		return nested(value, at)
	}
	entries := list(value)
	if text, ok := value.(string); ok {
		entries = []any{text}
	}
	for _, entry := range entries {
		text, _ := entry.(string)
		if _, file, ok := strings.Cut(text, "="); ok && key == "files" && !isRemote(text) {
			text = file
		}
		if isRemote(text) {
			return fmt.Errorf("%s: %w", at, remote(text))
		}
	}

	return nil
}

func list(v any) []any {
	l, _ := v.([]any)

	return l
}

// isRemote reports whether kustomize would load a file from elsewhere.
func isRemote(name string) bool {
	u, err := url.Parse(name)

	return err == nil && u.Scheme != "" && u.Host != ""
}

func remote(name string) error {
	if u, err := url.Parse(name); err == nil {
		name = u.Redacted()
	}

	return errors.New(name + " is remote, and remote bases and files cannot be used: put it into the image")
}
