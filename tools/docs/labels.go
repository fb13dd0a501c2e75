package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// word is a word that may be the name of a constant: it has a capital letter inside.
var word = regexp.MustCompile(`\b[A-Za-z]\w*[a-z][A-Z]\w*\b`)

// described returns the comment of a constant, in which names of constants are replaced by their values. Without a comment, it is
// what pages write about it, or its words.
func (p *pkg) described(c constant) string {
	if c.doc == "" {
		return cmp.Or(p.meanings[c.value], words(c.value))
	}
	text := word.ReplaceAllStringFunc(c.doc, func(name string) string {
		if value, ok := p.value(name); ok {
			return "`" + value + "`"
		}

		return name
	})

	return cell(strings.TrimPrefix(strings.TrimPrefix(text, "`"+c.value+"` "), ": "))
}

// labels returns the page with all labels, annotations and finalizers.
func labels(s *source) string {
	rows := map[string][]string{}
	for _, p := range s.packages {
		for _, c := range p.constants {
			for _, kind := range []string{"Label", "Annotation", "Finalizer"} {
				isKind := strings.HasPrefix(c.name, kind) || strings.HasSuffix(c.name, kind)
				if isKind && strings.HasPrefix(p.dir, "api/") {
					rows[kind] = append(rows[kind], fmt.Sprintf("| %#q | %s |\n", c.value, p.described(c)))
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("# Labels, annotations and finalizers\n\nWhat Arbor reads and writes in the metadata of objects. " +
		"Those that begin with `arbor-control.dev/`, and `ipam.plexaubnet.io/block`, `pool-uid` and `pool-claim`, are Arbor's own; the others belong to the APIs of KAI, plexaubnet and Eno, and to Kubernetes.\n")
	for _, kind := range []string{"Label", "Annotation", "Finalizer"} {
		slices.SortFunc(rows[kind], cmp.Compare[string])
		fmt.Fprintf(&b, "\n## %ss\n\n| %s | meaning |\n|---|---|\n%s", kind, strings.ToLower(kind), strings.Join(slices.Compact(rows[kind]), ""))
	}

	return b.String()
}
