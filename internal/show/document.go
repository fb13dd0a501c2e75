package show

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// APIVersion is the version of the documents that commands print.
const APIVersion = "cli.arbor.dev/v1"

// Document returns a view as JSON with its apiVersion and its kind. The view must be a JSON object.
func Document(kind string, view any) ([]byte, error) {
	header, err := json.Marshal(map[string]string{"apiVersion": APIVersion, "kind": kind})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the header: %w", err)
	}
	body, err := json.Marshal(view)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", view, err)
	}
	if body[0] != '{' {
		return nil, fmt.Errorf("cannot give a %T an apiVersion: it is not an object", view)
	}
	if body = body[1:]; body[0] != '}' {
		header[len(header)-1] = ','
	} else {
		header = header[:len(header)-1]
	}
	var out bytes.Buffer
	if err := json.Indent(&out, append(header, body...), "", "  "); err != nil {
		return nil, fmt.Errorf("cannot indent %T: %w", view, err)
	}

	return out.Bytes(), nil
}
