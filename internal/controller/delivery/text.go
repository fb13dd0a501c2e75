package delivery

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A text is an object as JSON, with its keys in order, so that two of them are the
// same if the objects are. It takes a seventh of the memory that an object takes,
// and a composition can have thousands, of two syntheses. "" is none.
type text string

func textOf(o *unstructured.Unstructured) text {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return "" // what cannot be written cannot be applied either, which says why
	}

	return text(data)
}

// object reads it.
func (t text) object() *unstructured.Unstructured {
	if t == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(t), &o.Object); err != nil {
		return nil // it was one
	}

	return o
}

// pack lets a resource go on as text, which is returned.
func pack(r *decide.Resource) text {
	t := textOf(r.Object)
	r.Object = nil

	return t
}
