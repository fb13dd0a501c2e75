package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// architecturePage is the page with all rules.
const architecturePage = "docs/contribute/architecture.md"

// Markers stand around the table in a page.
const (
	begin = "<!-- The import rules: generated from test/architecture/rules.go by make generate. -->\n"
	end   = "<!-- The end of the import rules. -->\n"
)

// pages are the pages with a table of the rules, by path, and which rules they show.
var pages = map[string]func(rule) bool{
	architecturePage:  func(rule) bool { return true },
	"CONTRIBUTING.md": func(r rule) bool { return r.layer },
}

// Generate writes the tables of all pages below a folder.
func Generate(root string) error {
	for name := range pages {
		old, page, err := generated(root, name)
		if err != nil {
			return err
		}
		if page == old {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(page), 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}

	return nil
}

// generated returns a page as it is and as it should be.
func generated(root, name string) (old, page string, err error) {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", "", fmt.Errorf("cannot read a page with import rules: %w", err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", "", fmt.Errorf("%s has no table of import rules: want the lines\n%s%s", name, begin, end)
	}

	return string(data), before + begin + table(pages[name]) + end + after, nil
}

// table returns the rules as a table in Markdown.
func table(shown func(rule) bool) string {
	var b strings.Builder
	b.WriteString("\n| folder | must not | except | because |\n|---|---|---|---|\n")
	for _, r := range rules {
		if shown(r) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.folder(), r.forbidden(), code(r.allow...), r.why)
		}
	}
	b.WriteString("\n")

	return b.String()
}

func (r rule) folder() string {
	text := code(r.in)
	if len(r.except) > 0 {
		text += " except " + code(r.except...)
	}

	return text
}

// forbidden returns what the rule forbids.
func (r rule) forbidden() string {
	var parts []string
	for _, part := range []struct {
		verb  string
		names []string
	}{{"reach", r.never}, {"import", r.direct}, {"import in tests", r.tests}} {
		if len(part.names) > 0 {
			parts = append(parts, part.verb+" "+code(part.names...))
		}
	}

	return strings.Join(parts, "; ")
}

// code writes names as code.
func code(names ...string) string {
	words := slices.Clone(names)
	for i, name := range words {
		switch name {
		case notStd:
			words[i] = "anything outside of the standard library"
		case everything:
			words[i] = "everything"
		default:
			words[i] = "`" + strings.TrimPrefix(name, "./") + "`"
		}
	}

	return strings.Join(words, ", ")
}
