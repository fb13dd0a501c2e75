package architecture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/arbor-control/arbor"
)

// A graph holds packages by import path.
type graph map[string]listed

// listed is a package as `go list` shows it.
type listed struct {
	ImportPath                         string
	Name                               string
	Imports, TestImports, XTestImports []string
}

// check returns a message per violation, in order.
func check(g graph, rules []rule) []string {
	var found []string
	for _, p := range slices.Sorted(maps.Keys(g)) {
		if !isOurs(short(p)) {
			continue
		}
		reached, from := g.reach(p)
		for _, r := range rules {
			if within(p, r.in) && !anyWithin(p, r.except) {
				for _, v := range r.check(g[p], reached, from) {
					found = append(found, short(p)+" "+v+": "+r.why)
				}
			}
		}
	}

	return found
}

// check applies a rule to a package. reached and from are results of reach.
func (r rule) check(l listed, reached []string, from map[string]string) []string {
	var found []string
	for _, name := range r.never {
		// One example is enough: it is a nearest one.
		if i := slices.IndexFunc(reached, func(d string) bool { return within(d, name) && !r.allows(d) }); i >= 0 {
			found = append(found, "reaches "+chain(from, reached[i]))
		}
	}
	for _, d := range l.Imports {
		if anyWithin(d, r.direct) && !r.allows(d) {
			found = append(found, "imports "+short(d))
		}
	}
	for _, d := range slices.Concat(l.TestImports, l.XTestImports) {
		if anyWithin(d, r.tests) && !r.allows(d) {
			found = append(found, "imports "+short(d)+" in a test")
		}
	}

	return found
}

func (r rule) allows(d string) bool {
	return anyWithin(d, r.allow) || r.in != everything && within(d, r.in)
}

// reach returns everything that p reaches, the nearest first, and for each the package that
// imports it on a shortest path from p.
func (g graph) reach(p string) (reached []string, from map[string]string) {
	from = map[string]string{p: ""}
	for queue := []string{p}; len(queue) > 0; queue = queue[1:] {
		for _, d := range g[queue[0]].Imports {
			if _, seen := from[d]; !seen {
				from[d] = queue[0]
				reached, queue = append(reached, d), append(queue, d)
			}
		}
	}

	return reached, from
}

// chain writes d, and the packages through which it is reached.
func chain(from map[string]string, d string) string {
	var between []string
	for at := from[d]; from[at] != ""; at = from[at] {
		between = append(between, short(at))
	}
	if len(between) == 0 {
		return short(d)
	}
	slices.Reverse(between)

	return short(d) + " through " + strings.Join(between, ", ")
}

// within reports whether the package p is the one that name stands for, or below.
func within(p, name string) bool {
	if name == notStd {
		first, _, _ := strings.Cut(p, "/")

		return strings.Contains(first, ".")
	}
	name = long(name)

	return p == name || strings.HasPrefix(p, name+"/")
}

func anyWithin(p string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return within(p, name) })
}

func isOurs(name string) bool { return strings.HasPrefix(name, everything) }

// long turns ./engine into the import path.
func long(name string) string {
	if !isOurs(name) {
		return name
	}

	return strings.TrimSuffix(module+strings.TrimPrefix(name, "."), "/")
}

// short turns an import path of this module into ./engine.
func short(p string) string {
	if rest, ok := strings.CutPrefix(p+"/", module+"/"); ok {
		return everything + strings.TrimSuffix(rest, "/")
	}

	return p
}

// load returns every package of the module and all that they import.
func load(t *testing.T) graph {
	t.Helper()
	touch(t)
	g, err := list()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	if _, ok := g[module]; !ok {
		t.Fatalf("%s is not in the list of packages", module)
	}

	return g
}

// list asks the go command, once.
var list = sync.OnceValues(func() (graph, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-deps", "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.String())
	}

	g := graph{}
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var l listed
		err := d.Decode(&l) //nolint:musttag // the go command writes Go's own names
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return nil, err
		}
		g[l.ImportPath] = l
	}
})

// touch reads every folder with code, because the go command then knows that a passed test
// must run again when a file has changed. It does not see what the commands that a test runs
// have read.
func touch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := len(d.Name()) > 1 && d.Name()[0] == '.' && d.Name() != ".."; d.IsDir() && (hidden || d.Name() == "bin") {
			return fs.SkipDir
		}

		return nil
	})
	if err != nil {
		t.Fatalf("cannot read the folders: %v", err)
	}
}
