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

// An Operation is the way in which a manager came to hold its fields.
type Operation string

const (
	// Apply : the fields are the manager's whole intent; what it no longer
	// names is removed.
	Apply Operation = "Apply"
	// Update : the fields are what the manager changed, by any other verb.
	Update Operation = "Update"
)

// Names that the server itself gives to managers. They are managers like any
// other, and nobody is left to ask.
const (
	// BeforeFirstApply holds everything that was there when an object without
	// entries was applied for the first time.
	BeforeFirstApply = "before-first-apply"
	// AncientChanges is where the server puts the oldest updates when there are
	// more than ten of them.
	AncientChanges = "ancient-changes"
)

// An Entry says which fields one manager holds: an element of an object's
// metadata.managedFields.
type Entry struct {
	Manager   string
	Operation Operation
	// Subresource through which the manager wrote, "" for the object itself.
	Subresource string
	// APIVersion in which Fields are to be read.
	APIVersion string
	// Time as it is written, in RFC 3339. It may be empty, and it means nothing
	// but the order of entries.
	Time string
	// Fields may be nil, which is the empty set. Sets are shared between
	// entries and plans: nobody writes to one that was handed out.
	Fields *fieldpath.Set
}

// Entries are all of an object's entries.
type Entries []Entry

// An Identity is what the server tells entries apart by. There is one entry of
// an identity.
type Identity struct {
	Manager     string    `json:"manager"`
	Operation   Operation `json:"operation"`
	Subresource string    `json:"subresource,omitempty"`
	// APIVersion is empty for Apply: a manager applies in one version at a time.
	APIVersion string `json:"apiVersion,omitempty"`
}

// Identity of the entry.
func (e Entry) Identity() Identity {
	id := Identity{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource, APIVersion: e.APIVersion}
	if e.Operation == Apply {
		id.APIVersion = ""
	}

	return id
}

// String is short, for people: eno (Apply), kubelet (Update v1 of /status).
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

// fields is the entry's set, never nil.
func (e Entry) fields() *fieldpath.Set {
	if e.Fields == nil {
		return &fieldpath.Set{}
	}

	return e.Fields
}

// fieldsV1 is the only type of sets there is.
const fieldsV1 = "FieldsV1"

// encoded is an entry as the API has it.
type encoded struct {
	Manager     string          `json:"manager,omitempty"`
	Operation   Operation       `json:"operation,omitempty"`
	APIVersion  string          `json:"apiVersion,omitempty"`
	Time        string          `json:"time,omitempty"`
	FieldsType  string          `json:"fieldsType,omitempty"`
	FieldsV1    json.RawMessage `json:"fieldsV1,omitempty"`
	Subresource string          `json:"subresource,omitempty"`
}

// MarshalJSON writes the entry as the API has it. Equal entries give equal
// bytes.
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

// UnmarshalJSON reads what MarshalJSON writes, and is strict: the error is a
// [Defects]. [ReadList] is tolerant.
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

// ParseFields reads one set: the fieldsV1 of an entry.
func ParseFields(data []byte) (*fieldpath.Set, error) {
	if !json.Valid(data) {
		return nil, errors.New("cannot read fields: they are no JSON")
	}
	if first := bytes.TrimLeft(data, " \t\r\n"); first[0] != '{' {
		return nil, errors.New("cannot read fields: they are no JSON object")
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("cannot read fields: %w", err)
	}

	return set, nil
}
