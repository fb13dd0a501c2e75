package ownership

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

var errNoRecord = errors.New("it is not what a migration leaves behind")

// A Ledger is a Journal in a file, with a record on each line. A record is on the
// disk before what it is about is changed. The zero Ledger has no file, and keeps
// nothing: it is for dry runs.
type Ledger struct {
	file *os.File
	// settled is how much of the file is about what was really moved, and open
	// the records behind that.
	settled int64
	open    int
}

// CreateLedger creates a new file. It exists before anything is changed, so that nothing is moved
// that could not be undone. Only its owner may read it: entries name all fields of an object.
func CreateLedger(name string) (*Ledger, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fileError("make", name, err)
	}

	return &Ledger{file: f}, nil
}

// Keep adds a record, as a [Journal].
func (l *Ledger) Keep(_ context.Context, r Record) error {
	if l.file == nil {
		return nil
	}

	return l.add(r)
}

func (l *Ledger) add(r Record) error {
	l.open++

	data, err := json.Marshal(r)
	if err == nil {
		_, err = l.file.Write(append(data, '\n'))
	}
	if err := errors.Join(err, l.file.Sync()); err != nil {
		return fileError("write", l.file.Name(), err)
	}

	return nil
}

// Settle records what of the last object was moved. The record of a migration that was abandoned,
// because another writer was faster, must not be left: undoing it later could take fields from a
// manager that never got them.
func (l *Ledger) Settle(moved []Record) error {
	if l.file == nil {
		return nil
	}

	if l.open != len(moved) {
		if err := l.file.Truncate(l.settled); err != nil {
			return fileError("write", l.file.Name(), err)
		}

		for _, r := range moved {
			if err := l.add(r); err != nil {
				return err
			}
		}
	}

	info, err := l.file.Stat()
	if err != nil {
		return fileError("read", l.file.Name(), err)
	}

	l.settled, l.open = info.Size(), 0

	return nil
}

// Close returns the name of the file, "" if there is nothing to undo. Then there
// is no file either.
func (l *Ledger) Close() string {
	_ = l.file.Close()

	if l.settled+int64(l.open) == 0 {
		_ = os.Remove(l.file.Name())

		return ""
	}

	return l.file.Name()
}

// ReadRecords reads a ledger. A last line without an end is one that was being
// written when the process ended: nothing was changed because of it.
func ReadRecords(name string) ([]Record, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fileError("read", name, err)
	}

	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	decoder := json.NewDecoder(bytes.NewReader(whole))

	var all []Record

	for decoder.More() {
		var r Record
		if err := decoder.Decode(&r); err != nil {
			return nil, fileError("read", name, err)
		}

		if r.Name == "" || r.Fields.To.Manager == "" {
			return nil, fileError("use", name, errNoRecord)
		}

		all = append(all, r)
	}

	if len(all) == 0 {
		return nil, fileError("use", name, errNoRecord)
	}

	return all, nil
}

// fileError names a file once.
func fileError(verb, name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}

	return fmt.Errorf("cannot %s %s: %w", verb, name, err)
}
