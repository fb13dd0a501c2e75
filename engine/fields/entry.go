package fields

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// An Operation is how a manager acquired its fields.
type Operation string

const (
	// Apply means that the fields are the manager's whole intent: its next apply removes those that
	// it no longer names.
	Apply Operation = "Apply"
	// Update means that the manager changed the fields by any other verb.
	Update Operation = "Update"
)

// Names that the server itself gives to managers. They are managers like any other, but no program
// uses these names.
const (
	// BeforeFirstApply holds the fields of an object that had no entries when it was applied for
	// the first time.
	BeforeFirstApply = "before-first-apply"
	// AncientChanges holds the fields of the oldest updates, if there are more than ten of them.
	AncientChanges = "ancient-changes"
)

// An Entry is an element of metadata.managedFields: the fields that one manager holds.
type Entry struct {
	Manager   string
	Operation Operation
	// Subresource is the one through which the manager wrote, "" for the object itself.
	Subresource string
	// APIVersion is the version that Fields refer to.
	APIVersion string
	// Time is in RFC 3339, or empty. It only orders entries.
	Time string
	// Fields may be nil, which is the empty set. Entries and plans share sets, so sets must not be
	// modified.
	Fields *fieldpath.Set
}

// Entries are the entries of one object.
type Entries []Entry

// An Identity distinguishes entries, as in the server. An object has at most one entry for each
// identity.
type Identity struct {
	Manager     string    `json:"manager"`
	Operation   Operation `json:"operation"`
	Subresource string    `json:"subresource,omitempty"`
	// APIVersion is empty for Apply: a manager applies in one version at a time.
	APIVersion string `json:"apiVersion,omitempty"`
}

// Identity returns the identity of the entry.
func (e Entry) Identity() Identity {
	id := Identity{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource, APIVersion: e.APIVersion}
	if e.Operation == Apply {
		id.APIVersion = ""
	}

	return id
}

// String returns a short text for people, such as eno (Apply) or kubelet (Update v1 of /status).
func (id Identity) String() string {
	if id == (Identity{}) {
		return "nobody"
	}
	how := string(id.Operation)
	if id.APIVersion != "" {
		how += " " + id.APIVersion
	}
	if id.Subresource != "" {
		how += " of /" + id.Subresource
	}

	return fmt.Sprintf("%s (%s)", id.Manager, how)
}

// Compare orders identities by name first.
func (id Identity) Compare(other Identity) int {
	return cmp.Or(
		strings.Compare(id.Manager, other.Manager),
		strings.Compare(string(id.Operation), string(other.Operation)),
		strings.Compare(id.Subresource, other.Subresource),
		strings.Compare(id.APIVersion, other.APIVersion),
	)
}

// fields returns the entry's set, never nil.
func (e Entry) fields() *fieldpath.Set {
	if e.Fields == nil {
		return &fieldpath.Set{}
	}

	return e.Fields
}

// fieldsV1 is the only format of sets.
const fieldsV1 = "FieldsV1"

// encoded is the JSON of an entry.
type encoded struct {
	Manager     string          `json:"manager,omitempty"`
	Operation   Operation       `json:"operation,omitempty"`
	APIVersion  string          `json:"apiVersion,omitempty"`
	Time        string          `json:"time,omitempty"`
	FieldsType  string          `json:"fieldsType,omitempty"`
	FieldsV1    json.RawMessage `json:"fieldsV1,omitempty"`
	Subresource string          `json:"subresource,omitempty"`
}

// MarshalJSON writes the entry in the format of the API. Equal entries give equal bytes.
func (e Entry) MarshalJSON() ([]byte, error) {
	set, err := e.fields().ToJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot write the fields of %s: %w", e.Identity(), err)
	}

	return json.Marshal(encoded{
		Manager: e.Manager, Operation: e.Operation, APIVersion: e.APIVersion, Time: e.Time,
		FieldsType: fieldsV1, FieldsV1: set, Subresource: e.Subresource,
	})
}

// UnmarshalJSON reads what MarshalJSON writes. It is strict, and its error is a [Defects];
// [ReadList] is tolerant.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var in encoded
	if err := json.Unmarshal(data, &in); err != nil {
		return Defects{{Problem: NotAnEntry, Detail: err.Error()}}
	}
	read, found := in.entry(0)
	if len(found) > 0 {
		return found
	}
	*e = read

	return nil
}

// ParseFields reads one set, the fieldsV1 of an entry.
func ParseFields(data []byte) (*fieldpath.Set, error) {
	if !json.Valid(data) {
		return nil, errors.New("cannot read fields: they are not valid JSON")
	}
	if first := bytes.TrimLeft(data, " \t\r\n"); first[0] != '{' {
		return nil, errors.New("cannot read fields: they are not a JSON object")
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("cannot read fields: %w", err)
	}

	return set, nil
}
