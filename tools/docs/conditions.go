package main

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// apis are the packages with kinds, in the order of the page.
var apis = []struct{ dir, title string }{
	{"api/scheduling/v2alpha2", "PodGroup"},
	{"api/ipam/v1alpha1", "SubnetPool, Subnet and claims"},
	{"api/eno/v1", "Composition, Synthesizer and Symphony"},
}

// warner is the method of delivery that sends warnings about an object.
const warner = "report"

// senders are the methods that send events.
var senders = []string{"Eventf", "Record", "event", warner}

// conditions returns the page with all conditions, reasons and events.
func conditions(s *source) string {
	var b strings.Builder
	b.WriteString("# Conditions, reasons and events\n\nConditions are in `status.conditions` of an object. Their reasons, and those of events, are not renamed: see " +
		"[API stability](api-stability.md). [Troubleshooting](../tasks/troubleshooting.md) lists messages with their fixes.\n")
	for _, api := range apis {
		fmt.Fprintf(&b, "\n## %s\n", api.title)
		p := s.byDir[api.dir]
		if p == nil {
			continue
		}
		b.WriteString(p.table("condition", func(c constant) bool {
			return strings.HasPrefix(c.name, "Condition") || strings.HasSuffix(c.kind, "ConditionType")
		}))
		b.WriteString(p.table("phase", func(c constant) bool { return strings.HasSuffix(c.kind, "Phase") }))
		b.WriteString(p.table("simplified status", func(c constant) bool { return strings.HasPrefix(c.name, "Status") }))
		b.WriteString(p.table("reason", isReason))
	}
	b.WriteString("\n## Reasons by component\n\nReasons of conditions, events, rejections and findings of `arbor audit` that are not part of an API package, by the part of the code that decides on them.\n")
	slices.SortFunc(s.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	for _, p := range s.packages {
		if strings.HasPrefix(p.dir, "internal/") && slices.ContainsFunc(p.constants, isReason) {
			fmt.Fprintf(&b, "\n### %s\n%s", strings.TrimPrefix(p.dir, "internal/"), p.table("reason", isReason))
		}
	}

	return b.String() + events(s)
}

// isReason reports whether a constant is the reason of a condition or of an event.
func isReason(c constant) bool {
	return (strings.HasPrefix(c.name, "Reason") || strings.HasPrefix(c.name, "reason")) && !strings.Contains(c.value, " ")
}

// table returns the constants for which a function is true.
func (p *pkg) table(title string, wanted func(constant) bool) string {
	var rows []string
	for _, c := range p.constants {
		if wanted(c) {
			rows = append(rows, fmt.Sprintf("| %#q | %s |\n", c.value, p.described(c)))
		}
	}
	if len(rows) == 0 {
		return ""
	}

	return fmt.Sprintf("\n| %s | meaning |\n|---|---|\n%s", title, strings.Join(rows, ""))
}

// events returns the section with the events that have a reason of their own.
func events(s *source) string {
	var rows []string
	for _, p := range s.packages {
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if kind, reason := s.event(p, file, call); reason != "" {
					rows = append(rows, fmt.Sprintf("| %#q | %s | %s |\n", reason, kind, sender(p.dir)))
				}

				return true
			})
		}
	}
	slices.Sort(rows)

	return "\n## Events\n\nA change of a condition is also an event, with the reason of the condition. These events have reasons of their own:\n\n" +
		"| reason | type | sent by |\n|---|---|---|\n" + strings.Join(slices.Compact(rows), "")
}

// sender returns the name of the component in a directory: its controller, or the last element of the path.
func sender(dir string) string {
	if below, ok := strings.CutPrefix(dir, "internal/controller/"); ok {
		name, _, _ := strings.Cut(below, "/")

		return name
	}

	return path.Base(dir)
}

// event returns type and reason of an event that a call sends, "" if it sends none or the reason is a variable.
func (s *source) event(p *pkg, file *ast.File, call *ast.CallExpr) (kind, reason string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(senders, method.Sel.Name) {
		return "", ""
	}
	if method.Sel.Name == warner && len(call.Args) > 2 {
		reason, _ = s.eval(p, file, call.Args[2])

		return "Warning", reason
	}
	for i := range len(call.Args) - 1 {
		kind, _ = s.eval(p, file, call.Args[i])
		if kind == "Normal" || kind == "Warning" {
			reason, _ = s.eval(p, file, call.Args[i+1])

			return kind, reason
		}
	}

	return "", ""
}
