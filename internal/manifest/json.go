package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// jsonNodes parses JSON values one after the other into the same nodes as
// YAML. JSON is not quite a subset of the YAML that the parser reads: escaped
// surrogate pairs are one difference.
func jsonNodes(text []byte) ([]*yaml.Node, error) {
	r := jsonReader{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()

	var out []*yaml.Node

	for {
		n, err := r.value(0)
		if errors.Is(err, io.EOF) {
			return out, nil
		}

		if err != nil {
			return out, r.explain(err)
		}

		out = append(out, n)
	}
}

// jsonNumber tags numbers that were written in JSON, where 1.0 and 1 differ.
const jsonNumber = "!json-number"

// A jsonReader counts lines while the decoder moves on.
type jsonReader struct {
	text []byte
	dec  *json.Decoder
	pos  int64
	line int
}

// token returns the next token and the line on which it ends, which for
// everything but broken JSON is the line on which it begins.
func (r *jsonReader) token() (json.Token, int, error) {
	t, err := r.dec.Token()
	now := min(r.dec.InputOffset(), int64(len(r.text)))
	r.line += bytes.Count(r.text[r.pos:now], []byte("\n"))
	r.pos = now

	return t, r.line + 1, err
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	t, line, err := r.token()
	if err != nil {
		return nil, err
	}

	if depth > maxDepth {
		return nil, errDepth
	}

	n := &yaml.Node{Kind: yaml.ScalarNode, Line: line}

	switch t := t.(type) {
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if t == '{' {
			n.Kind = yaml.MappingNode
		}

		return n, r.children(n, depth)
	case string:
		n.Style, n.Value = yaml.DoubleQuotedStyle, t
	case json.Number:
		n.Style, n.Tag, n.Value = yaml.TaggedStyle, jsonNumber, t.String()
	default:
		n.Value = fmt.Sprint(t)
		if t == nil {
			n.Value = "null"
		}
	}

	return n, nil
}

func (r *jsonReader) children(n *yaml.Node, depth int) error {
	for r.dec.More() {
		c, err := r.value(depth + 1)
		if err != nil {
			return unexpected(err)
		}

		n.Content = append(n.Content, c)
	}

	_, _, err := r.token()

	return unexpected(err)
}

// unexpected makes an end inside a value an error of its own.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}

	return err
}

func (r *jsonReader) explain(err error) error {
	line := r.line + 1

	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line = 1 + bytes.Count(r.text[:min(syntax.Offset, int64(len(r.text)))], []byte("\n"))
	}

	return &positioned{line: line, err: fmt.Errorf("invalid JSON: %w", err)}
}
