package v2alpha2

import (
	"encoding/json"
	"time"
)

// Duration is a length of time in the notation of Go, such as 30s or 1h30m.
//
// Unlike metav1.Duration, it decodes every value. An informer decodes all
// objects of a list at once, so one object whose duration cannot be decoded
// would hide the rest. An invalid value is kept and written back as it is.
//
// +kubebuilder:validation:Type=string
type Duration struct { //nolint:recvcheck // values are marshaled, pointers unmarshaled
	// Duration is the value, 0 if it is invalid.
	Duration time.Duration `json:"-"`
	// Invalid is the JSON of an invalid value, "" if the value is valid.
	Invalid string `json:"-"`
}

// Get returns the value, and false if it is absent or invalid.
func (d *Duration) Get() (time.Duration, bool) {
	if d == nil || d.Invalid != "" {
		return 0, false
	}

	return d.Duration, true
}

// String returns the value as a user would write it.
func (d *Duration) String() string {
	if value, ok := d.Get(); ok || d == nil {
		return value.String()
	}
	var text string
	if json.Unmarshal([]byte(d.Invalid), &text) != nil {
		return d.Invalid
	}

	return text
}

// UnmarshalJSON never fails: it keeps what is not a duration in Invalid.
func (d *Duration) UnmarshalJSON(data []byte) error {
	*d = Duration{Invalid: string(data)}
	var text string
	if json.Unmarshal(data, &text) == nil {
		if value, err := time.ParseDuration(text); err == nil {
			*d = Duration{Duration: value}
		}
	}

	return nil
}

// MarshalJSON returns an invalid value as it was.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d.Invalid != "" {
		return []byte(d.Invalid), nil
	}

	return json.Marshal(d.Duration.String())
}
