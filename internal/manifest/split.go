package manifest

import (
	"bytes"
	"fmt"
)

// A chunk is the text of one document and the number of lines before it.
type chunk struct {
	text   []byte
	before int
	err    error
}

var separator = []byte("---")

// split cuts a stream where kubectl cuts it: at lines that begin with three
// dashes, which nothing but space and a comment may follow.
func split(data []byte) []chunk {
	var out []chunk

	start, first, line := 0, 0, 0

	for pos := 0; pos < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}

		if after, ok := bytes.CutPrefix(data[pos:end], separator); ok {
			out = append(out, chunk{text: data[start:pos], before: first})
			start, first = end, line+1

			if t := bytes.TrimSpace(after); len(t) > 0 && t[0] != '#' {
				out = append(out, chunk{before: line, err: fmt.Errorf("invalid YAML: %q after the document separator ---", t)})
			}
		}

		pos = end
	}

	return append(out, chunk{text: data[start:], before: first})
}
