package verdict

import "fmt"

// ReasonUndecodable is of a field whose value has the wrong type.
const ReasonUndecodable = "Undecodable"

// ScalarText writes a scalar as text, and nothing for what has parts.
func ScalarText(v any) string {
	switch v := v.(type) {
	case nil, []any, map[string]any:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}
