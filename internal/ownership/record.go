package ownership

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// Files is a Journal that writes each record to a file of its own in a folder.
// The name tells object, resource version and manager.
type Files string

// Keep writes the file, with rights for its owner alone.
func (dir Files) Keep(_ context.Context, r Record) error {
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	// A reader never sees half a record, and a crash leaves none.
	path := dir.Path(r)
	half := path + ".part"
	if err := os.WriteFile(half, append(data, '\n'), 0o600); err != nil {
		return err
	}

	return os.Rename(half, path)
}

// Path of the file of a record.
func (dir Files) Path(r Record) string {
	parts := []string{strings.ToLower(r.Kind), r.Namespace, r.Name, r.ResourceVersion, r.Fields.To.Manager}
	clean := func(c rune) rune {
		if strings.ContainsRune(`/\: `, c) {
			return '-'
		}

		return c
	}

	return filepath.Join(string(dir), strings.Map(clean, strings.Join(parts, "_"))+".json")
}

// ReadRecord reads a record from a file.
func ReadRecord(path string) (Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("cannot read record %s: %w", path, err)
	}

	return r, nil
}

// identify is an object with nothing but what it is known by.
func identify(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)

	return o
}
