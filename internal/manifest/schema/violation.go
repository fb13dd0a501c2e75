package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReasonUnknownField is the reason for a field that the schema lacks. The
// other reasons are those of the API server's field errors.
const ReasonUnknownField = "FieldUnknown"

// A Violation is one thing that an API server would reject.
type Violation struct {
	// Reason is a CamelCase identifier, such as FieldValueRequired.
	Reason string
	// Field path, empty for the object as a whole.
	Field string
	// Value that was rejected, if it can be shown.
	Value string
	// Message without the field.
	Message string
	// Fix describes what to do, if that is known.
	Fix string
}

func fromError(e *field.Error) Violation {
	if v, ok := outOfRange(e); ok {
		return v
	}

	v := Violation{Reason: string(e.Type), Field: e.Field, Message: detail(e)}

	switch e.Type {
	case field.ErrorTypeRequired:
		if v.Message == "" {
			v.Message = "is required"
		}

		v.Fix = "add it"
	case field.ErrorTypeNotSupported:
		v.Value = scalarText(e.BadValue)
		v.Message = fmt.Sprintf("%q is not supported", v.Value)
		v.Fix = "use one of " + strings.TrimPrefix(e.Detail, "supported values: ")
	case field.ErrorTypeTypeInvalid:
		v.Reason, v.Message, v.Fix = typeWords(v.Message)
	case field.ErrorTypeInvalid:
		v.Value = scalarText(e.BadValue)
	case field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeDuplicate,
		field.ErrorTypeNotFound, field.ErrorTypeInternal, field.ErrorTypeTooFew, field.ErrorTypeTooShort:
		v.Message = strings.TrimSuffix(strings.ToLower(e.Type.String())+": "+v.Message, ": ")
	}

	return v
}

// outOfRange converts the error of a number that its format cannot hold, such as `Checked value
// must be of type integer with format int32 in spec.minMember`: OpenAPI reports it without a field.
func outOfRange(e *field.Error) (Violation, bool) {
	text, ok := strings.CutPrefix(e.Detail, "Checked value must be of type ")
	want, path, found := strings.Cut(text, " in ")

	if !ok || !found {
		return Violation{}, false
	}

	kind, format, _ := strings.Cut(want, " with format ")

	return Violation{
		Reason: string(field.ErrorTypeInvalid), Field: path, Value: scalarText(e.BadValue),
		Message: fmt.Sprintf("is out of the range of an %s of format %s", kind, format), Fix: "use a smaller number",
	}, true
}

// detail is the text of an error without the field, which OpenAPI repeats.
func detail(e *field.Error) string {
	text := strings.TrimPrefix(e.Detail, e.Field)

	return strings.TrimPrefix(text, " in body ")
}

// JSON types that people take for each other.
const (
	typeBoolean = "boolean"
	typeInteger = "integer"
	typeNumber  = "number"
	typeString  = "string"
)

// jsonTypes are those that a schema can ask for. Whatever else it calls a type
// is the format of a string.
var jsonTypes = []string{"array", typeBoolean, typeInteger, "null", typeNumber, "object", typeString}

// goTypes are the names of types for a value with a format that is not a string.
var goTypes = map[string]string{"bool": typeBoolean, "float64": typeNumber, "int64": typeInteger}

// typeWords rewrites `must be of type integer: "string"`, and the same about formats, `must be of
// type cidr: "ten"`, which is used for a value of the right type.
func typeWords(text string) (reason, message, fix string) {
	reason = string(field.ErrorTypeTypeInvalid)
	rest, ok := strings.CutPrefix(text, "must be of type ")
	want, got, found := strings.Cut(rest, ": ")

	if !ok || !found {
		return reason, text, ""
	}

	got = strings.Trim(got, `"`)

	if !slices.Contains(jsonTypes, want) {
		other, isOther := goTypes[got]
		if !isOther {
			return string(field.ErrorTypeInvalid), "must be a valid " + want, ""
		}

		want, got = typeString, other
	}

	switch {
	case want == typeString && slices.Contains([]string{typeInteger, typeNumber, typeBoolean}, got):
		fix = "put the value in quotes"
	case want == typeInteger && got == typeString:
		fix = "write a whole number without quotes"
	case want == typeBoolean && got == typeString:
		fix = "write true or false without quotes"
	}

	return reason, fmt.Sprintf("must be of type %s, not %s", want, got), fix
}

// unknown is the violation of a field that the schema s lacks. The nearest
// name that it does have is offered.
func unknown(path string, s *structural.Structural) Violation {
	parent, name := splitLast(path)
	v := Violation{Reason: ReasonUnknownField, Field: path, Message: fmt.Sprintf("unknown field %q", name), Fix: "remove it"}

	if near := nearest(name, siblings(parent, s)); near != "" {
		v.Fix = fmt.Sprintf("did you mean %q?", near)
	}

	return v
}

func splitLast(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')

	return path[:max(i, 0)], path[i+1:]
}

// metadataFields are those that people write.
var metadataFields = []string{"annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"}

// siblings returns the names that are known below a path, sorted.
func siblings(path string, s *structural.Structural) []string {
	if path == "metadata" {
		return metadataFields
	}

	for part := range strings.SplitSeq(path, ".") {
		if s == nil || part == "" {
			break
		}

		name, index, _ := strings.Cut(part, "[")
		child, ok := s.Properties[name]

		if !ok {
			return nil
		}

		s = &child

		for range strings.Count(index, "]") {
			if s = s.Items; s == nil {
				return nil
			}
		}
	}

	if s == nil {
		return nil
	}

	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}

	slices.Sort(names)

	return names
}

// nearest returns the known name that differs by case only or by few letters.
func nearest(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1

	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k), least); d < least {
			best, least = k, d
		}
	}

	return best
}

// distance is the number of letters to insert, delete or replace to get from
// a to b, or limit if it is at least that.
func distance(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit
	}

	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}

			diagonal = row[j+1]
			row[j+1] = min(replace, diagonal+1, row[j]+1)
		}
	}

	return min(row[len(b)], limit)
}

func sorted(all []Violation) []Violation {
	slices.SortFunc(all, func(a, b Violation) int {
		return cmp.Or(
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Value, b.Value),
		)
	})

	return slices.Compact(all)
}
