package fields

import (
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Move is that fields go from one entry to another.
type Move struct {
	// From is nobody, the zero Identity, for fields that nobody held.
	From Identity
	// To is nobody for fields that are released.
	To     Identity
	Fields *fieldpath.Set
}

// encodedMove is a move in JSON.
type encodedMove struct {
	From   *Identity       `json:"from,omitempty"`
	To     *Identity       `json:"to,omitempty"`
	Fields json.RawMessage `json:"fieldsV1"`
}

// MarshalJSON writes the fields as entries have them.
func (m Move) MarshalJSON() ([]byte, error) {
	set, err := Entry{Fields: m.Fields}.fields().ToJSON()
	if err != nil {
		return nil, err
	}
	out := encodedMove{Fields: set}
	if m.From != (Identity{}) {
		out.From = &m.From
	}
	if m.To != (Identity{}) {
		out.To = &m.To
	}

	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Move) UnmarshalJSON(data []byte) error {
	var in encodedMove
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	set, err := ParseFields(in.Fields)
	if err != nil {
		return err
	}
	*m = Move{Fields: set}
	if in.From != nil {
		m.From = *in.From
	}
	if in.To != nil {
		m.To = *in.To
	}

	return nil
}
