package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Stdin is the name of standard input in files and messages.
const Stdin = "<stdin>"

// A Source is one input that can be read.
type Source struct {
	Name string
	read func() ([]byte, error)
}

// Sources lists the inputs behind the paths that a user gave, each once, in
// the order given. A folder stands for the manifests below it in sorted
// order, hidden folders excepted, and "-" for stdin. A path that cannot be
// used is a Source whose reading fails.
func Sources(paths []string, stdin io.Reader) []Source {
	var out []Source

	seen := map[string]bool{}
	add := func(key string, s Source) {
		if !seen[key] {
			seen[key] = true
			out = append(out, s)
		}
	}

	for _, p := range paths {
		if p == "-" {
			add(Stdin, Source{Name: Stdin, read: func() ([]byte, error) { return io.ReadAll(stdin) }})

			continue
		}

		for _, s := range under(p) {
			add(filepath.Clean(s.Name), s)
		}
	}

	return out
}

// under lists the inputs of one path.
func under(path string) []Source {
	info, err := os.Stat(path)
	if err != nil {
		return []Source{broken(path, err)}
	}

	if !info.IsDir() {
		return []Source{fileSource(path)}
	}

	var out []Source

	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			out = append(out, broken(name, err))
		case d.IsDir():
			if name != path && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
		case isManifest(name, d):
			out = append(out, fileSource(name))
		}

		return nil
	})
	if err != nil {
		out = append(out, broken(path, err))
	}

	if len(out) == 0 {
		out = append(out, broken(path, errors.New("no .yaml, .yml or .json files in this folder")))
	}

	return out
}

// isManifest is true for regular files with a fitting name, and for links to such files: anything
// else could block forever when it is opened.
func isManifest(name string, d fs.DirEntry) bool {
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		return false
	}

	if d.Type()&fs.ModeSymlink != 0 {
		info, err := os.Stat(name)

		return err != nil || info.Mode().IsRegular()
	}

	return d.Type().IsRegular()
}

func fileSource(name string) Source {
	return Source{Name: name, read: func() ([]byte, error) { return os.ReadFile(name) }}
}

func broken(name string, err error) Source {
	return Source{Name: name, read: func() ([]byte, error) { return nil, err }}
}

// File reads and parses the source.
func (s Source) File() File {
	data, err := s.read()
	if err != nil {
		return File{Name: s.Name, Errors: []*Error{{Unreadable: true, Err: fmt.Errorf("cannot read: %w", bare(err))}}}
	}

	return Parse(s.Name, data)
}

// bare drops the operation and the path of a file system error, which repeat the name of the file.
func bare(err error) error {
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // only the outermost one repeats the name
		return p.Err
	}

	return err
}

// Each reads every source, on all processors, and returns the results of fn in the order of the
// sources. fn runs concurrently. When ctx ends Each returns its error immediately, even if a read
// never returns, as from an idle terminal: the process is expected to end then.
func Each[T any](ctx context.Context, sources []Source, fn func(File) T) ([]T, error) {
	var (
		out  = make([]T, len(sources))
		done = make(chan struct{})
		next atomic.Int64
		wg   sync.WaitGroup
	)

	for range min(runtime.GOMAXPROCS(0), len(sources)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(sources)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				out[i] = fn(sources[i].File())
			}
		})
	}

	go func() {
		wg.Wait()
		close(done)
	}()

	select {
	case <-done:
	case <-ctx.Done():
	}

	if err := ctx.Err(); err != nil {
		return nil, err
	}

	return out, nil
}
