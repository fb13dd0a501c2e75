package delivery

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Filter says which manifests a delivery is for; others are somebody else's.
type Filter struct{ program cel.Program }

// NewFilter compiles an expression about a manifest, self, and its composition.
func NewFilter(expression string) (*Filter, error) {
	program, err := newCompiler().compile(expression)
	if err != nil {
		return nil, fmt.Errorf("write a CEL expression about %s and %s: %w", varSelf, varComposition, err)
	}

	return &Filter{program: program}, nil
}

// Admits says whether a manifest, as it is written, is delivered here. The error is
// that there is no telling.
func (f *Filter) Admits(manifest string, composition *metav1.ObjectMeta) (bool, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(manifest)); err != nil {
		return false, fmt.Errorf("cannot read the manifest: %w", err)
	}
	out, _, err := f.program.Eval(map[string]any{varSelf: o.Object, varComposition: about(composition)})
	if err != nil {
		return false, err
	}
	admits, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("it is neither true nor false")
	}

	return admits, nil
}
