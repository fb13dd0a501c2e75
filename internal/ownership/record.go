package ownership

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/fields"
)

// A Record is what is needed to undo a migration, as JSON if it is to survive
// the process.
type Record struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name"`
	UID        types.UID      `json:"uid"`
	Scopes     []fields.Scope `json:"scopes"`
	Time       metav1.Time    `json:"time"`
	// ResourceVersion that the entries were read at.
	ResourceVersion string        `json:"resourceVersion"`
	Fields          fields.Record `json:"fields"`
}

// object is what the record is about, by name.
func (r Record) object() *unstructured.Unstructured {
	return identify(r.APIVersion, r.Kind, r.Namespace, r.Name)
}

// A Journal keeps records. Keep is called before anything is written, and if it
// fails, nothing is.
type Journal interface {
	Keep(ctx context.Context, r Record) error
}

// JournalFunc is a function as a Journal.
type JournalFunc func(ctx context.Context, r Record) error

// Keep calls the function.
func (f JournalFunc) Keep(ctx context.Context, r Record) error { return f(ctx, r) }

// identify is an object with nothing but what it is known by.
func identify(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)

	return o
}
