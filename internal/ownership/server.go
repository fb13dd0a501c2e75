package ownership

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/engine/fields"
)

// prober is a manager that has no fields and never gets any: it applies in dry
// runs only, to learn from the server which fields an object has.
const prober = names.Arbor + "-probe"

// read returns the object with its managed fields, nil if there is none.
func (m *Migrator) read(ctx context.Context, which *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := identify(which.GetAPIVersion(), which.GetKind(), which.GetNamespace(), which.GetName())
	err := m.client.Get(ctx, client.ObjectKeyFromObject(live), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // it is absent, which is fine
	case err != nil:
		return nil, explain(err, "read "+describe(which))
	}
	if len(live.GetManagedFields()) > 0 {
		return live, nil
	}
	// A cache leaves them out, the response to a patch does not. A client without the permission to
	// patch, or to patch in this way, gets the response of the read.
	answer := identify(which.GetAPIVersion(), which.GetKind(), which.GetNamespace(), which.GetName())
	if err := m.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, []byte("{}")), client.DryRunAll, client.FieldOwner(names.Arbor)); err == nil {
		return answer, nil
	}

	return live, nil
}

// apply applies an object by force and returns what it became. The object itself
// is left as it is.
func (m *Migrator) apply(ctx context.Context, o *unstructured.Unstructured, manager string, more ...client.ApplyOption) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	err := m.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), append([]client.ApplyOption{client.ForceOwnership, client.FieldOwner(manager)}, more...)...)

	return o, err
}

// probe asks the server which fields an object to apply has, by its schema; nil if that is not
// known.
func (m *Migrator) probe(ctx context.Context, o *unstructured.Unstructured) *fieldpath.Set {
	o = o.DeepCopy()
	o.SetResourceVersion("")
	answer, err := m.apply(ctx, o, prober, client.DryRunAll)
	if err != nil {
		return nil
	}

	return appliedBy(answer, prober)
}

// probeLive is probe for an object that is there already.
func (m *Migrator) probeLive(ctx context.Context, live *unstructured.Unstructured) *fieldpath.Set {
	o := live.DeepCopy()
	for _, name := range []string{"uid", "creationTimestamp", "generation", "resourceVersion", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", name)
	}
	unstructured.RemoveNestedField(o.Object, "status")

	return m.probe(ctx, o)
}

// appliedBy is what a manager has applied, nil if there is no telling.
func appliedBy(o *unstructured.Unstructured, manager string) *fieldpath.Set {
	entries, err := fields.Read(o.Object)
	if err != nil || len(entries) == 0 {
		return nil
	}

	return ownOf(entries, manager)
}

// ownOf is what a manager has applied by some entries.
func ownOf(entries fields.Entries, manager string) *fieldpath.Set {
	own := &fieldpath.Set{}
	for _, e := range entries {
		if e.Identity() == (fields.Identity{Manager: manager, Operation: fields.Apply}) {
			own = own.Union(e.Fields)
		}
	}

	return own
}

// reconciled are entries as the server reads them. Where the schema has changed since they were
// written, what was held in pieces may be held as one now, or the other way round; the server
// converts it with the next write of any client.
func (m *Migrator) reconciled(ctx context.Context, live *unstructured.Unstructured, entries fields.Entries) (fields.Entries, error) {
	doing := "have the server read the managed fields of " + describe(live)
	dry, err := m.send(ctx, live, entries, client.DryRunAll)
	if err != nil {
		return nil, explain(err, doing)
	}
	if entries, err = fields.Read(dry.Object); err != nil {
		return nil, explain(err, doing)
	}

	return entries.Merge(), nil
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// send writes entries, on condition that the object is as it was read. A test of
// the resource version would be answered like a wrong object; replacing it by
// itself is answered by a conflict.
func (m *Migrator) send(ctx context.Context, live *unstructured.Unstructured, entries fields.Entries, more ...client.PatchOption) (*unstructured.Unstructured, error) {
	data, err := json.Marshal([]operation{
		{Op: "add", Path: "/metadata/managedFields", Value: entries},
		{Op: "replace", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()},
	})
	if err != nil {
		return nil, err
	}
	written := identify(live.GetAPIVersion(), live.GetKind(), live.GetNamespace(), live.GetName())
	err = m.client.Patch(ctx, written, client.RawPatch(types.JSONPatchType, data), append([]client.PatchOption{client.FieldOwner(names.Arbor)}, more...)...)

	return written, err
}
