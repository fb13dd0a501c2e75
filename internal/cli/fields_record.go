package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/arbor-control/arbor/engine/fields"
)

// An undoRecord is what a migration leaves behind: what undoes it.
type undoRecord struct {
	Object ObjectRef     `json:"object"`
	Scope  fields.Scope  `json:"scope"`
	Record fields.Record `json:"record"`
}

const (
	recordSuffix = ".json"
	// undoneSuffix is put behind the name of a file that was used.
	undoneSuffix = ".undone"
)

var (
	errNoRecord = errors.New("it is not what a migration leaves behind")
	errNoLast   = errors.New("nothing was migrated that is not undone: name a file with --record")
)

// An undoFolder is where records are kept. Their names sort by time.
type undoFolder struct {
	path string
	now  func() time.Time
}

// newUndoFolder follows the XDG Base Directory Specification.
func newUndoFolder(getenv func(string) string) undoFolder {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		state = filepath.Join(getenv("HOME"), ".local", "state")
	}

	return undoFolder{path: filepath.Join(state, "arbor", "undo"), now: time.Now}
}

// A recordFile is there before there is anything to keep in it.
type recordFile struct {
	name string
	file *os.File
}

// create makes a file that nobody else has, of a given name or of one that says
// when it was and what it is about. Only its owner may read it: entries name
// all that is in an object.
func (u undoFolder) create(name string, target ObjectRef) (*recordFile, error) {
	if name == "" {
		if err := os.MkdirAll(u.path, 0o700); err != nil {
			return nil, bareFile("make", u.path, err)
		}

		name = filepath.Join(u.path, u.nameOf(target))
	}

	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, bareFile("make", name, err)
	}

	return &recordFile{name: name, file: f}, nil
}

// nameOf has nanoseconds, so that files of one run are told apart and sort.
// What is in a path only by its meaning is left out.
func (u undoFolder) nameOf(target ObjectRef) string {
	parts := []string{u.now().UTC().Format("20060102T150405.000000000Z"), strings.ToLower(target.Kind)}
	if target.Namespace != "" {
		parts = append(parts, target.Namespace)
	}

	text := strings.Join(append(parts, target.Name), "_")

	return strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator || hidden(r) {
			return '-'
		}

		return r
	}, text) + recordSuffix
}

// discard removes the file: there is nothing to undo.
func (f *recordFile) discard() {
	_ = f.file.Close()
	_ = os.Remove(f.name)
}

// write keeps a record. It is on the disk when this returns.
func (f *recordFile) write(r undoRecord) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		_, err = f.file.Write(append(data, '\n'))
	}

	if err := errors.Join(err, f.file.Sync(), f.file.Close()); err != nil {
		return bareFile("write", f.name, err)
	}

	return nil
}

// last is the newest record that was not undone.
func (u undoFolder) last() (string, error) {
	all, err := os.ReadDir(u.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", bareFile("read", u.path, err)
	}

	for _, f := range slices.Backward(all) {
		if strings.HasSuffix(f.Name(), recordSuffix) {
			return filepath.Join(u.path, f.Name()), nil
		}
	}

	return "", fmt.Errorf("cannot undo the last migration: %w", errNoLast)
}

// bareFile names a file once.
func bareFile(verb, name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}

	return fmt.Errorf("cannot %s %s: %w", verb, name, err)
}
