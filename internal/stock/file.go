package stock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/arbor-control/arbor/internal/manifest"
)

// maxFiles is how much a directory may hold in all. One that holds more is the
// wrong one, such as /.
const maxFiles = 64 << 20

// ReadDir reads all files of a directory and of those below it, by their paths
// with slashes. It leaves out .git and what Kubernetes keeps behind mounted
// ConfigMaps (..data). Links are followed within the directory.
func ReadDir(dir string) (map[string][]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the directory %s: %w; put the files there, or set --dir", dir, bare(err))
	}
	defer root.Close()
	all, size := map[string][]byte{}, 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path.Join(dir, name), bare(err))
		}
		if base := path.Base(name); strings.HasPrefix(base, "..") || base == ".git" {
			return skip(d)
		}
		if d.IsDir() {
			return nil
		}
		info, err := root.Stat(name)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path.Join(dir, name), bare(err))
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		if size += int(info.Size()); size > maxFiles {
			return fmt.Errorf("cannot read the directory %s: it holds more than %d MiB", dir, maxFiles>>20)
		}
		if all[name], err = root.ReadFile(name); err != nil {
			return fmt.Errorf("cannot read %s: %w", path.Join(dir, name), bare(err))
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	return all, nil
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}

	return nil
}

// bare drops the operation and the path of a file system error.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}

	return err
}

// Parse reads the objects of a file, in the order in which they stand there.
// Lists are flattened. A key that is set twice in one map is an error.
func Parse(name string, data []byte) ([]Object, error) {
	all, twice, err := ParseRendered(name, data)
	if err == nil && len(twice) > 0 {
		err = errors.New(twice[0])
	}
	if err != nil {
		return nil, err
	}

	return all, nil
}

// ParseRendered is Parse for what templates made. Of a key that is set twice, the
// last value counts, as it does for Helm and kubectl; such keys are returned.
func ParseRendered(name string, data []byte) (all []Object, twice []string, err error) {
	file := manifest.Parse(name, data)
	if problem := first(file.Errors, file.Ignored); problem != nil {
		if problem.Fix != "" {
			return nil, nil, fmt.Errorf("%s, line %d: %w (%s)", name, problem.Line, problem.Err, problem.Fix)
		}

		return nil, nil, fmt.Errorf("%s, line %d: %w", name, problem.Line, problem.Err)
	}
	for i, d := range file.Documents {
		source := fmt.Sprintf("%s, document %d, line %d", name, i+1, d.Line(""))
		for _, key := range d.Duplicates {
			twice = append(twice, fmt.Sprintf("%s: %s is set twice, on lines %d and %d", source, key.Field, key.First, key.Line))
		}
		all = append(all, Object{Source: source, Content: d.Object})
	}

	return all, twice, nil
}

// first is the problem that comes first in the file.
func first(lists ...[]*manifest.Error) *manifest.Error {
	var found *manifest.Error
	for _, l := range lists {
		for _, e := range l {
			if found == nil || e.Line < found.Line {
				found = e
			}
		}
	}

	return found
}
