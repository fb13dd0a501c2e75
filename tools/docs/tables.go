package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// reference is a link, of which a description keeps the text.
	reference = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// term is a cell with one name in code.
	term = regexp.MustCompile("^`(\\w+)`$")
	// hump is the place between two words of a name.
	hump = regexp.MustCompile(`([a-z])([A-Z])|([A-Z])([A-Z][a-z])`)
)

// explained returns what the tables of pages write next to a name: the meanings of names without a comment.
func explained(pattern string) (map[string]string, error) {
	pages, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("cannot find pages: %w", err)
	}
	meanings := map[string]string{}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return nil, fmt.Errorf("cannot read a page: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			for i := range len(cells) - 1 {
				name, meaning := term.FindStringSubmatch(strings.TrimSpace(cells[i])), strings.TrimSpace(cells[i+1])
				if len(name) > 1 && meanings[name[1]] == "" && !strings.HasPrefix(meaning, "`") {
					meanings[name[1]] = reference.ReplaceAllString(meaning, "$1")
				}
			}
		}
	}

	return meanings, nil
}

// words returns a name as words.
func words(name string) string { return strings.ToLower(hump.ReplaceAllString(name, "$1$3 $2$4")) }
