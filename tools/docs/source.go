package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// constant is a constant of type string.
type constant struct {
	name, value, doc string
	// block is the comment of the declaration that it is in.
	block string
	// kind is the declared type, "" if there is none.
	kind string
}

// pkg is a package, by the path of its folder.
type pkg struct {
	dir       string
	synopsis  string
	files     []*ast.File
	constants []constant
}

// source is the source code.
type source struct {
	packages []*pkg
	byDir    map[string]*pkg
}

// parse reads the packages in folders of a module, without tests.
func parse(root string, folders ...string) (*source, error) {
	s, files := &source{byDir: map[string]*pkg{}}, token.NewFileSet()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
			if err != nil {
				return fmt.Errorf("cannot parse a file: %w", err)
			}
			dir, err := filepath.Rel(root, filepath.Dir(name))
			s.add(filepath.ToSlash(dir), file)

			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, p := range s.packages {
		for _, file := range p.files {
			p.read(s, file)
		}
	}

	return s, nil
}

// add puts a file to its package.
func (s *source) add(dir string, file *ast.File) {
	p := s.byDir[dir]
	if p == nil {
		p = &pkg{dir: dir}
		s.byDir[dir] = p
		s.packages = append(s.packages, p)
	}
	p.files = append(p.files, file)
	if file.Doc != nil {
		p.synopsis, _, _ = strings.Cut(flat(file.Doc.Text()), ". ")
	}
}

// read notes the constants of a file. One without a comment of its own has that of the one before it.
func (p *pkg) read(s *source, file *ast.File) {
	for _, decl := range file.Decls {
		list, ok := decl.(*ast.GenDecl)
		if !ok || list.Tok != token.CONST {
			continue
		}
		block, doc := comment(list.Doc), ""
		for _, spec := range list.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok || len(values.Names) != 1 || len(values.Values) != 1 {
				continue
			}
			if own := comment(values.Doc) + comment(values.Comment); own != "" && !strings.HasPrefix(own, "nolint") {
				doc = own
			}
			if len(list.Specs) == 1 {
				doc = block
			}
			if value, known := s.eval(p, file, values.Values[0]); known {
				p.constants = append(p.constants, constant{name: values.Names[0].Name, value: value, doc: doc, block: block, kind: typeName(values.Type)})
			}
		}
	}
}

// eval returns the value of an expression, if it is a constant of type string that can be found.
func (s *source) eval(p *pkg, file *ast.File, e ast.Expr) (value string, known bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)

		return value, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := s.eval(p, file, e.X)
		right, also := s.eval(p, file, e.Y)

		return left + right, ok && also && e.Op == token.ADD
	case *ast.Ident:
		return p.value(e.Name)
	case *ast.SelectorExpr:
		of, ok := e.X.(*ast.Ident)
		if !ok {
			return "", false
		}
		if other := s.imported(file, of.Name); other != nil {
			return other.value(e.Sel.Name)
		}

		if kind, ok := strings.CutPrefix(e.Sel.Name, "EventType"); ok {
			return kind, true
		}
	}

	return "", false
}

// value returns the value of a constant of the package.
func (p *pkg) value(name string) (string, bool) {
	i := slices.IndexFunc(p.constants, func(c constant) bool { return c.name == name })
	if i < 0 {
		return "", false
	}

	return p.constants[i].value, true
}

// imported returns the package of the module that a file has imported under a name, nil if there is none.
func (s *source) imported(file *ast.File, name string) *pkg {
	for _, spec := range file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		called := path.Base(full)
		if spec.Name != nil {
			called = spec.Name.Name
		}
		for dir, p := range s.byDir {
			if called == name && strings.HasSuffix(full, "/"+dir) {
				return p
			}
		}
	}

	return nil
}

// comment returns a comment as one line.
func comment(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}

	return flat(c.Text())
}

// flat returns a text as one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// typeName returns the name of a type, "" if it is not a plain one.
func typeName(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}

	return ""
}

// cell returns a text as a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
