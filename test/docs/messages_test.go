package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/test/cluster"
)

const (
	// troubleshooting is the page that lists messages.
	troubleshooting = "docs/tasks/troubleshooting.md"
	// foreign is the section with messages that are not Arbor's.
	foreign = "## Messages of Kubernetes"
)

// row is a row of a table with a message.
var row = regexp.MustCompile("(?m)^\\| `([^`\n]+)` \\|")

// sources returns everything that holds texts for users, without Go's escapes.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"api", "charts/arbor/templates", "cmd", "engine", "internal"} {
		err := filepath.WalkDir(filepath.Join(cluster.Root(), filepath.FromSlash(dir)), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			data, err := os.ReadFile(name)
			all.Write(data)

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	return strings.ReplaceAll(all.String(), `\"`, `"`)
}

// Every message of the page is one that Arbor has: a text that has changed since would not be found by users.
func TestMessages(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(cluster.Root(), filepath.FromSlash(troubleshooting)))
	if err != nil {
		t.Fatal(err)
	}
	ours, _, found := strings.Cut(string(data), "\n"+foreign+"\n")
	if !found {
		t.Fatalf("%s has no section %q", troubleshooting, foreign)
	}
	code := sources(t)
	rows := row.FindAllStringSubmatch(ours, -1)
	if len(rows) < 40 {
		t.Fatalf("only %d messages were found", len(rows))
	}
	for _, m := range rows {
		for fragment := range strings.SplitSeq(m[1], "…") {
			if fragment = strings.TrimSpace(fragment); len(fragment) > 3 && !strings.HasPrefix(fragment, "arbor ") && !strings.Contains(code, fragment) {
				t.Errorf("%s lists %q, and no text of Arbor contains %q", troubleshooting, m[1], fragment)
			}
		}
	}
}
