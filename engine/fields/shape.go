package fields

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A shape is as much of an object's schema as sets reveal: which lists have keys, which are sets,
// and which fields are atomic. All items of a list have one shape, so sets about one item describe
// every item.
type shape struct {
	fields map[string]*shape
	// items is nil if no set has an item of this.
	items *shape
	// keys are the names of all keys of items in sets, sorted. An item may lack some of them.
	keys []string
	// values reports whether a set has items that are their own key.
	values bool
	// granular reports whether fields below are held one by one, even if no set shows it.
	granular bool
}

// newShape returns the shape that all objects have in common.
func newShape() *shape {
	s := &shape{}
	meta := s.field("metadata")
	meta.field("labels").granular = true
	meta.field("annotations").granular = true

	return s
}

func (s *shape) field(name string) *shape {
	if s.fields == nil {
		s.fields = map[string]*shape{}
	}
	child, ok := s.fields[name]
	if !ok {
		child = &shape{}
		s.fields[name] = child
	}

	return child
}

// learn adds the structure that a set reveals.
func (s *shape) learn(set *fieldpath.Set) {
	for pe := range set.Members.All() {
		s.at(pe)
	}
	for pe := range set.Children.All() {
		s.at(pe).learn(set.WithPrefix(pe))
	}
}

// at returns the shape of an element, and makes it if it is new.
func (s *shape) at(pe fieldpath.PathElement) *shape {
	if pe.FieldName != nil {
		return s.field(*pe.FieldName)
	}
	if s.items == nil {
		s.items = &shape{}
	}
	s.values = s.values || pe.Value != nil
	if pe.Key != nil {
		for _, f := range *pe.Key {
			if i, found := slices.BinarySearch(s.keys, f.Name); !found {
				s.keys = slices.Insert(s.keys, i, f.Name)
			}
		}
	}

	return s.items
}

// child returns the shape of an element, nil if nothing is known. The receiver may be nil.
func (s *shape) child(pe fieldpath.PathElement) *shape {
	switch {
	case s == nil:
		return nil
	case pe.FieldName != nil:
		return s.fields[*pe.FieldName]
	default:
		return s.items
	}
}

// atomic reports whether sets have this and never anything below it. The receiver may be nil.
func (s *shape) atomic() bool {
	return s != nil && len(s.fields) == 0 && s.items == nil && !s.granular
}

// kind returns the kind of a live value. The receiver may be nil.
func (s *shape) kind(v any) Kind {
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case len(object) == 0 && len(list) == 0:
		return Leaf
	case s.atomic():
		return Atomic
	case isObject:
		return Struct
	case isList && s != nil && s.items != nil:
		return Items
	default:
		return Opaque
	}
}

// element returns the path element of a list item: its keys, its value, or its position if it lacks
// the keys.
func (s *shape) element(index int, item any) fieldpath.PathElement {
	if object, ok := item.(map[string]any); ok {
		var keys value.FieldList
		for _, name := range s.keys {
			if v, ok := object[name]; ok {
				keys = append(keys, value.Field{Name: name, Value: value.NewValueInterface(scalar(v))})
			}
		}
		if len(keys) > 0 {
			return fieldpath.PathElement{Key: &keys}
		}
	} else if s.values {
		if _, list := item.([]any); !list {
			v := value.NewValueInterface(scalar(item))

			return fieldpath.PathElement{Value: &v}
		}
	}

	return fieldpath.PathElement{Index: &index}
}

// scalar converts numbers of decoders to the types that sets can compare.
func scalar(v any) any {
	switch n := v.(type) {
	case json.Number:
		if i, err := n.Int64(); err == nil {
			return i
		}
		if f, err := n.Float64(); err == nil {
			return f
		}

		return n.String()
	case uint64:
		return float64(n)
	default:
		return v
	}
}
