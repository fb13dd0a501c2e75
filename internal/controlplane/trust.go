package controlplane

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// idFile has a secret that identifies a directory. A record of it, outside of the directory, is
// what an archive or a repository cannot contain. It moves with the directory, and is copied with
// it.
const idFile = "id"

// recordLife is how long the record of a directory is kept that is not where it was.
const recordLife = 90 * 24 * time.Hour

// mustTrust explains the risk of a directory, and what the user can do.
const mustTrust = "the Synthesizers in it would run their commands as you; if you trust it, start once with --trust-dir, or choose another with --dir"

// checkOwner rejects a directory of another user, unless the user trusts it: the owner can
// write to it, now and later.
func checkOwner(path string, trust bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() && !trust {
		return fmt.Errorf("it belongs to the user with ID %d, and that user can run commands as you by the Synthesizers in it; if you trust that user, start each time with --trust-dir, or choose another with --dir", owner.Uid)
	}

	return nil
}

// verify rejects a directory that arbor up of this user did not create, or that other users
// could write to, unless it is empty or the user trusts it. It returns the ID of the directory,
// and whether it is recorded.
func (h *home) verify(trust bool) (id string, known bool, err error) {
	info, err := os.Stat(h.path)
	if err != nil {
		return "", false, err
	}
	records, _ := recordDir()
	id, known = recorded(h.path, records)
	switch mode := info.Mode().Perm(); {
	case trust || h.empty():
	case mode&0o022 != 0:
		return "", false, fmt.Errorf("other users can write to it (mode %04o): %s", mode, mustTrust)
	case !known:
		return "", false, fmt.Errorf("it was created by an earlier release, or not by arbor up for you: %s", mustTrust)
	}

	return id, known, nil
}

// claim verifies the directory once more, now that it is locked. It then takes the permissions of
// other users from them, which os.MkdirAll does not, and records the directory.
func (h *home) claim(trust bool) error {
	id, known, err := h.verify(trust)
	if err != nil {
		return err
	}
	if err := h.tighten(trust); err != nil {
		return err
	}
	if !known {
		id = rand.Text()
		if err := writeFile(h.file(idFile), []byte(id)); err != nil {
			return err
		}
	}
	records, err := recordDir()
	if err != nil {
		return nil //nolint:nilerr // the next start needs --trust-dir
	}

	return record(records, id, h.path)
}

// tighten makes the directories private. Only their owner can do so: with trust, directories of
// other users are used as they are.
func (h *home) tighten(trust bool) error {
	for _, d := range []string{h.path, h.file("pki"), h.file("logs")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(d, 0o700); err != nil && (!trust || !errors.Is(err, fs.ErrPermission)) { //nolint:gosec // a directory
			return err
		}
	}

	return nil
}

// empty reports whether the directory has nothing in it but the locks.
func (h *home) empty() bool {
	entries, err := os.ReadDir(h.path)
	for _, e := range entries {
		if e.Name() != lockFile && e.Name() != childrenFile || !e.Type().IsRegular() {
			return false
		}
	}

	return err == nil
}

// recordDir is where directories are recorded.
func recordDir() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}

	return filepath.Join(state, "arbor", "directories"), nil
}

// recorded returns the ID of a directory, and whether it is recorded. An ID that is a link is that of
// another directory.
func recorded(path, records string) (string, bool) {
	file := filepath.Join(path, idFile)
	if info, err := os.Lstat(file); err != nil || !isPlain(info) || records == "" {
		return "", false
	}
	id, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	_, err = os.Stat(filepath.Join(records, recordName(string(id)))) //nolint:gosec // the name is a hash

	return string(id), err == nil
}

// recordName does not reveal the ID.
func recordName(id string) string {
	sum := sha256.Sum256([]byte(id))

	return hex.EncodeToString(sum[:])
}

// record writes down where a directory is. One that cannot be recorded, because the user
// may not write there, needs --trust-dir next time.
func record(records, id, path string) error {
	err := writeRecord(records, id, path)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}

	return err
}

// writeRecord also removes records of directories that were removed long ago.
func writeRecord(records, id, path string) error {
	if err := os.MkdirAll(records, 0o700); err != nil {
		return err
	}
	old, err := os.ReadDir(records)
	if err != nil {
		return err
	}
	for _, r := range old {
		file := filepath.Join(records, r.Name())
		info, err := r.Info()
		if err != nil || time.Since(info.ModTime()) < recordLife {
			continue
		}
		where, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if _, err := os.Stat(string(where)); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // it is only looked for
			_ = os.Remove(file) // another run may have been first
		}
	}

	return writeFile(filepath.Join(records, recordName(id)), []byte(path))
}
