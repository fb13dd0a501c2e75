package krm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
)

// Limits of what a program may write. A result is written to the status of a Composition, which has
// to stay small enough to be stored.
const (
	MaxOutput = 10 << 20
	// MaxMessage is how many bytes of a message are kept.
	MaxMessage = 2 << 10

	maxResults = 50
	// maxResultBytes is how many bytes of results are kept, as JSON. A Composition
	// stores the results of its last syntheses.
	maxResultBytes = 32 << 10
	maxTags        = 20
	maxTag         = 256
)

// An Output is what a program wrote.
type Output struct {
	Items   []Item
	Results []enov1.Result
}

// An Item is one manifest.
type Item struct {
	// Identity is the object that the manifest is about, with the namespace as it is
	// written: the protocol does not know the scopes of kinds.
	identity.Identity

	// Manifest is the item as the program wrote it, as JSON without spaces: nothing
	// is read into numbers and lost.
	Manifest string
}

// received is a ResourceList as programs write it. Pointers distinguish what is empty from what is
// absent.
type received struct {
	Kind    string          `json:"kind"`
	Items   json.RawMessage `json:"items"`
	Results *[]result       `json:"results"`
}

type result struct {
	Message  string            `json:"message"`
	Severity string            `json:"severity"`
	Tags     map[string]string `json:"tags"`
}

// Decode parses the output of a program. apiVersion and kind of the list may be missing, as long as
// it can be distinguished from a bare manifest: to read that as "no items" would delete all
// objects.
func Decode(data []byte) (Output, error) {
	if len(data) > MaxOutput {
		return Output{}, TooLarge()
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Output{}, errors.New("cannot read the output: it is empty, a ResourceList is wanted")
	}
	var list received
	if err := json.Unmarshal(data, &list); err != nil {
		return Output{}, fmt.Errorf("cannot read the output as a ResourceList: %w (it begins with %s)", err, beginning(data))
	}
	if list.Items == nil && list.Results == nil && list.Kind != listKind {
		return Output{}, fmt.Errorf("cannot read the output: it is no ResourceList, it has kind %q and neither items nor results", list.Kind)
	}

	var out Output
	if list.Results != nil {
		out.Results = results(*list.Results)
	}
	if list.Items == nil {
		if slices.ContainsFunc(out.Results, func(r enov1.Result) bool { return r.Severity == enov1.SeverityError }) {
			return out, nil // it has failed, and the results explain why
		}

		return out, errors.New(`cannot read the output: it has no items; write "items": [] if no object is wanted`)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(list.Items, &raw); err != nil {
		return out, fmt.Errorf("cannot read the output: items is not a list but %s", beginning(list.Items))
	}
	items, err := decodeItems(raw)
	out.Items = items

	return out, err
}

// TooLarge is what is wrong with an output that is larger than MaxOutput.
func TooLarge() error {
	return fmt.Errorf("cannot read the output: it is larger than %d MiB", MaxOutput>>20)
}

func decodeItems(raw []json.RawMessage) ([]Item, error) {
	items := make([]Item, 0, len(raw))
	first := make(map[identity.Identity]int, len(raw))
	for i, r := range raw {
		item, err := decodeItem(r)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		item.Identity = identity.Number(item.Identity, first)
		if j, ok := first[item.Identity]; ok {
			return nil, fmt.Errorf("items[%d]: %s is in the list already, as items[%d]", i, item, j)
		}
		first[item.Identity] = i
		items = append(items, item)
	}

	return items, nil
}

func decodeItem(raw json.RawMessage) (Item, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return Item{}, fmt.Errorf("it is not an object but %s", beginning(raw))
	}
	if err := checkList(object); err != nil {
		return Item{}, err
	}
	head, err := headOf(object)
	if err != nil {
		return Item{}, err
	}
	if identity.IsPatch(head.APIVersion, head.Kind) {
		if head.Patch, err = targetOf(object); err != nil {
			return Item{}, err
		}
	}
	if err := identity.CheckAPIVersion(head.APIVersion); err != nil {
		return Item{}, fmt.Errorf("%s: %w", head.Identity(), err)
	}
	if err := identity.CheckAPIVersion(head.Patch.APIVersion); err != nil {
		return Item{}, fmt.Errorf("%s: patch.%w", head.Identity(), err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return Item{}, fmt.Errorf("it is not JSON: %w", err)
	}

	return Item{Identity: head.Identity(), Manifest: compact.String()}, nil
}

// checkList returns an error for an item that is a list of objects, as kubectl and many
// templates print it: it has items, and no name.
func checkList(object map[string]json.RawMessage) error {
	var (
		kind     string
		items    []json.RawMessage
		metadata identity.Metadata
	)
	for name, to := range map[string]any{"kind": &kind, "items": &items, "metadata": &metadata} {
		_ = field(object, name, to) // if a field cannot be read, the error about that follows
	}
	if !strings.HasSuffix(kind, "List") || items == nil || metadata.Name != "" {
		return nil
	}
	objects := "objects"
	if len(items) == 1 {
		objects = "object"
	}

	return fmt.Errorf("kind %q is a list of %d %s, not an object: write each of its items into items of the ResourceList", kind, len(items), objects)
}

// headOf reads what every manifest must have.
func headOf(object map[string]json.RawMessage) (identity.Head, error) {
	var (
		head     identity.Head
		metadata map[string]json.RawMessage
	)
	if err := field(object, "metadata", &metadata); err != nil {
		return identity.Head{}, err
	}
	for _, f := range []struct {
		in       map[string]json.RawMessage
		at, name string
		to       *string
		optional bool
	}{
		{in: object, name: "apiVersion", to: &head.APIVersion},
		{in: object, name: "kind", to: &head.Kind},
		{in: metadata, at: "metadata.", name: "name", to: &head.Metadata.Name},
		{in: metadata, at: "metadata.", name: "namespace", to: &head.Metadata.Namespace, optional: true},
	} {
		if err := field(f.in, f.name, f.to); err != nil {
			return identity.Head{}, fmt.Errorf("%s%w", f.at, err)
		}
		if *f.to == "" && !f.optional {
			return identity.Head{}, fmt.Errorf("%s%s is missing", f.at, f.name)
		}
		if f.at != "" && !identity.CanExist(*f.to) {
			return identity.Head{}, fmt.Errorf(`%s%s %q cannot be: it must be neither "." nor "..", and must not contain "/" or "%%"`, f.at, f.name, *f.to)
		}
	}

	return head, nil
}

// targetOf reads what a Patch changes, and checks how.
func targetOf(object map[string]json.RawMessage) (identity.Target, error) {
	var (
		target identity.Target
		patch  map[string]json.RawMessage
		ops    []map[string]json.RawMessage
	)
	if err := field(object, "patch", &patch); err != nil {
		return target, err
	}
	for _, f := range []struct {
		name string
		to   any
	}{{"apiVersion", &target.APIVersion}, {"kind", &target.Kind}, {"ops", &ops}} {
		if err := field(patch, f.name, f.to); err != nil {
			return target, fmt.Errorf("patch.%w", err)
		}
	}
	switch {
	case target.APIVersion == "":
		return target, errors.New("patch.apiVersion is missing")
	case target.Kind == "":
		return target, errors.New("patch.kind is missing")
	default:
		return target, nil
	}
}

// field reads a field if it is there.
func field(object map[string]json.RawMessage, name string, to any) error {
	raw, ok := object[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s cannot be read: it is %s", name, beginning(raw))
	}

	return nil
}

// results returns those that are kept: errors first, then the rest, as long as they fit. Another
// one reports how many are left out.
func results(from []result) []enov1.Result {
	to := make([]enov1.Result, 0, min(len(from), maxResults))
	size, left := 0, 0
	for _, errorsNow := range []bool{true, false} {
		for _, r := range from {
			if (r.Severity == enov1.SeverityError) != errorsNow {
				continue
			}
			kept := enov1.Result{Message: Shorten(r.Message, MaxMessage), Severity: Shorten(r.Severity, maxTag), Tags: tags(r.Tags)}
			n := sizeOf(kept)
			if size+n > maxResultBytes {
				kept.Tags = nil
				n = sizeOf(kept) // the first one always fits
			}
			if len(to) == maxResults || size+n > maxResultBytes {
				left++

				continue
			}
			to, size = append(to, kept), size+n
		}
	}
	if left > 0 {
		to = append(to, enov1.Result{Message: fmt.Sprintf("%d more results are left out: too many to store", left), Severity: enov1.SeverityInfo})
	}

	return to
}

// sizeOf is how many bytes a result takes in a status.
func sizeOf(r enov1.Result) int {
	data, err := json.Marshal(r)
	if err != nil {
		return maxResultBytes // texts can always be encoded
	}

	return len(data)
}

func tags(from map[string]string) map[string]string {
	if len(from) == 0 || len(from) > maxTags {
		return nil
	}
	to := make(map[string]string, len(from))
	for k, v := range from {
		to[Shorten(k, maxTag)] = Shorten(v, maxTag)
	}

	return to
}

// Shorten cuts a text to a number of bytes, and not within a letter.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end] + "…"
}

// beginning quotes enough of a text to recognize it.
func beginning(data []byte) string {
	const enough = 60

	return fmt.Sprintf("%q", Shorten(strings.ToValidUTF8(string(bytes.TrimSpace(data[:min(len(data), 4*enough)])), "?"), enough))
}
