package delivery

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/decide/delivery/expression"
)

// A Filter selects the manifests of a delivery; another delivery applies the rest.
type Filter struct{ holds *expression.Program }

// NewFilter compiles an expression about a manifest, self, and its composition.
func NewFilter(text string) (*Filter, error) {
	holds, err := expression.NewCompiler().Compile(text)
	if err != nil {
		return nil, fmt.Errorf("write a CEL expression about %s and %s: %w", expression.VarSelf, expression.VarComposition, err)
	}

	return &Filter{holds: holds}, nil
}

// Admits reports whether a manifest, as it is written, is delivered here. The error is that this is
// unknown.
func (f *Filter) Admits(manifest string, composition *metav1.ObjectMeta) (bool, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(manifest)); err != nil {
		return false, fmt.Errorf("cannot read the manifest: %w", err)
	}
	out, err := f.holds.Eval(map[string]any{expression.VarSelf: o.Object, expression.VarComposition: about(composition)})
	if err != nil {
		return false, err
	}
	admits, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("it is neither true nor false")
	}

	return admits, nil
}
