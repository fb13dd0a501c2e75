package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stateDir has directories recorded in one of the test's own.
func stateDir(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
}

func open(t *testing.T, dir string, trust bool) error {
	t.Helper()
	h, err := openHome(dir, trust)
	if err == nil {
		h.close()
	}

	return err
}

func mustOpen(t *testing.T, dir string, trust bool) {
	t.Helper()
	if err := open(t, dir, trust); err != nil {
		t.Fatal(err)
	}
}

// plant makes a directory as a repository or an archive brings it.
func plant(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".arbor")
	for _, d := range []string{dir, filepath.Join(dir, "etcd"), filepath.Join(dir, "pki")} {
		if err := os.Mkdir(d, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "id"), []byte("MADE-UP"), 0o600); err != nil {
		t.Fatal(err)
	}

	return dir
}

func TestTrust(t *testing.T) {
	planted := func(mode os.FileMode) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Helper()

			return plant(t, mode)
		}
	}
	linked := func(link func(from, to string) error) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			own := filepath.Join(t.TempDir(), "own")
			mustOpen(t, own, false)
			dir := plant(t, 0o755)
			if err := os.Remove(filepath.Join(dir, "id")); err != nil {
				t.Fatal(err)
			}
			if err := link(filepath.Join(own, "id"), filepath.Join(dir, "id")); err != nil {
				t.Fatal(err)
			}

			return dir
		}
	}
	const foreign, writable = "not by arbor up for you", "other users can write to it"
	cases := map[string]struct {
		reason string
		dir    func(t *testing.T) string
		trust  bool
		want   string // "" means that it is used
	}{
		"New": {"A directory that does not exist is created.", func(t *testing.T) string {
			t.Helper()

			return filepath.Join(t.TempDir(), "a", "b")
		}, false, ""},
		"Empty": {"There is nothing to be afraid of in an empty one.", (*testing.T).TempDir, false, ""},
		"Again": {"It was used before.", func(t *testing.T) string {
			t.Helper()
			dir := t.TempDir()
			mustOpen(t, dir, false)

			return dir
		}, false, ""},
		"Moved": {"Its user has moved it.", func(t *testing.T) string {
			t.Helper()
			dir, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
			mustOpen(t, dir, false)
			if err := os.Rename(dir, to); err != nil {
				t.Fatal(err)
			}

			return to
		}, false, ""},
		"Copied": {"Its user has copied it.", func(t *testing.T) string {
			t.Helper()
			dir, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
			mustOpen(t, dir, false)
			if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(to, 0o755); err != nil { //nolint:gosec // as copying does
				t.Fatal(err)
			}

			return to
		}, false, ""},
		"Cloned":   {"git checks out directories that others can read.", planted(0o755), false, foreign},
		"Unpacked": {"An archive can bring any mode, and any ID.", planted(0o700), false, foreign},
		"Linked":   {"A symbolic link shows the ID of a directory that is trusted.", linked(os.Symlink), false, foreign},
		"Named":    {"A hard link does so, too.", linked(os.Link), false, foreign},
		"Lock": {"A lock that is a link would have another file overwritten.", func(t *testing.T) string {
			t.Helper()
			dir := t.TempDir()
			if err := os.Symlink(filepath.Join(t.TempDir(), "config"), filepath.Join(dir, "lock")); err != nil {
				t.Fatal(err)
			}

			return dir
		}, false, foreign},
		"Trusted": {"The user knows it.", planted(0o755), true, ""},
		"TrustedBefore": {"That need not be repeated.", func(t *testing.T) string {
			t.Helper()
			dir := plant(t, 0o755)
			mustOpen(t, dir, true)

			return dir
		}, false, ""},
		"Writable": {"Others can have put anything into one that was ours.", func(t *testing.T) string {
			t.Helper()
			dir := t.TempDir()
			mustOpen(t, dir, false)
			if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // it is what is tested
				t.Fatal(err)
			}

			return dir
		}, false, writable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stateDir(t)
			dir := tc.dir(t)
			before, _ := os.ReadDir(dir)
			err := open(t, dir, tc.trust)
			if tc.want != "" {
				if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
					t.Errorf("%s\nit has %v, and had %v: %v", tc.reason, after, before, err)
				}
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "--trust-dir") || !strings.Contains(err.Error(), "run their commands as you") {
					t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.want)
				}

				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			for _, d := range []string{dir, filepath.Join(dir, "pki"), filepath.Join(dir, "logs")} {
				if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%s\n%s: %v, %v", tc.reason, d, info.Mode(), err)
				}
			}
		})
	}
}

// Without a place to record it, a directory can be used, and must be trusted again.
func TestTrustWithoutRecords(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	dir := t.TempDir()
	mustOpen(t, dir, false)
	if err := open(t, dir, false); err == nil || !strings.Contains(err.Error(), "--trust-dir") {
		t.Errorf("it was used again: %v", err)
	}
	mustOpen(t, dir, true)
}

// Where records cannot be read or written, a directory can be used as well.
func TestTrustWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	cases := map[string]struct {
		reason string
		made   string // the last directory that exists
		mode   os.FileMode
	}{
		"State":    {"The directory of records cannot be created.", "", 0o500},
		"Unread":   {"It cannot be read.", "arbor/directories", 0o300},
		"ReadOnly": {"It cannot be written to.", "arbor/directories", 0o500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("XDG_STATE_HOME", state)
			last := filepath.Join(state, tc.made)
			if err := os.MkdirAll(last, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(last, tc.mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(last, 0o700) }) //nolint:gosec // so that it can be removed
			dir := t.TempDir()
			if err := open(t, dir, false); err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if err := open(t, dir, false); err == nil || !strings.Contains(err.Error(), "--trust-dir") {
				t.Errorf("%s\nit was used again: %v", tc.reason, err)
			}
			mustOpen(t, dir, true)
		})
	}
}

// A directory of another user, such as a volume of a container, must be trusted.
func TestTrustOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change owners")
	}
	stateDir(t)
	dir := t.TempDir()
	if err := os.Chown(dir, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir, false); err == nil || !strings.Contains(err.Error(), "it belongs to the user with ID 4711, ") || !strings.Contains(err.Error(), "--trust-dir") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has %v, %v", left, err)
	}
	mustOpen(t, dir, true)
}

// A lock that leads to another file is rejected also where the user trusts the directory.
func TestLockIsLink(t *testing.T) {
	for name, link := range map[string]func(from, to string) error{"Symbolic": os.Symlink, "Hard": os.Link} {
		t.Run(name, func(t *testing.T) {
			stateDir(t)
			dir, file := t.TempDir(), filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := link(file, filepath.Join(dir, "lock")); err != nil {
				t.Fatal(err)
			}
			if err := open(t, dir, true); err == nil || !strings.Contains(err.Error(), "remove it") {
				t.Errorf("error %v", err)
			}
			if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
				t.Errorf("the file is %q, %v", data, err)
			}
		})
	}
}
