package delivery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery/expression"
)

// maxQuoted is how much of a bad override an error repeats.
const maxQuoted = 200

// An OverrideState is the result of an override.
type OverrideState string

// These are the results of overrides. Each but Active leaves the manifest as it is.
const (
	Active   OverrideState = "Active"
	Inactive OverrideState = "Inactive"
	// InvalidCondition means that the condition cannot be evaluated, mostly because it reads a field
	// that does not exist.
	InvalidCondition       OverrideState = "InvalidCondition"
	InvalidValueExpression OverrideState = "InvalidValueExpression"
	// MissingParent means that the manifest does not have what the path leads through.
	MissingParent   OverrideState = "MissingParent"
	IndexOutOfRange OverrideState = "IndexOutOfRange"
	// PathTypeMismatch means that what the path leads through is neither an object nor a list.
	PathTypeMismatch OverrideState = "PathTypeMismatch"
)

// Failed reports whether the override was passed over because of an error.
func (s OverrideState) Failed() bool { return s != Active && s != Inactive }

// An Override is what became of one of a manifest's overrides.
type Override struct {
	Index int
	Path  string
	State OverrideState
	// Reason is why it failed, where that is known.
	Reason string
}

// String is the override as events and logs show it.
func (o Override) String() string {
	text := fmt.Sprintf("override %d (%s) is %s", o.Index, o.Path, o.State)
	if o.Reason != "" {
		text += ": " + o.Reason
	}

	return text
}

// An override is one change of a manifest.
type override struct {
	path path
	// condition is nil if it always holds, expression if there is a value.
	condition, expression *expression.Program
	value                 any
	// manager is the field manager that objects are applied as, "" for the default.
	manager string
}

// written is how an override is written.
type written struct {
	Path            string          `json:"path"`
	Condition       string          `json:"condition"`
	Value           json.RawMessage `json:"value"`
	ValueExpression string          `json:"valueExpression"`
}

// A source is what a resource with overrides was read from.
type source struct {
	reader      *Reader
	object      *unstructured.Unstructured
	composition map[string]string
}

// Overridden reports whether what is desired depends on the live object.
func (r *Resource) Overridden() bool { return len(r.overrides) > 0 }

// Override returns the resource as its overrides make it, in view of the live object, nil if there
// is none, and of its composition. One override sees the result of those before it. Those that
// cannot be evaluated are passed over. Groups and identity are those of the manifest: other
// resources are ordered by them.
//
// The error is that the result cannot be understood. Invalid settings of the result are among its
// [Settings.Warnings].
func (r *Resource) Override(live *unstructured.Unstructured, composition *metav1.ObjectMeta) (*Resource, []Override, error) {
	if !r.Overridden() {
		return r, nil, nil
	}
	o := r.source.object.DeepCopy()
	all := make([]Override, len(r.overrides))
	var released []path
	for i, one := range r.overrides {
		all[i] = Override{Index: i, Path: one.path.String()}
		all[i].State, all[i].Reason = one.apply(o.Object, live, composition)
		if all[i].State == Active && one.value == nil && one.expression == nil {
			released = append(released, one.path)
		}
	}
	now, err := r.source.reader.understand(o, r.Tombstone, r.source.composition)
	if err == nil {
		now.Patch = r.Patch
	}
	switch {
	case err != nil:
		return nil, all, fmt.Errorf("cannot use what annotation %s makes of the manifest: %w", enov1.AnnotationOverrides, err)
	case now.Identity != r.Identity || now.GVK != r.GVK:
		return nil, all, fmt.Errorf("cannot use what annotation %s makes of the manifest: it must still be %s", enov1.AnnotationOverrides, r.Identity)
	}
	now.overrides, now.source, now.released = r.overrides, r.source, released
	now.ReadinessGroup, now.DeletionGroup = r.ReadinessGroup, r.DeletionGroup

	return now, all, nil
}

// Releases reports whether overrides have removed something: other field managers may own it.
func (r *Resource) Releases() bool { return len(r.released) > 0 }

// Release returns what was desired before without what overrides have removed now. That is no
// longer desired, but it is not removed: it is left to the field manager that owns it.
func (r *Resource) Release(before *unstructured.Unstructured) *unstructured.Unstructured {
	if !r.Releases() || before == nil {
		return before
	}
	before = before.DeepCopy()
	for _, p := range r.released {
		p.set(before.Object, nil)
	}

	return before
}

// apply changes a manifest, if the condition holds.
func (o override) apply(manifest map[string]any, live *unstructured.Unstructured, composition *metav1.ObjectMeta) (OverrideState, string) {
	known := o.variables(live, composition)
	if o.condition != nil {
		out, err := o.condition.Eval(known)
		if err != nil {
			return InvalidCondition, err.Error()
		}
		holds, ok := out.Value().(bool)
		if !ok {
			return InvalidCondition, "it is neither true nor false"
		}
		if !holds {
			return Inactive, ""
		}
	}
	value := o.value
	if o.expression != nil {
		if live == nil {
			return Inactive, "" // there is nothing that a value could be made of
		}
		out, err := o.expression.Eval(known)
		if err == nil {
			value, err = expression.Plain(out)
		}
		if err != nil {
			return InvalidValueExpression, err.Error()
		}
		// An expression finds nothing more often than it wants something removed.
		if value == nil {
			return Inactive, ""
		}
	}

	return o.path.set(manifest, value), ""
}

// variables are what expressions may use.
func (o override) variables(live *unstructured.Unstructured, composition *metav1.ObjectMeta) map[string]any {
	self := map[string]any{}
	if live != nil {
		self = live.Object
	}

	return map[string]any{
		expression.VarSelf:        self,
		expression.VarComposition: func() any { return about(composition) },
		expression.VarManaged:     func() any { return o.path.managed(live, cmp.Or(o.manager, Manager)) },
	}
}

// about is what expressions can read of a composition. All of it always exists, so that expressions
// need no check for it.
func about(c *metav1.ObjectMeta) map[string]any {
	known := map[string]any{"name": c.Name, "namespace": c.Namespace, "labels": c.Labels, "annotations": c.Annotations, "deletionTimestamp": nil}
	if at := c.DeletionTimestamp; at != nil {
		known["deletionTimestamp"] = at.UTC().Format(time.RFC3339)
	}

	return map[string]any{"metadata": known}
}

// overrides reads those of a manifest. If one is invalid, none is used: they build on
// each other.
func (r *Reader) overrides(text string) ([]override, []error) {
	p := &parser{}
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		p.wrong(enov1.AnnotationOverrides, clip(text), `write a JSON list such as [{"path": "self.spec.replicas", "value": 3}]: `+err.Error())
	}
	all := make([]override, len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", enov1.AnnotationOverrides, i)
		w, err := readOverride(item)
		if err != nil {
			p.wrong(at, clip(string(item)), "write path, condition, and value or valueExpression: "+err.Error())

			continue
		}
		all[i] = p.override(at, w, r.conditions)
		all[i].manager = r.Manager
	}
	if len(p.invalid) == 0 {
		return all, nil
	}

	return nil, p.invalid
}

// readOverride decodes an override. Unknown fields are rejected: a misspelled condition would
// always hold.
func readOverride(text []byte) (written, error) {
	var w written
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return w, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return w, errors.New("there is more behind it")
	}

	return w, nil
}

// override understands one.
func (p *parser) override(at string, w written, c *expression.Compiler) override {
	var o override
	var err error
	if o.path, err = parsePath(w.Path); err != nil {
		p.wrong(at+".path", clip(w.Path), "write a path such as self.spec.replicas: "+err.Error())
	} else if o.path.identifies() {
		p.wrong(at+".path", clip(w.Path), "leave it out: it identifies the object, and overrides cannot change that")
	}
	if len(w.Value) > 0 {
		if err := utiljson.Unmarshal(w.Value, &o.value); err != nil {
			p.wrong(at+".value", clip(string(w.Value)), "write a JSON value: "+err.Error())
		}
	}
	if o.value != nil && w.ValueExpression != "" {
		p.wrong(at+".valueExpression", clip(w.ValueExpression), "leave out either value or valueExpression: there can be one value")
	}
	o.condition = p.expression(at+".condition", w.Condition, c)
	o.expression = p.expression(at+".valueExpression", w.ValueExpression, c)

	return o
}

// expression compiles one, nil if there is none.
func (p *parser) expression(at, text string, c *expression.Compiler) *expression.Program {
	if text == "" {
		return nil
	}
	program, err := c.Compile(text)
	if err != nil {
		p.wrong(at, clip(text), fmt.Sprintf("write a CEL expression about %s, %s and %s: %v", expression.VarSelf, expression.VarComposition, expression.VarManaged, err))
	}

	return program
}

// identifies reports whether the path leads to a field that identifies an object.
func (p path) identifies() bool {
	switch p[0].name {
	case "apiVersion", "kind":
		return true
	case "metadata":
		return len(p) == 1 || p[1].name == "name" || p[1].name == "namespace"
	}

	return false
}

// clip keeps a text from filling an error.
func clip(text string) string {
	if len(text) <= maxQuoted {
		return text
	}

	return strings.ToValidUTF8(text[:maxQuoted], "") + "..."
}
