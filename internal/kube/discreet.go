package kube

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// hidden stands for a value that is not shown.
	hidden = "(not shown)"
	// shortest is how long a value has to be to give anything away: shorter ones are
	// in every text.
	shortest = 3
)

// Discreet returns an error whose text has no value of the Secrets among objects. A server that
// rejects an object may quote it, and errors are written to logs, events and statuses, which more
// people may read than the Secret. The kind of the error can still be tested.
func Discreet(err error, objects ...map[string]any) error {
	if err == nil {
		return nil
	}
	if text := DiscreetText(err.Error(), objects...); text != err.Error() {
		return &discreet{err, text}
	}

	return err
}

// WithText returns an error with another text. What the error is can still be asked.
func WithText(err error, text string) error { return &discreet{err, text} }

// DiscreetText is Discreet for a text.
func DiscreetText(text string, objects ...map[string]any) string {
	var values []string
	for _, o := range objects {
		if o["kind"] == "Secret" && o["apiVersion"] == "v1" {
			values = secrets(values, o["data"])
			values = secrets(values, o["stringData"])
		}
	}
	// A value that is a part of another must not leave the rest of that behind.
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for _, v := range values {
		if len(v) >= shortest {
			text = strings.ReplaceAll(text, v, hidden)
		}
	}

	return text
}

// PatchedObject is what an error about a JSON patch may quote, as an object for
// Discreet.
func PatchedObject(target schema.GroupVersionKind, ops []byte) map[string]any {
	var all []struct {
		Value any `json:"value"`
	}
	_ = json.Unmarshal(ops, &all) // invalid JSON has no values
	values := make([]any, len(all))
	for i, op := range all {
		values[i] = op.Value
	}

	return map[string]any{"apiVersion": target.GroupVersion().String(), "kind": target.Kind, "data": values}
}

type discreet struct {
	err  error
	text string
}

func (d *discreet) Error() string { return d.text }

func (d *discreet) Unwrap() error { return d.err }

// secrets adds everything below a value, however it may be written: plain, quoted,
// and in base64, which hides nothing.
func secrets(values []string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			values = secrets(values, item)
		}
	case []any:
		for _, item := range v {
			values = secrets(values, item)
		}
	case nil:
	default:
		text := fmt.Sprint(v)
		values = forms(values, text)
		values = append(values, base64.StdEncoding.EncodeToString([]byte(text)))
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			values = forms(values, string(plain))
		}
	}

	return values
}

func forms(values []string, text string) []string {
	quoted := strconv.Quote(text)

	return append(values, text, quoted[1:len(quoted)-1])
}
