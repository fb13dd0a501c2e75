package fields

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/arbor-control/arbor/internal/ownership"
)

const (
	recordSuffix = ".jsonl"
	// undoneSuffix is put behind the name of a file that was used.
	undoneSuffix = ".undone"
)

var errNoLast = errors.New("nothing was migrated that is not undone: name a file with --record")

// An undoFolder is where records are kept. The names of files sort by time.
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

// last is the newest file that was not undone.
func (u undoFolder) last() (string, error) {
	all, err := os.ReadDir(u.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read %s: %w", u.path, bare(err))
	}

	for _, f := range slices.Backward(all) {
		if strings.HasSuffix(f.Name(), recordSuffix) {
			return filepath.Join(u.path, f.Name()), nil
		}
	}

	return "", fmt.Errorf("cannot undo the last migration: %w", errNoLast)
}

// create makes the file of a run, of a given name or of one that says when it was.
func (u undoFolder) create(name string) (*ownership.Ledger, error) {
	if name == "" {
		if err := os.MkdirAll(u.path, 0o700); err != nil {
			return nil, fmt.Errorf("cannot make %s: %w", u.path, bare(err))
		}

		name = filepath.Join(u.path, u.now().UTC().Format("20060102T150405.000000000Z")+recordSuffix)
	}

	return ownership.CreateLedger(name)
}

// bare is an error without the name of the file, which is said anyway.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}

	return err
}
