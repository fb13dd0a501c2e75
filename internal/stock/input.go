package stock

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// inputKey is the annotation by which a synthesizer knows an input. The package
// of the API has it too, but also half of Kubernetes.
const inputKey = "eno.azure.io/input-key"

// An Input is an object that the Composition binds.
type Input struct {
	// Key of the ref of the Synthesizer. It can be used as the name of a file.
	Key string
	// Kind of the object, such as ConfigMap.
	Kind string
	// Object as the API server has it.
	Object map[string]any
	// Files are the entries of a ConfigMap or a Secret. They are nil for other kinds.
	Files map[string][]byte
}

// String names the input for people.
func (i Input) String() string { return fmt.Sprintf("input %q", i.Key) }

// Names returns the names of the files, sorted.
func (i Input) Names() []string { return slices.Sorted(maps.Keys(i.Files)) }

// fileName is what keys of inputs and of their entries must look like. ConfigMaps
// cannot have other keys; a ref could.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// readInputs reads a ResourceList. An empty input has no inputs, so that a user can run the program
// by hand.
func readInputs(data []byte) ([]Input, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	var read struct {
		Kind  string           `json:"kind"`
		Items []map[string]any `json:"items"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&read); err != nil {
		return nil, fmt.Errorf("cannot read the inputs: standard input is not a ResourceList in JSON: %w", err)
	}
	if read.Kind != "ResourceList" {
		return nil, fmt.Errorf("cannot read the inputs: standard input has kind %q, want ResourceList", read.Kind)
	}
	seen := map[string]bool{}
	var all []Input
	for i, object := range read.Items {
		in, err := newInput(object)
		if err != nil {
			return nil, fmt.Errorf("cannot read the inputs: items[%d]: %w", i, err)
		}
		if seen[in.Key] {
			return nil, fmt.Errorf("cannot read the inputs: items[%d]: there are two inputs %q", i, in.Key)
		}
		seen[in.Key] = true
		all = append(all, in)
	}

	return all, nil
}

func newInput(object map[string]any) (Input, error) {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	key, _ := annotations[inputKey].(string)
	if key == "" {
		return Input{}, fmt.Errorf("annotation %s is missing", inputKey)
	}
	if !fileName.MatchString(key) {
		return Input{}, fmt.Errorf("input %q: the key cannot be the name of a file; use letters, digits, '-', '_' and '.'", key)
	}
	in := Input{Key: key, Object: object}
	in.Kind, _ = object["kind"].(string)
	apiVersion, _ := object["apiVersion"].(string)
	if apiVersion != "v1" || (in.Kind != "ConfigMap" && in.Kind != "Secret") {
		return in, nil
	}
	in.Files = map[string][]byte{}
	for _, field := range []string{"data", "binaryData"} {
		if err := in.add(field); err != nil {
			return Input{}, fmt.Errorf("input %q: %w", key, err)
		}
	}

	return in, nil
}

// add reads the entries of a field. Those of Secrets and binary ones are encoded.
func (i Input) add(field string) error {
	entries, ok := i.Object[field].(map[string]any)
	if !ok && i.Object[field] != nil {
		return fmt.Errorf("%s is not a map", field)
	}
	for name, value := range entries {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s[%s] is not a string", field, name)
		}
		if !fileName.MatchString(name) && !hidden.MatchString(name) {
			return fmt.Errorf("%s[%s]: the key cannot be the name of a file", field, name)
		}
		content := []byte(text)
		if field == "binaryData" || i.Kind == "Secret" {
			decoded, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return fmt.Errorf("%s[%s] is not base64: %w", field, name, err)
			}
			content = decoded
		}
		i.Files[name] = content
	}

	return nil
}

// hidden files, such as .env, are fine as entries.
var hidden = regexp.MustCompile(`^\.[A-Za-z0-9_-][A-Za-z0-9._-]*$`)
