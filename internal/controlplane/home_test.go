package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHomeIsTakenOnce(t *testing.T) {
	stateDir(t)
	dir := t.TempDir()
	h, err := openHome(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openHome(dir, false); err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("a second one took it: %v", err)
	}
	h.close()
	h, err = openHome(dir, false)
	if err != nil {
		t.Errorf("it was given back: %v", err)
	}
	h.close()
}

// A run that was killed leaves children, which hold what they inherited.
func TestHomeWaitsForChildren(t *testing.T) {
	stateDir(t)
	dir := t.TempDir()
	killed, err := openHome(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.settle(t.Context(), func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close()

	next, err := openHome(dir, false)
	if err != nil {
		t.Fatalf("its parent is gone: %v", err)
	}
	defer next.close()
	var said string
	err = next.settle(t.Context(), func(format string, args ...any) {
		said = fmt.Sprintf(format, args...)
		_ = killed.children.Close() // the last child ends while we wait
	})
	if want := fmt.Sprintf("waiting for the children of process %d, which is gone, to end", os.Getpid()); err != nil || said != want {
		t.Errorf("said %q, %v; want %q", said, err, want)
	}
}

func TestHomeRemembers(t *testing.T) {
	stateDir(t)
	h, err := openHome(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if got := h.remembered(); got != (state{}) {
		t.Errorf("a new home remembers %+v", got)
	}
	if err := h.remember(state{Port: 7}); err != nil {
		t.Fatal(err)
	}
	if got := h.remembered(); got.Port != 7 {
		t.Errorf("it remembers %+v", got)
	}
	if err := os.WriteFile(h.file("state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.remembered(); got != (state{}) {
		t.Errorf("of a damaged file it remembers %+v", got)
	}
}

func TestClearKubeconfig(t *testing.T) {
	stateDir(t)
	h, err := openHome(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	creds, err := newCredentials(h, 6443, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ours := h.file("ours")
	if err := creds.publish(ours); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason  string
		content string // "" means ours, "-" none
		ok      bool
	}{
		"None":    {"Nothing to clear is fine.", "-", true},
		"Ours":    {"What an earlier run left may go.", "", true},
		"Theirs":  {"Another cluster's context must survive.", "apiVersion: v1\nkind: Config\ncontexts:\n- {name: prod, context: {cluster: a, user: b}}\n", false},
		"Both":    {"Ours merged with others must survive too.", "apiVersion: v1\nkind: Config\ncontexts:\n- {name: prod, context: {cluster: a, user: b}}\n- {name: arbor, context: {cluster: a, user: b}}\n", false},
		"Rubbish": {"What we cannot read is not ours.", "}{", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			content := []byte(tc.content)
			if tc.content == "" {
				if content, err = os.ReadFile(ours); err != nil {
					t.Fatal(err)
				}
			}
			if tc.content != "-" {
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := clearKubeconfig(path)
			if got := err == nil; got != tc.ok {
				t.Errorf("%s\nerror %v, want ok %t", tc.reason, err, tc.ok)
			}
			if _, err := os.Stat(path); os.IsNotExist(err) != tc.ok {
				t.Errorf("%s\nthe file: %v", tc.reason, err)
			}
		})
	}
}

func TestFailing(t *testing.T) {
	report := "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
	if got, want := failing(report), "[-]etcd failed: reason withheld; readyz check failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
