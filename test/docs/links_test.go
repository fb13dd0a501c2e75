// Package docs_test checks the documentation as a whole: every link has a target, and every page is
// linked.
package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/test/cluster"
)

const (
	// index is the page from which every other one can be reached.
	index = "docs/README.md"
)

var (
	// fence is a block of code, in which brackets are no links.
	fence = regexp.MustCompile("(?ms)^ *(```+|~~~+).*?\n *(```+|~~~+) *$")
	// inline is code within a line.
	inline = regexp.MustCompile("`+[^`\n]*`+")
	// link is a link or an image of Markdown.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// heading is a heading, which has an anchor.
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	// dropped is what forges leave out of anchors.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	// source is where a forge shows the pages, as alerts link to them.
	source = regexp.MustCompile(`https://github\.com/arbor-control/arbor/blob/main/([^\s)"']+)`)
)

// page is a Markdown file.
type page struct {
	text    string
	anchors map[string]bool
}

// pages reads every Markdown file of the project, by its path.
func pages(t *testing.T) map[string]page {
	t.Helper()
	found := map[string]page{}
	root := cluster.Root()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && (entry.Name() == "bin" || entry.Name() == "dist" || entry.Name() == ".git" || entry.Name() == ".arbor") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		found[filepath.ToSlash(relative)] = parse(string(data))

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// parse returns a page without its code, and the anchors of its headings.
func parse(text string) page {
	text = fence.ReplaceAllString(text, "")
	anchors, seen := map[string]bool{}, map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		anchor := anchorOf(m[1])
		if n := seen[anchor]; n > 0 {
			anchors[anchor+"-"+string(rune('0'+n))] = true
		}
		seen[anchor]++
		anchors[anchor] = true
	}

	return page{text: inline.ReplaceAllString(text, ""), anchors: anchors}
}

// anchorOf returns what forges make of a heading.
func anchorOf(title string) string {
	title = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")

	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// targets returns the files and anchors of the project that a page links to.
func targets(name, text string) map[string]string {
	found := map[string]string{}
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		to := name
		if file != "" {
			to = path.Join(path.Dir(name), file)
		}
		found[m[1]] = to + "#" + anchor
	}

	return found
}

// check reports a link to a file or to an anchor that does not exist.
func check(t *testing.T, all map[string]page, from, written, target string) {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	if _, err := os.Stat(filepath.Join(cluster.Root(), filepath.FromSlash(file))); err != nil {
		t.Errorf("%s links to %s, which does not exist", from, written)

		return
	}
	if to, isPage := all[file]; anchor != "" && isPage && !to.anchors[anchor] {
		t.Errorf("%s links to %s, and %s has no such section", from, written, file)
	}
}

// Every link between files of the project leads to a file, and to a section of it.
func TestLinks(t *testing.T) {
	all := pages(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for written, target := range targets(name, all[name].text) {
			check(t, all, name, written, target)
		}
	}
}

// Alerts, charts and examples link to pages by their address, or name them by their path.
func TestLinksOfOtherFiles(t *testing.T) {
	all := pages(t)
	mention := regexp.MustCompile(`docs/[a-z/-]+\.md(?:#[a-z0-9-]+)?`)
	for _, dir := range []string{"api", "charts", "cmd", "deploy", "engine", "examples", "internal", "monitoring", "synthesizers", "test"} {
		err := filepath.WalkDir(filepath.Join(cluster.Root(), dir), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) == ".md" {
				return err
			}
			data, err := os.ReadFile(name)
			for _, m := range source.FindAllStringSubmatch(string(data), -1) {
				check(t, all, name, m[0], m[1])
			}
			for _, m := range mention.FindAllString(string(data), -1) {
				check(t, all, name, m, m)
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Every page below docs can be reached from the index.
func TestEveryPageIsLinked(t *testing.T) {
	all := pages(t)
	reached := map[string]bool{index: true}
	for todo := []string{index}; len(todo) > 0; todo = todo[1:] {
		for _, target := range targets(todo[0], all[todo[0]].text) {
			file, _, _ := strings.Cut(target, "#")
			if _, isPage := all[file]; isPage && !reached[file] {
				reached[file] = true
				todo = append(todo, file)
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("no page that can be reached from %s links to %s", index, name)
		}
	}
}

// Links are found outside of code only, and anchors are those of forges.
func TestParse(t *testing.T) {
	p := parse("# A `b` c\n\n## A [link](x.md)!\n\n## Twice\n## Twice\n\n```yaml\n[no](link.md)\n# no heading\n```\n`[no](code.md)` [yes](other.md#part)\n")
	for _, anchor := range []string{"a-b-c", "a-link", "twice", "twice-1"} {
		if !p.anchors[anchor] {
			t.Errorf("there is no anchor %s in %v", anchor, p.anchors)
		}
	}
	if got := targets("pages/a/b.md", p.text); len(got) != 2 || got["other.md#part"] != "pages/a/other.md#part" || p.anchors["no-heading"] {
		t.Errorf("the links are %v, the anchors %v", got, p.anchors)
	}
}
