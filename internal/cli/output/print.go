package output

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// A Lister is a view that -o name can print.
type Lister interface {
	// Refs are the objects of the view.
	Refs() []identity.Ref
}

// Print prints a view of a kind for programs, and is false for formats that people read.
func (f *Flags) Print(w io.Writer, kind string, view any) (bool, error) {
	if f.Is(Name) {
		return true, printNames(w, view)
	}
	if f.path == nil && !f.Is(JSON, YAML) {
		return false, nil
	}
	document, err := show.Document(kind, view)
	if err == nil {
		err = f.printDocument(w, document)
	}
	if err != nil {
		return true, fmt.Errorf("cannot write %s: %w", f.Format, err)
	}

	return true, nil
}

func (f *Flags) printDocument(w io.Writer, document []byte) error {
	switch {
	case f.path != nil:
		var content map[string]any
		if err := json.Unmarshal(document, &content); err != nil {
			return err
		}
		if err := f.path.PrintObj(&unstructured.Unstructured{Object: content}, w); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w)

		return err
	case f.Is(YAML):
		text, err := yaml.JSONToYAML(document)
		if err != nil {
			return err
		}
		_, err = w.Write(text)

		return err
	default:
		_, err := w.Write(append(document, '\n'))

		return err
	}
}

// printNames prints the objects of a view as kubectl does.
func printNames(w io.Writer, view any) error {
	list, ok := view.(Lister)
	if !ok {
		return fmt.Errorf("cannot name the objects of a %T", view)
	}
	p := printers.NamePrinter{}
	for _, ref := range list.Refs() {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}}
		o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if err := p.PrintObj(o, w); err != nil {
			return fmt.Errorf("cannot name %s: %w", ref, err)
		}
	}

	return nil
}
