package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// metric is a metric that a program registers.
type metric struct {
	name, kind, help string
	labels           []string
}

// metrics returns the page with all metrics.
func metrics(s *source) string {
	var all []metric
	for _, p := range s.packages {
		for _, file := range p.files {
			all = append(all, s.metrics(p, file)...)
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	var b strings.Builder
	b.WriteString("# Metrics\n\nThe metrics that Arbor's programs add to those of controller-runtime and kube-scheduler. " +
		"[Monitoring](../tasks/monitoring.md) has alerts, dashboards, and how to scrape them.\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for i := range all {
		m := &all[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(m.labels, ", "), cell(m.help))
	}

	return b.String()
}

// metrics returns the metrics that a file makes.
func (s *source) metrics(p *pkg, file *ast.File) []metric {
	var all []metric
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			all = append(all, s.made(p, file, call)...)
		}

		return true
	})

	return all
}

// made returns the metrics that a call makes: one, or those of all callers of the function that has the call.
func (s *source) made(p *pkg, file *ast.File, call *ast.CallExpr) []metric {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasPrefix(fun.Sel.Name, "New") || len(call.Args) == 0 {
		return nil
	}
	m := metric{labels: s.labels(p, file, call)}
	var name, help ast.Expr
	prefix := ""
	if fun.Sel.Name == "NewDesc" && len(call.Args) > 2 {
		m.kind, name, help = "gauge", call.Args[0], call.Args[1]
	} else if opts := options(call.Args[0]); opts != nil {
		m.kind = strings.ToLower(strings.TrimSuffix(opts.kind, "Opts"))
		name, help = opts.fields["Name"], opts.fields["Help"]
		if e := opts.fields["Subsystem"]; e != nil {
			subsystem, _ := s.eval(p, file, e)
			prefix = subsystem + "_"
		}
	}
	if name == nil || help == nil {
		return nil
	}
	if value, known := s.eval(p, file, name); known {
		m.name = prefix + value
		m.help, _ = s.eval(p, file, help)

		return []metric{m}
	}

	return s.asked(p, file, call, m)
}

// settings are the fields of the options of a metric.
type settings struct {
	kind   string
	fields map[string]ast.Expr
}

// options returns the options of a metric, nil if the expression is something else.
func options(e ast.Expr) *settings {
	if pointer, ok := e.(*ast.UnaryExpr); ok {
		e = pointer.X
	}
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	kind, ok := literal.Type.(*ast.SelectorExpr)
	if !ok || !strings.HasSuffix(kind.Sel.Name, "Opts") {
		return nil
	}
	found := &settings{kind: kind.Sel.Name, fields: map[string]ast.Expr{}}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			found.fields[typeName(pair.Key)] = pair.Value
		}
	}

	return found
}

// labels returns the labels that a call gives to a metric.
func (s *source) labels(p *pkg, file *ast.File, call *ast.CallExpr) []string {
	var all []string
	for _, arg := range call.Args[1:] {
		list, ok := arg.(*ast.CompositeLit)
		if !ok {
			continue
		}
		for _, element := range list.Elts {
			if value, known := s.eval(p, file, element); known {
				all = append(all, "`"+value+"`")
			}
		}
	}

	return all
}

// asked returns the metrics of a function that has name and help as its first parameters, one for each of its callers.
func (s *source) asked(p *pkg, file *ast.File, made *ast.CallExpr, m metric) []metric {
	inside := enclosing(file, made)
	var all []metric
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || inside == "" || typeName(call.Fun) != inside || len(call.Args) < 2 {
			return true
		}
		one := m
		one.name, _ = s.eval(p, file, call.Args[0])
		one.help, _ = s.eval(p, file, call.Args[1])
		all = append(all, one)

		return true
	})

	return all
}

// enclosing returns the name of the innermost function, or variable with a function, around a call.
func enclosing(file *ast.File, call *ast.CallExpr) string {
	name := ""
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || call.Pos() < n.Pos() || n.End() < call.End() {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			name = n.Name.Name
		case *ast.AssignStmt:
			if _, isFunc := n.Rhs[0].(*ast.FuncLit); isFunc {
				name = typeName(n.Lhs[0])
			}
		}

		return true
	})

	return name
}
