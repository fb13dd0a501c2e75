package cli

import (
	"bytes"
	"context"
	"encoding/json"
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

var (
	errNoRecord = errors.New("it is not what a migration leaves behind")
	errNoLast   = errors.New("nothing was migrated that is not undone: name a file with --record")
)

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
		return "", bareFile("read", u.path, err)
	}

	for _, f := range slices.Backward(all) {
		if strings.HasSuffix(f.Name(), recordSuffix) {
			return filepath.Join(u.path, f.Name()), nil
		}
	}

	return "", fmt.Errorf("cannot undo the last migration: %w", errNoLast)
}

// A ledger is the file of one run, with a record on each line. A record is on
// the disk before what it is about is changed. That of a dry run has no file.
type ledger struct {
	name string
	file *os.File
	// settled is how much of the file is about what was really moved, and open
	// the records behind that.
	settled int64
	open    int
}

// create makes a file that nobody else has, of a given name or of one that says
// when it was. It is there before anything is changed, so that nothing is moved
// that could not be undone. Only its owner may read it: entries name all that is
// in an object.
func (u undoFolder) create(name string) (*ledger, error) {
	if name == "" {
		if err := os.MkdirAll(u.path, 0o700); err != nil {
			return nil, bareFile("make", u.path, err)
		}

		name = filepath.Join(u.path, u.now().UTC().Format("20060102T150405.000000000Z")+recordSuffix)
	}

	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, bareFile("make", name, err)
	}

	return &ledger{name: name, file: f}, nil
}

// Keep adds a record, as a [ownership.Journal].
func (l *ledger) Keep(_ context.Context, r ownership.Record) error { return l.add(r) }

func (l *ledger) add(r ownership.Record) error {
	l.open++

	data, err := json.Marshal(r)
	if err == nil {
		_, err = l.file.Write(append(data, '\n'))
	}

	if err := errors.Join(err, l.file.Sync()); err != nil {
		return bareFile("write", l.name, err)
	}

	return nil
}

// settle is told what of the last object was moved. A record of what was given
// up, because somebody else was faster, must not be left: undoing it later could
// take from somebody what nobody had given.
func (l *ledger) settle(moved []ownership.Record) error {
	if l.file == nil {
		return nil
	}

	if l.open != len(moved) {
		if err := l.file.Truncate(l.settled); err != nil {
			return bareFile("write", l.name, err)
		}

		for _, r := range moved {
			if err := l.add(r); err != nil {
				return err
			}
		}
	}

	info, err := l.file.Stat()
	if err != nil {
		return bareFile("read", l.name, err)
	}

	l.settled, l.open = info.Size(), 0

	return nil
}

// close returns the name of the file, "" if there is nothing to undo. Then there
// is no file either.
func (l *ledger) close() string {
	_ = l.file.Close()

	if l.settled+int64(l.open) == 0 {
		_ = os.Remove(l.name)

		return ""
	}

	return l.name
}

// readRecords reads a ledger. A last line without an end is one that was being
// written when the process ended: nothing was changed because of it.
func readRecords(name string) ([]ownership.Record, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, bareFile("read", name, err)
	}

	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	decoder := json.NewDecoder(bytes.NewReader(whole))

	var all []ownership.Record

	for decoder.More() {
		var r ownership.Record
		if err := decoder.Decode(&r); err != nil {
			return nil, bareFile("read", name, err)
		}

		if r.Name == "" || r.Fields.To.Manager == "" {
			return nil, bareFile("use", name, errNoRecord)
		}

		all = append(all, r)
	}

	if len(all) == 0 {
		return nil, bareFile("use", name, errNoRecord)
	}

	return all, nil
}

// bareFile names a file once.
func bareFile(verb, name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}

	return fmt.Errorf("cannot %s %s: %w", verb, name, err)
}
