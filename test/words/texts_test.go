package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A text is one paragraph, comment, string or description.
type text struct {
	line    int
	in      place
	content string
}

// texts returns the texts of a file, and the key of its budget: the directory of a Go file, or
// the file itself. A file without texts has no key.
func texts(root, name string) (key string, all []text, err error) {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", nil, err
	}
	switch filepath.Ext(name) {
	case ".go":
		all, err = goTexts(name, data)

		return filepath.Dir(name), all, err
	case ".md":
		if strings.HasPrefix(string(data), header) {
			return "", nil, nil
		}

		return name, markdown(string(data)), nil
	case ".yaml", ".yml":
		return name, append(descriptions(name, data), hashes(string(data))...), nil
	case ".tpl", ".sh", ".mk":
		return name, hashes(string(data)), nil
	}
	if slices.Contains([]string{"Makefile", "Dockerfile"}, filepath.Base(name)) {
		return name, hashes(string(data)), nil
	}

	return "", nil, nil
}

// goTexts returns the comments of a Go file and its strings. The strings of unit tests repeat those of the
// code that they test, and the strings of this package are the glossary: their comments are enough.
func goTexts(name string, data []byte) ([]text, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var all []text
	for _, group := range file.Comments {
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			all = append(all, text{files.Position(group.Pos()).Line, inComments, oneLine(paragraph)})
		}
	}
	if strings.HasSuffix(name, "_test.go") && (!strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "test/words/")) {
		return all, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			field.Tag = nil
		}
		literal, ok := n.(*ast.BasicLit)
		if ok && literal.Kind == token.STRING {
			if s, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(s, " ") {
				all = append(all, text{files.Position(literal.Pos()).Line, inStrings, oneLine(s)})
			}
		}

		return true
	})

	return all, nil
}

var (
	fence  = regexp.MustCompile("(?ms)^[ >]*```.*?\n[ >]*```[ ]*$")
	inline = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->")
)

// markdown returns the paragraphs and table rows of a page, without code and the targets of links.
func markdown(page string) []text {
	page = fence.ReplaceAllStringFunc(page, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })

	return paragraphs(page, func(line string) (string, bool) { return line, strings.HasPrefix(line, "|") }, inDocs)
}

var (
	hash   = regexp.MustCompile(`^\s*(?:.*\s)?#+\s+(.*)$`)
	action = regexp.MustCompile(`\{\{-?\s*/\*(.*)`)
)

// hashes returns the comments of a file in which they begin with a hash, or with {{/*.
func hashes(data string) []text {
	return paragraphs(data, func(line string) (string, bool) {
		if m := hash.FindStringSubmatch(line); m != nil {
			return m[1], false
		} else if m := action.FindStringSubmatch(line); m != nil {
			return m[1], false
		}

		return "", false
	}, inComments)
}

// paragraphs joins consecutive lines for which strip returns something. It reports true for lines
// that stand alone.
func paragraphs(data string, strip func(string) (string, bool), in place) []text {
	var all []text
	begin := true
	for i, line := range strings.Split(data, "\n") {
		content, alone := strip(strings.TrimSpace(line))
		switch {
		case content == "":
		case begin || alone:
			all = append(all, text{i + 1, in, content})
		default:
			all[len(all)-1].content += " " + content
		}
		begin = content == "" || alone
	}
	for i := range all {
		all[i].content = oneLine(inline.ReplaceAllString(all[i].content, "` "))
	}

	return all
}

// described are the keys whose values users read.
var described = []string{"description", "summary", "message"}

// descriptions returns the texts of a YAML file that users read. Templates have none.
func descriptions(name string, data []byte) []text {
	if strings.Contains(name, "/templates/") {
		return nil
	}
	var all []text
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && child.Kind == yaml.ScalarNode && slices.Contains(described, n.Content[i-1].Value) {
				all = append(all, text{child.Line, inCRDs, oneLine(child.Value)})
			}
			walk(child)
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil { // the end, or a template
			return all
		}
		walk(&document)
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
