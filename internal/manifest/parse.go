package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads all documents of one input.
func Parse(name string, data []byte) File {
	f := File{Name: name}
	p := parser{file: &f, json: filepath.Ext(name) == ".json"}

	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		f.Errors = append(f.Errors, &Error{
			Line: 1, Err: errors.New("the text is UTF-16, which Kubernetes tools cannot read"), Fix: "save it as UTF-8",
		})

		return f
	}

	for _, c := range split(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		p.chunk(c)
	}

	return f
}

// A parser fills one File.
type parser struct {
	file  *File
	json  bool
	build builder
}

func (p *parser) chunk(c chunk) {
	if c.err != nil {
		p.fail(c, c.err)

		return
	}

	roots, err := nodes(c.text, p.json)
	for _, n := range roots {
		if e := p.root(c, n); e != nil {
			p.fail(c, e)
		}
	}

	if err != nil {
		p.fail(c, err)
	}
}

// root turns the root of a document into one Document, or many if it is a
// list. What is not an object is left out.
func (p *parser) root(c chunk, n *yaml.Node) error {
	v, duplicates, err := p.build.document(n)
	if err != nil {
		return err
	}

	obj, ok := v.(map[string]any)
	if !ok {
		p.ignore(v, n, c)

		return nil
	}

	for i := range duplicates {
		duplicates[i].First += c.before
		duplicates[i].Line += c.before
	}

	d := &Document{Object: obj, Duplicates: duplicates, node: n, offset: c.before}
	p.file.Documents = flatten(p.file.Documents, d)

	return nil
}

// ignore records a document that is not an object, unless it is empty.
func (p *parser) ignore(v any, n *yaml.Node, c chunk) {
	if v != nil {
		p.file.Ignored = append(p.file.Ignored, &Error{Line: n.Line + c.before, Err: errors.New("the document is not an object")})
	}
}

// fail records why a chunk could not be used.
func (p *parser) fail(c chunk, err error) {
	e := &Error{Line: c.before + 1, Err: err}

	if pos, ok := errors.AsType[*positioned](err); ok {
		e.Line, e.Err = c.before+max(pos.line, 1), pos.err
	}

	if bytes.Contains(c.text, []byte("{{")) {
		e.Fix = "this looks like a template: render it first"
	}

	p.file.Errors = append(p.file.Errors, e)
}

// nodes parses the text between two separators: JSON objects one after the
// other if it begins with a brace, and otherwise, or if that fails, one YAML
// document. Documents without content have no node.
func nodes(text []byte, preferJSON bool) ([]*yaml.Node, error) {
	var jsonErr error

	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		roots, err := jsonNodes(text)
		if err == nil || len(roots) > 1 {
			return roots, err
		}

		jsonErr = err
	}

	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		if jsonErr != nil && preferJSON {
			return nil, jsonErr
		}

		return nil, yamlError(err)
	}

	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil, nil
	}

	return doc.Content[:1], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlError moves the line out of the parser's text.
func yamlError(err error) error {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)

	if m == nil {
		return fmt.Errorf("invalid YAML: %w", err)
	}

	line, _ := strconv.Atoi(m[1])

	return &positioned{line: line, err: errors.New("invalid YAML: " + strings.TrimPrefix(text, m[0]))}
}

// flatten appends d, or the items of d if it is a list, as kubectl does.
// Items of a typed list take their kind from it.
func flatten(out []*Document, d *Document) []*Document {
	kind, _ := d.Object["kind"].(string)
	items, isList := d.Object["items"].([]any)

	if !isList || !strings.HasSuffix(kind, "List") {
		return append(out, d)
	}

	w := walker{merges: maxMerges}
	list := w.key(target(d.node), "items").value
	duplicates := byItem(d.Duplicates)

	for i, item := range items {
		obj, ok := item.(map[string]any)
		if !ok {
			continue
		}

		if obj["kind"] == nil && obj["apiVersion"] == nil && kind != "List" {
			obj["kind"], obj["apiVersion"] = strings.TrimSuffix(kind, "List"), d.Object["apiVersion"]
		}

		out = flatten(out, &Document{
			Object: obj, Duplicates: duplicates[i], node: itemNode(list, i, d.node), offset: d.offset,
		})
	}

	return out
}

// itemNode returns item i of a list, or the list's own document if merges
// were too many to find it.
func itemNode(list *yaml.Node, i int, otherwise *yaml.Node) *yaml.Node {
	if list == nil || i >= len(target(list).Content) {
		return otherwise
	}

	return target(list).Content[i]
}

// byItem groups the duplicates in a list's items, as seen from the items.
func byItem(all []Duplicate) map[int][]Duplicate {
	out := map[int][]Duplicate{}

	for _, d := range all {
		rest, ok := strings.CutPrefix(d.Field, "items[")
		digits, field, found := strings.Cut(rest, "].")

		if i, err := strconv.Atoi(digits); ok && found && err == nil {
			out[i] = append(out[i], Duplicate{Field: field, First: d.First, Line: d.Line})
		}
	}

	return out
}
