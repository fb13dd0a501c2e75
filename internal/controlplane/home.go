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
type home struct {
	path string
	lock *os.File
}

// holder is what the lock file says about the run that holds it.
type holder struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// state is what one run remembers for the next.
type state struct {
	Port int `json:"port"`
}

// openHome makes the directory and takes it.
func openHome(ctx context.Context, path string, say func(string, ...any)) (*home, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot use directory %s: %w", path, err)
	}
	for _, d := range []string{path, filepath.Join(path, "pki"), filepath.Join(path, "logs")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("cannot use directory %s: %w; choose another with --dir", path, err)
		}
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot use directory %s: %w; choose another with --dir", path, err)
	}

	h := &home{path: path, lock: f}
	if err := h.take(ctx, say); err != nil {
		_ = f.Close()

		return nil, err
	}

	return h, nil
}

// take locks the directory. Children hold the lock too, so when a parent was
// killed it can stay taken for the moment that they need to notice.
func (h *home) take(ctx context.Context, say func(string, ...any)) error {
	deadline := time.Now().Add(lastBreath)
	for said := false; ; said = true {
		err := syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return h.sign()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("cannot lock directory %s: %w", h.path, err)
		}

		who := h.holder()
		if alive(who.PID) {
			return fmt.Errorf("directory %s is in use by process %d (arbor up, since %s): stop that one, or choose another with --dir",
				h.path, who.PID, who.Started.Local().Format(time.DateTime))
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("directory %s is still held by children of process %d, which is gone: end them, or choose another with --dir", h.path, who.PID)
		}
		if !said {
			say("waiting for the children of process %d, which is gone, to end", who.PID)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
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
		// A holder that died before it signed left nothing to read; PID 0 says so.
		_ = json.Unmarshal(data, &who)
	}

	return who
}

func (h *home) close() {
	_ = h.lock.Close()
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

func alive(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
