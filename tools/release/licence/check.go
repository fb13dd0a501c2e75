package licence

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// exceptions are modules whose texts were read by a person, with what came of
// it. Each is about one text.
var exceptions = map[string]string{}

// Check returns a message for each text that is of no known kind, and for each module that has
// none.
func Check(modules []Module) []string {
	var wrong []string
	for _, m := range modules {
		licensed := false
		for _, t := range m.Texts {
			if t.IsNotice() {
				continue
			}
			licensed = true
			if len(t.IDs) == 0 && exceptions[m.Path+" "+t.Name] == "" {
				wrong = append(wrong, fmt.Sprintf("%s %s: its %s is not one of the licenses that Arbor may be shipped with; it begins with %q. Use another module, or review the license and add it to tools/release/licence",
					m.Path, m.Version, t.Name, beginning(t.Content)))
			}
		}
		if !licensed {
			wrong = append(wrong, fmt.Sprintf("%s %s: it has no license, so it may not be shipped. Use another module", m.Path, m.Version))
		}
	}

	return wrong
}

// beginning quotes enough of a text to recognize it.
func beginning(text string) string {
	const enough = 120
	words := strings.Join(strings.Fields(text), " ")
	if r := []rune(words); len(r) > enough {
		words = string(r[:enough]) + "…"
	}

	return words
}

// Merge joins the modules of several programs, or platforms.
func Merge(lists ...[]Module) []Module {
	all := map[string]Module{}
	for _, m := range slices.Concat(lists...) {
		have := all[m.Path]
		for _, t := range m.Texts {
			if !slices.ContainsFunc(have.Texts, func(h Text) bool { return h.Name == t.Name }) {
				have.Texts = append(have.Texts, t)
			}
		}
		have.Path, have.Version = m.Path, m.Version
		all[m.Path] = have
	}
	merged := make([]Module, 0, len(all))
	for _, m := range all {
		slices.SortFunc(m.Texts, func(a, b Text) int { return cmp.Compare(a.Name, b.Name) })
		merged = append(merged, m)
	}
	slices.SortFunc(merged, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })

	return merged
}

// Notices writes the texts that must be shipped with a program: each once, with the modules that
// have it.
func Notices(w io.Writer, modules []Module) error {
	users, order := map[string][]string{}, []string(nil)
	for _, m := range modules {
		for _, t := range m.Texts {
			if users[t.Content] == nil {
				order = append(order, t.Content)
			}
			users[t.Content] = append(users[t.Content], strings.TrimSpace(m.Path+" "+m.Version)+" ("+t.Name+")")
		}
	}
	var b strings.Builder
	b.WriteString("Arbor is made with the software that is named here, under the terms that stand below its name.\n")
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n\n", strings.Repeat("=", 80))
		for _, u := range users[text] {
			fmt.Fprintln(&b, u)
		}
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"))
	}
	_, err := io.WriteString(w, b.String())

	return err
}
