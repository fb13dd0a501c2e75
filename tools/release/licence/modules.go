// Package licence finds the licenses of everything that is linked into a program.
//
// Linked asks the go command for the modules, each with the license texts in the folders of the
// packages that are used and in their parents: code that a module has copied from elsewhere has its
// own license. Classify recognizes a text. Check reports what must not be shipped, and Notices
// writes what must be shipped along.
package licence

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// A Module is one that is linked. The standard library is one of them.
type Module struct {
	Path, Version string
	// Texts are its licenses, and notices that must be shipped with them.
	Texts []Text
}

// Std is the name of the standard library, as in common SBOMs.
const Std = "std"

// A Text is a file with the terms under which code may be used.
type Text struct {
	// Name is the path in the module.
	Name    string
	Content string
	// IDs are the licenses in it, by their SPDX identifiers.
	IDs []string
}

// IsNotice reports whether a text only accompanies a license: credits, and grants of patents that
// give more and take nothing.
func (t Text) IsNotice() bool { return notice.MatchString(filepath.Base(t.Name)) }

var (
	// Texts for documentation, which is not linked, end in .docs.
	named  = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice|patents)([.-](txt|md|mit|bsd|apache|libyaml|mpl-2\.0))?$`)
	notice = regexp.MustCompile(`(?i)^(notice|patents|copying\.md)`)
)

// IDs are the licenses of all texts of a module.
func (m Module) IDs() []string {
	var all []string
	for _, t := range m.Texts {
		all = append(all, t.IDs...)
	}
	slices.Sort(all)

	return slices.Compact(all)
}

// listed is a package as the go command knows it.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version string }
	}
}

// Linked returns the modules that packages of the module in dir are made of, for
// one platform, without C. The module itself, and those that it takes from folders
// next to it, are not among them.
func Linked(ctx context.Context, dir, goos, goarch string, packages ...string) ([]Module, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Dir,Standard,Module", "--"}, packages...)...) //nolint:gosec // the packages are those of the product
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list what %s are made of: %w\n%s", strings.Join(packages, " "), err, stderr.String())
	}
	all := map[string]*collected{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return finish(all)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read what the go command lists: %w", err)
		}
		if err := collect(all, p); err != nil {
			return nil, err
		}
	}
}

// collected is a module that is being gathered.
type collected struct {
	Module

	root string
	seen map[string]bool
}

func collect(all map[string]*collected, p listed) error {
	path, version, root, dir := Std, runtime.Version(), goroot(p.Dir), p.Dir
	switch {
	case p.Module != nil && (p.Module.Main || p.Module.Replace != nil && p.Module.Replace.Version == ""):
		return nil // Arbor itself; its other modules take it from a folder
	case p.Module != nil:
		path, version, root = p.Module.Path, p.Module.Version, p.Module.Dir
	case !p.Standard:
		return fmt.Errorf("%s is in no module, so its license is unknown", p.Dir)
	default:
		dir = root // code that the standard library has copied from elsewhere is under its license
	}
	m := all[path]
	if m == nil {
		m = &collected{Module: Module{Path: path, Version: version}, root: root, seen: map[string]bool{}}
		all[path] = m
	}

	return m.texts(dir)
}

// goroot is the folder of Go itself, which has the license, from that of a package of the standard
// library.
func goroot(dir string) string {
	root, _, _ := strings.Cut(filepath.ToSlash(dir), "/src/")

	return filepath.FromSlash(root)
}

// texts reads those in a folder and in all above it.
func (m *collected) texts(dir string) error {
	for ; !m.seen[dir]; dir = filepath.Dir(dir) {
		m.seen[dir] = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("cannot find the license of %s: %w", m.Path, err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !named.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return fmt.Errorf("cannot read the license of %s: %w", m.Path, err)
			}
			name, err := filepath.Rel(m.root, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			t := Text{Name: filepath.ToSlash(name), Content: string(data)}
			t.IDs = Classify(t.Content)
			m.Texts = append(m.Texts, t)
		}
		if dir == m.root {
			break
		}
	}

	return nil
}

func finish(all map[string]*collected) ([]Module, error) {
	modules := make([]Module, 0, len(all))
	for _, m := range all {
		slices.SortFunc(m.Texts, func(a, b Text) int { return cmp.Compare(a.Name, b.Name) })
		modules = append(modules, m.Module)
	}
	if len(modules) == 0 {
		return nil, errors.New("cannot list what the packages are made of: the go command named none")
	}
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })

	return modules, nil
}
