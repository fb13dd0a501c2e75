package krm

import (
	"encoding/json"
	"fmt"
	"maps"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

const (
	apiVersion = "config.kubernetes.io/v1"
	listKind   = "ResourceList"
)

// An Input is an object that a program is given.
type Input struct {
	// Key by which the program knows it.
	Key string
	// Object as the API server has it.
	Object map[string]any
}

// sent is a ResourceList as programs read it.
type sent struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []map[string]any `json:"items"`
	Config     config           `json:"functionConfig"`
}

type config struct {
	APIVersion   string   `json:"apiVersion"`
	Kind         string   `json:"kind"`
	OptionalRefs []string `json:"optionalRefs"`
}

// Encode returns what a program reads. optional are the keys of inputs that may
// be absent, whether they are or not. Without inputs, items is null: programs
// are used to that.
func Encode(inputs []Input, optional []string) ([]byte, error) {
	list := sent{
		APIVersion: apiVersion, Kind: listKind,
		Config: config{APIVersion: "v1", Kind: "ConfigMap", OptionalRefs: append([]string{}, optional...)},
	}
	for _, in := range inputs {
		item, err := keyed(in)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, item)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the inputs: %w", err)
	}

	return data, nil
}

// keyed returns the object of an input with its key on it. The object itself may be shared and is
// not changed.
func keyed(in Input) (map[string]any, error) {
	object := maps.Clone(in.Object)
	if object == nil {
		return nil, fmt.Errorf("cannot encode input %q: there is no object", in.Key)
	}
	metadata, err := copied(object, "metadata")
	if err != nil {
		return nil, fmt.Errorf("cannot encode input %q: %w", in.Key, err)
	}
	annotations, err := copied(metadata, "annotations")
	if err != nil {
		return nil, fmt.Errorf("cannot encode input %q: %w", in.Key, err)
	}
	annotations[enov1.AnnotationInputKey] = in.Key

	return object, nil
}

// copied replaces a map in another by a copy of it, or by an empty one.
func copied(in map[string]any, field string) (map[string]any, error) {
	have, ok := in[field].(map[string]any)
	if !ok && in[field] != nil {
		return nil, fmt.Errorf("%s is not a map", field)
	}
	to := make(map[string]any, len(have)+1)
	maps.Copy(to, have)
	in[field] = to

	return to, nil
}
