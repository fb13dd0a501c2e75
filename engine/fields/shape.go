package fields

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A shape is as much of an object's schema as sets give away: which lists have
// keys and which ones, which are sets, and what is held only as a whole. All
// items of a list have one shape, so what is known about one of them is known
// about the others.
type shape struct {
	fields map[string]*shape
	// items is nil if nothing in a set is an item of this.
	items *shape
	// keys are the names of all keys that items were seen with, sorted. Items
	// may be without some of them.
	keys []string
	// values says that items were seen that are their own key.
	values bool
	// granular says that fields below are held one by one, even if no set
	// shows it.
	granular bool
}

// newShape knows what all objects have in common.
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

// learn adds what a set gives away.
func (s *shape) learn(set *fieldpath.Set) {
	for pe := range set.Members.All() {
		s.at(pe)
	}
	for pe := range set.Children.All() {
		s.at(pe).learn(set.WithPrefix(pe))
	}
}

// at is the shape of an element, which is made if it is new.
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

// child is the shape of an element, nil if nothing is known. It may be called
// on nil.
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

// atomic says that sets name this and never anything below. It may be called on
// nil.
func (s *shape) atomic() bool {
	return s != nil && len(s.fields) == 0 && s.items == nil && !s.granular
}

// kind says how the fields below a live value are known. It may be called on
// nil.
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

// element is how an item of a list is known: by its keys, by itself, or, if it
// does not have what it should be known by, by its position.
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

// scalar turns the numbers that decoders can make, and that sets cannot be
// compared with, into some that they can be.
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
