// Package words_test checks the words of Arbor against a glossary, and writes the page of the
// glossary. Texts that are older than the glossary have a budget per file or package, which may
// only fall.
package words_test

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root     = "../.."
	page     = "docs/glossary.md"
	budgets  = "test/words/budget.txt"
	maxShown = 25 // of one key
)

// skipped directories are not ours, generated from files that are checked, or of a past release.
var skipped = []string{".git", "bin", "dist", "testdata", "charts/arbor/files", "test/upgrade/released"}

// generated files are skipped too.
var generated = []string{page, "deploy/kustomize/arbor.yaml"}

var (
	update  = flag.Bool("update", false, "lower the budgets to the present counts, and write "+page)
	rebase  = flag.Bool("rebase", false, "write the budgets for files and packages that were moved; fails if their sum rises")
	listing = flag.String("list", "", "print what is found in files and packages whose path begins with this")
)

// A finding is one use of a word that the glossary replaces.
type finding struct {
	where, found, context string
	rule                  *rule
}

func (f finding) String() string {
	return fmt.Sprintf("%s: %q in %q: write %s", f.where, f.found, f.context, f.rule.write)
}

func TestWords(t *testing.T) {
	found := check(t)
	if *listing != "" {
		for _, key := range slices.Sorted(maps.Keys(found)) {
			if strings.HasPrefix(key, *listing) {
				t.Log(key + "\n" + list(found[key], len(found[key])))
			}
		}
	}
	allowed := readBudgets(t)
	if *rebase {
		if now, before := total(found), sum(allowed); now > before {
			t.Fatalf("the sum would rise from %d to %d", before, now)
		}
		writeBudgets(t, found, nil)

		return
	}
	if *update {
		writeBudgets(t, found, allowed)
	}
	for key, all := range found {
		switch n := len(all); {
		case n > allowed[key]:
			t.Errorf("%s has %d uses of words that %s replaces, its budget is %d:\n%s", key, n, page, allowed[key], list(all, maxShown))
		case n < allowed[key] && !*update:
			t.Errorf("%s has %d uses of old words, fewer than its budget of %d: run go test ./test/words -update", key, n, allowed[key])
		}
	}
	for key, n := range allowed {
		if _, ok := found[key]; !ok && !*update {
			t.Errorf("%s has a budget of %d and no uses of old words: run go test ./test/words -update, or -rebase if it was moved", key, n)
		}
	}
}

// TestGlossary checks the page, or writes it with -update.
func TestGlossary(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Glossary\n\nArbor's code, comments, messages and docs are written in the plain technical English of the Kubernetes\n" +
		"documentation: present tense, active voice, the words that Kubernetes already has. Address the reader as \"you\", and name the actor.\n\n" +
		"`test/words` checks this table and writes this page (`go test ./test/words -update`).\n\n" +
		"| Write | Not | Why |\n|---|---|---|\n")
	for _, r := range table {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.write, r.not, r.reason)
	}
	b.WriteString("\nThe messages of pod group validation, reasons of conditions and events, and names of alerts and metrics are API: they stay.\n")
	name := filepath.Join(root, page)
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != b.String() {
		t.Errorf("%s is out of date (%v): run go test ./test/words -update", page, err)
	}
}

// TestRules checks that every pattern is found, and that correct texts are not.
func TestRules(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         int
	}{
		"actor":      {"nobody is an actor without a name", "Nobody holds the field", 1},
		"user":       {"a person may be a user who does something", "for users who may not list nodes", 0},
		"program":    {"a program is not a person", "the manager who leads", 1},
		"none":       {"it is not a CIDR", "10.0.0.0 is no CIDR", 1},
		"there":      {"there is no is correct", "there is no pool, and it is no longer needed", 0},
		"connection": {"an error of the kernel", "dial tcp: connection refused", 0},
		"rejected":   {"admission rejects", "the webhook refused it", 1},
		"title":      {"a clause is not a sentence", "What the chart has. It is more.", 1},
		"question":   {"a question is a sentence", "What is a gang? It is more.", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := matches("x", text{1, inComments, c.text}); len(got) != c.want {
				t.Errorf("%s: got %v, want %d", c.reason, got, c.want)
			}
		})
	}
}

// check returns what is found in all files, by the key of the budget.
func check(t *testing.T) map[string][]finding {
	t.Helper()
	found := map[string][]finding{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(skipped, name) || slices.Contains(skipped, entry.Name())):
			return fs.SkipDir
		case entry.IsDir() || slices.Contains(generated, name):
			return nil
		}
		key, all, err := texts(root, name)
		for _, text := range all {
			if m := matches(name, text); len(m) > 0 {
				found[key] = append(found[key], m...)
			}
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func matches(name string, in text) []finding {
	var all []finding
	in.content = strings.ToLower(in.content)
	for i := range table {
		r := &table[i]
		if r.in&in.in == 0 || !slices.ContainsFunc(r.stems, func(stem string) bool { return strings.Contains(in.content, stem) }) {
			continue
		}
		for _, at := range r.pattern.FindAllStringIndex(in.content, -1) {
			found := in.content[at[0]:at[1]]
			if r.unless == nil || !r.unless.MatchString(found) {
				context := in.content[max(0, at[0]-30):min(len(in.content), at[1]+30)]
				all = append(all, finding{fmt.Sprintf("%s:%d", name, in.line), found, strings.ToValidUTF8(context, ""), r})
			}
		}
	}

	return all
}

func list(all []finding, limit int) string {
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(a.where, b.where) })
	var b strings.Builder
	for _, f := range all[:min(limit, len(all))] {
		fmt.Fprintf(&b, "\t%s\n", f)
	}

	return b.String()
}

func readBudgets(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.Open(filepath.Join(root, budgets))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	all := map[string]int{}
	for lines := bufio.NewScanner(data); lines.Scan(); {
		var n int
		var key string
		if _, err := fmt.Sscanf(lines.Text(), "%d %s", &n, &key); err != nil {
			t.Fatalf("%s: %q: %v", budgets, lines.Text(), err)
		}
		all[key] = n
	}

	return all
}

// writeBudgets writes what was found, at most what is allowed.
func writeBudgets(t *testing.T, found map[string][]finding, allowed map[string]int) {
	t.Helper()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(found)) {
		n := len(found[key])
		if allowed != nil {
			n = min(n, allowed[key])
		}
		if n > 0 {
			fmt.Fprintf(&b, "%d %s\n", n, key)
		}
	}
	if err := os.WriteFile(filepath.Join(root, budgets), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func total(found map[string][]finding) int {
	n := 0
	for _, all := range found {
		n += len(all)
	}

	return n
}

func sum(allowed map[string]int) int {
	n := 0
	for _, count := range allowed {
		n += count
	}

	return n
}
