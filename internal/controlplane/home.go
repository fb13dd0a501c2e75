package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lastBreath is how long children of a killed parent may need to end.
const lastBreath = 15 * time.Second

// A home is the directory of one control plane, held by one run at a time.
//
// It is held by two locks, which the kernel releases when their last holder ends, in any way. The
// run itself holds the first alone. Its children inherit the second, so that after a killed run the
// next one can detect that its children are still ending.
type home struct {
	path     string
	lock     *os.File
	children *os.File
}

// holder is the content of the lock file, about the run that holds it.
type holder struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// state is what one run remembers for the next.
type state struct {
	Port int `json:"port"`
}

// Files that hold the directory.
const (
	lockFile     = "lock"
	childrenFile = "children.lock"
)

// openHome makes the directory and takes it. With trust, it may be of any origin.
func openHome(path string, trust bool) (*home, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot use directory %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("cannot use directory %s: %w; choose another with --dir", path, err)
	}
	if err := checkOwner(path, trust); err != nil {
		return nil, fmt.Errorf("cannot use directory %s: %w", path, err)
	}

	h := &home{path: path}
	if _, _, err := h.verify(trust); err != nil { // before anything is written to it
		return nil, fmt.Errorf("cannot use directory %s: %w", path, err)
	}
	if err := h.take(); err != nil {
		h.close()

		return nil, err
	}
	if err := h.claim(trust); err != nil {
		h.close()

		return nil, fmt.Errorf("cannot use directory %s: %w", path, err)
	}

	return h, nil
}

// take locks the directory.
func (h *home) take() error {
	var err error
	if h.lock, err = openLock(h.file(lockFile)); err != nil {
		return fmt.Errorf("cannot use directory %s: %w; choose another with --dir", h.path, err)
	}
	if h.children, err = openLock(h.file(childrenFile)); err != nil {
		return fmt.Errorf("cannot use directory %s: %w; choose another with --dir", h.path, err)
	}
	switch taken, err := flock(h.lock); {
	case err != nil:
		return fmt.Errorf("cannot lock directory %s: %w", h.path, err)
	case !taken:
		who := h.holder()

		return fmt.Errorf("directory %s is in use by process %d (arbor up, since %s): stop that one, or choose another with --dir",
			h.path, who.PID, who.Started.Local().Format(time.DateTime))
	}

	return nil
}

// settle waits until the children of an earlier run that was killed have ended,
// and signs.
func (h *home) settle(ctx context.Context, say func(string, ...any)) error {
	who := h.holder()
	deadline := time.Now().Add(lastBreath)
	for said := false; ; said = true {
		taken, err := flock(h.children)
		switch {
		case err != nil:
			return fmt.Errorf("cannot lock directory %s: %w", h.path, err)
		case taken:
			return h.sign()
		case time.Now().After(deadline):
			return fmt.Errorf("directory %s is still held by children of process %d, which is gone: end them, or choose another with --dir", h.path, who.PID)
		case !said:
			say("waiting for the children of process %d, which is gone, to end", who.PID)
		}
		if !sleep(ctx, poll) {
			return ctx.Err()
		}
	}
}

// openLock opens a file that is written to. One that leads elsewhere is rejected: a directory may come
// from an archive or a repository.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link: remove it", path)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !isPlain(info) {
		_ = f.Close()

		return nil, errors.Join(fmt.Errorf("%s is not a file, or has several names: remove it", path), err)
	}

	return f, nil
}

// isPlain reports whether a file is a regular one that has no other name.
func isPlain(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)

	return info.Mode().IsRegular() && (!ok || stat.Nlink == 1)
}

// flock takes a lock if it is free.
func flock(f *os.File) (taken bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}

	return err == nil, err
}

func (h *home) sign() error {
	data, err := json.Marshal(holder{PID: os.Getpid(), Started: time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := h.lock.Truncate(0); err != nil {
		return fmt.Errorf("cannot write %s: %w", h.lock.Name(), err)
	}
	if _, err := h.lock.WriteAt(data, 0); err != nil {
		return fmt.Errorf("cannot write %s: %w", h.lock.Name(), err)
	}

	return nil
}

func (h *home) holder() holder {
	var who holder
	data, err := os.ReadFile(h.lock.Name())
	if err == nil {
		// A holder that died before it wrote the file left nothing to read, which is reported as
		// PID 0.
		_ = json.Unmarshal(data, &who)
	}

	return who
}

func (h *home) close() {
	for _, f := range []*os.File{h.lock, h.children} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (h *home) file(elem ...string) string {
	return filepath.Join(append([]string{h.path}, elem...)...)
}

// remembered returns what the last run left, or nothing.
func (h *home) remembered() state {
	var s state
	data, err := os.ReadFile(h.file("state.json"))
	if err == nil {
		// A damaged file costs the old port number and nothing else.
		_ = json.Unmarshal(data, &s)
	}

	return s
}

func (h *home) remember(s state) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}

	return writeFile(h.file("state.json"), data)
}

// writeFile writes a private file at once: a reader sees the old or the new.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // fails when the rename below has moved it

	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}

	return nil
}

// readOrMake returns a file's content, made first if there is none.
func readOrMake(path string, build func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	data, err = build()
	if err != nil {
		return nil, err
	}

	return data, writeFile(path, data)
}
