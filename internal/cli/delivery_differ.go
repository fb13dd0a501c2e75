package cli

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/kube"
)

// A Change is what the next apply does with an object.
type Change string

// Changes. Of an Unknown one the cluster did not tell.
const (
	ChangeNone    Change = "Unchanged"
	ChangeSome    Change = "Changed"
	ChangeNew     Change = "New"
	ChangeDeleted Change = "Deleted"
	ChangeRefused Change = "Refused"
	ChangeIgnored Change = "LeftAlone"
	ChangeUnknown Change = "Unknown"
)

// A differ has a server rehearse the manifests of one composition.
type differ struct {
	server      server
	composition *enov1.Composition
	// before is what was applied last.
	before map[ObjectRef]map[string]any
}

// setting is an annotation of a manifest, or else of the composition.
func (d *differ) setting(one delivered, name string) string {
	if text := one.annotation(name); text != "" {
		return text
	}

	return d.composition.Annotations[name]
}

// compare says what becomes of one object.
func (d *differ) compare(ctx context.Context, one delivered) ObjectDiff {
	v := ObjectDiff{Object: one.ref, Change: ChangeNone, Blocked: []RemovalView{}, Notes: []string{}}

	var ops []byte
	if one.isPatch() {
		one.ref, ops = one.patch()
		v.Object = one.ref
		v = v.noted("it is somebody else's, and only patched")
	}

	switch {
	case one.err != nil:
		return v.unknown("", one.err)
	case d.setting(one, enov1.AnnotationDisableReconciliation) == "true":
		return v.ignored(enov1.AnnotationDisableReconciliation)
	}

	live, err := d.live(ctx, one.ref)

	switch {
	case err != nil:
		return v.unknown("get", err)
	case ops != nil:
		return d.patched(ctx, v, one, live, ops)
	case one.tombstone || d.composition.DeletionTimestamp != nil:
		return d.gone(v, one, live)
	case live != nil && d.setting(one, enov1.AnnotationDisableUpdates) == "true":
		return v.ignored(enov1.AnnotationDisableUpdates)
	default:
		return d.applied(ctx, v, one, live)
	}
}

// live is an object as it is, nil if there is none.
func (d *differ) live(ctx context.Context, ref ObjectRef) (map[string]any, error) {
	live, err := d.server.Get(ctx, ref)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		live, err = nil, nil
	}

	return live, err
}

// gone is about an object that is to be deleted.
func (d *differ) gone(v ObjectDiff, one delivered, live map[string]any) ObjectDiff {
	switch {
	case live == nil:
		return v
	case d.setting(one, enov1.AnnotationDeletionStrategy) == enov1.DeletionOrphan:
		v = v.noted("it stays: " + enov1.AnnotationDeletionStrategy + " is " + enov1.DeletionOrphan)
		v.Change = ChangeIgnored

		return v
	default:
		return v.compared(live, nil)
	}
}

// applied is about an object that is to be there.
func (d *differ) applied(ctx context.Context, v ObjectDiff, one delivered, live map[string]any) ObjectDiff {
	wish := withoutSettings(one.object)

	if one.annotation(enov1.AnnotationOverrides) != "" {
		v = v.noted("its " + enov1.AnnotationOverrides + " are not looked at")
	}

	w := rehearsal{object: wish}
	if live != nil && d.setting(one, enov1.AnnotationReplace) == "true" {
		w.replace = (&unstructured.Unstructured{Object: live}).GetResourceVersion()
		v = v.noted("it is replaced as a whole")
	} else if live != nil {
		d.block(&v, one, live, wish)
	}

	after, err := d.server.Rehearse(ctx, w)
	err = kube.Discreet(err, one.object, live)

	switch {
	case err == nil:
		return v.compared(live, after)
	case live == nil && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)):
		// Its namespace or its definition may be made by the same apply.
		v = v.noted("it could not be rehearsed: " + err.Error())

		return v.compared(nil, wish)
	default:
		return v.refusedBy("patch", err)
	}
}

// patched is about an object of somebody else.
func (d *differ) patched(ctx context.Context, v ObjectDiff, one delivered, live map[string]any, ops []byte) ObjectDiff {
	switch {
	case live == nil || one.tombstone || d.composition.DeletionTimestamp != nil:
		return v
	case strings.Contains(string(ops), `"/metadata/deletionTimestamp"`):
		return v.compared(live, nil)
	}

	after, err := d.server.Rehearse(ctx, rehearsal{object: reference(one.ref).Object, patch: ops})
	if err != nil {
		return v.refusedBy("patch", kube.Discreet(err, live, kube.PatchedObject(schema.FromAPIVersionAndKind(one.ref.APIVersion, one.ref.Kind), ops)))
	}

	return v.compared(live, after)
}

// block finds what the apply cannot remove, now and after ownership was moved
// in the part where that is done.
func (d *differ) block(v *ObjectDiff, one delivered, live, wish map[string]any) {
	thing, err := newOwned(live)
	if err != nil {
		*v = v.noted(err.Error())
	}

	request := fields.Request{To: deliveryManager, Mode: fields.Needed, Next: thing.tree.Desired(wish)}
	if last := d.before[one.ref]; last != nil {
		request.Previous = thing.tree.Desired(withoutSettings(last))
	}

	plan := &fields.Plan{Entries: thing.entries}

	if within, err := defaultScope(thing, one.object); err == nil {
		request.Scope = within

		if p, err := fields.NewPlan(thing.live, thing.entries, request); err == nil {
			plan = p
		}
	}

	for _, r := range moveViewOf(thing, request, plan).Removals {
		if r.Now != nil && (r.Now.Fate == fields.Partial || r.Now.Fate == fields.Kept) {
			v.Blocked = append(v.Blocked, r)
		}
	}
}

func (d delivered) isPatch() bool {
	return d.ref.Kind == enov1.PatchKind && d.ref.APIVersion == enov1.GroupVersion.String()
}

// patch is which object is patched, and how.
func (d delivered) patch() (ObjectRef, []byte) {
	body, _ := d.object["patch"].(map[string]any)
	ref := d.ref
	ref.APIVersion, _ = body["apiVersion"].(string)
	ref.Kind, _ = body["kind"].(string)

	ops, err := json.Marshal(body["ops"])
	if err != nil || body["ops"] == nil {
		ops = []byte("[]")
	}

	return ref, ops
}

// withoutSettings is a manifest as it is applied: what is meant for the applier
// is left out.
func withoutSettings(manifest map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: manifest}
	u = u.DeepCopy()
	u.SetAnnotations(withoutOurs(u.GetAnnotations()))
	u.SetLabels(withoutOurs(u.GetLabels()))

	return u.Object
}

func withoutOurs(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, enov1.GroupVersion.Group+"/") })

	if len(all) == 0 {
		return nil
	}

	return all
}

// bookkeeping are the fields that the server writes about its own work.
var bookkeeping = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}

// contentOf is what an object says, without what the server says about it.
func contentOf(obj map[string]any) map[string]any {
	if obj == nil {
		return nil
	}

	u := &unstructured.Unstructured{Object: obj}
	all := u.DeepCopy().Object
	delete(all, "status")

	for _, name := range bookkeeping {
		unstructured.RemoveNestedField(all, "metadata", name)
	}

	return all
}

// hideSecrets takes the values out of two states of a Secret, so that it can
// still be seen which of them differ.
func hideSecrets(before, after map[string]any) {
	for _, path := range [][]string{{"data"}, {"stringData"}, {"metadata", "annotations"}} {
		a, _, _ := unstructured.NestedFieldNoCopy(before, path...)
		b, _, _ := unstructured.NestedFieldNoCopy(after, path...)
		was, _ := a.(map[string]any)
		is, _ := b.(map[string]any)

		for _, key := range slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is))) {
			if path[0] == "metadata" && key != "kubectl.kubernetes.io/last-applied-configuration" {
				continue
			}

			hide(was, is, key)
		}
	}
}

func hide(was, is map[string]any, key string) {
	const hidden = "(not shown)"

	old, hadOld := was[key]
	now, hasNow := is[key]

	switch {
	case hadOld && hasNow && !reflect.DeepEqual(old, now):
		was[key], is[key] = hidden+" before", hidden+" after"
	case hadOld && hasNow:
		was[key], is[key] = hidden, hidden
	case hadOld:
		was[key] = hidden
	default:
		is[key] = hidden
	}
}
