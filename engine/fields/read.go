package fields

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Problem is why an entry is invalid. The server rejects an apply to an object that has such an
// entry, and ignores a whole list that has one, with status 200.
type Problem string

const (
	// NotAnEntry means that the element, or the whole list, has another type.
	NotAnEntry Problem = "NotAnEntry"
	// NoAPIVersion means that the version of the fields is missing.
	NoAPIVersion Problem = "NoAPIVersion"
	// BadOperation means that the operation is neither Apply nor Update.
	BadOperation Problem = "BadOperation"
	// NoFieldsType means that the format of the fields is missing.
	NoFieldsType Problem = "NoFieldsType"
	// BadFieldsType means that the format of the fields is unknown.
	BadFieldsType Problem = "BadFieldsType"
	// BadFields means that the fields cannot be parsed.
	BadFields Problem = "BadFields"
	// Duplicate means that an earlier entry has the same identity, so that one of them would be
	// lost.
	Duplicate Problem = "Duplicate"
)

// A Defect is one problem of one entry.
type Defect struct {
	// Index in the list, -1 if the defect is about the list.
	Index   int
	Manager string
	Problem Problem
	// Detail is what was found instead, or a parse error.
	Detail string
}

func (d Defect) Error() string {
	if d.Index < 0 {
		return "cannot use managedFields: " + d.Detail
	}

	return fmt.Sprintf("cannot use managedFields[%d] of manager %q: %s", d.Index, d.Manager, d.why())
}

func (d Defect) why() string {
	switch d.Problem {
	case NoAPIVersion:
		return "it has no apiVersion"
	case BadOperation:
		return fmt.Sprintf("its operation is %q, which is neither Apply nor Update", d.Detail)
	case NoFieldsType:
		return "it has no fieldsType"
	case BadFieldsType:
		return fmt.Sprintf("its fieldsType is %q, and only FieldsV1 is known", d.Detail)
	case Duplicate:
		return "an entry before it is of the same " + d.Detail
	case NotAnEntry:
		return "it is not an entry: " + d.Detail
	case BadFields:
		return d.Detail
	}

	return string(d.Problem)
}

// Defects are all defects of a list, in its order. There is at least one.
type Defects []Defect

func (d Defects) Error() string {
	texts := make([]string, len(d))
	for i := range d {
		texts[i] = d[i].Error()
	}

	return strings.Join(texts, "; ")
}

// Unwrap lets errors.As find a Defect.
func (d Defects) Unwrap() []error {
	all := make([]error, len(d))
	for i := range d {
		all[i] = d[i]
	}

	return all
}

// err returns nil if there is no defect.
func (d Defects) err() error {
	if len(d) == 0 {
		return nil
	}

	return d
}

// Read reads the entries of an object that is decoded JSON. See [ReadList].
func Read(object any) (Entries, error) {
	top, _ := object.(map[string]any)
	meta, _ := top["metadata"].(map[string]any)

	return ReadList(meta["managedFields"])
}

// ReadList reads a list of entries that is decoded JSON; nil is the empty list. It returns all
// entries with readable fields, also those that the server would reject. The error is a [Defects]
// or nil.
func ReadList(list any) (Entries, error) {
	if list == nil {
		return nil, nil
	}
	elements, ok := list.([]any)
	if !ok {
		return nil, Defects{{Index: -1, Problem: NotAnEntry, Detail: fmt.Sprintf("it is not a list but a %T", list)}}
	}
	var all Entries
	var found Defects
	for i, element := range elements {
		in, err := decode(element)
		if err != nil {
			found = append(found, Defect{Index: i, Manager: in.Manager, Problem: NotAnEntry, Detail: err.Error()})

			continue
		}
		e, defects := in.entry(i)
		found = append(found, defects...)
		if !slices.ContainsFunc(defects, func(d Defect) bool { return d.Problem == BadFields || d.Problem == BadFieldsType }) {
			all = append(all, e)
		}
	}

	return all, found.err()
}

func decode(element any) (encoded, error) {
	object, ok := element.(map[string]any)
	if !ok {
		return encoded{}, fmt.Errorf("it is a %T", element)
	}
	var in encoded
	for _, text := range []struct {
		name string
		to   *string
	}{
		{"manager", &in.Manager},
		{"operation", (*string)(&in.Operation)},
		{"apiVersion", &in.APIVersion},
		{"time", &in.Time},
		{"fieldsType", &in.FieldsType},
		{"subresource", &in.Subresource},
	} {
		v := object[text.name]
		if *text.to, ok = v.(string); !ok && v != nil {
			return in, fmt.Errorf("its %s is a %T", text.name, v)
		}
	}
	if set, ok := object["fieldsV1"]; ok && set != nil {
		raw, err := json.Marshal(set)
		if err != nil {
			return in, fmt.Errorf("its fieldsV1 cannot be read: %w", err)
		}
		in.FieldsV1 = raw
	}

	return in, nil
}

// entry returns the readable fields of an entry.
func (in encoded) entry(index int) (Entry, Defects) {
	e := Entry{Manager: in.Manager, Operation: in.Operation, Subresource: in.Subresource, APIVersion: in.APIVersion, Time: in.Time}
	found := e.defects(index)
	switch in.FieldsType {
	case fieldsV1:
	case "":
		found = append(found, Defect{Index: index, Manager: in.Manager, Problem: NoFieldsType})
	default:
		found = append(found, Defect{Index: index, Manager: in.Manager, Problem: BadFieldsType, Detail: in.FieldsType})
	}
	if len(in.FieldsV1) == 0 || string(in.FieldsV1) == "null" {
		return e, found
	}
	set, err := ParseFields(in.FieldsV1)
	if err != nil {
		found = append(found, Defect{Index: index, Manager: in.Manager, Problem: BadFields, Detail: err.Error()})
	}
	e.Fields = set

	return e, found
}

func (e Entry) defects(index int) Defects {
	var found Defects
	if e.APIVersion == "" {
		found = append(found, Defect{Index: index, Manager: e.Manager, Problem: NoAPIVersion})
	}
	if e.Operation != Apply && e.Operation != Update {
		found = append(found, Defect{Index: index, Manager: e.Manager, Problem: BadOperation, Detail: string(e.Operation)})
	}

	return found
}

// Check returns why the server would ignore the list, or lose some of it, if it were written: a
// [Defects] or nil.
func (es Entries) Check() error {
	var found Defects
	first := map[Identity]bool{}
	for i, e := range es {
		found = append(found, e.defects(i)...)
		if id := e.Identity(); first[id] {
			found = append(found, Defect{Index: i, Manager: e.Manager, Problem: Duplicate, Detail: id.String()})
		}
		first[e.Identity()] = true
	}

	return found.err()
}
