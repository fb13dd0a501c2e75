package rehearsal

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/show/compositions"
	"github.com/arbor-control/arbor/internal/show/owners"
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

// A Differ has a server rehearse the manifests of one composition. What is done
// about each is decided as the delivery decides it.
type Differ struct {
	server      Server
	Composition *enov1.Composition
	Reader      *decide.Reader
	// before is what was applied last.
	before map[identity.Identity]compositions.Manifest
	// manager is the field manager of the delivery.
	manager string
}

// New returns a Differ for the manifests of a Composition. before is what was applied last.
func New(s Server, c *enov1.Composition, before map[identity.Identity]compositions.Manifest, manager string) *Differ {
	reader := decide.NewReader()
	reader.Scopes = func(gvk schema.GroupVersionKind) (namespaced, known bool) { return s.Scope(gvk.Group, gvk.Kind) }
	reader.Manager = manager

	return &Differ{server: s, Composition: c, Reader: reader, before: before, manager: manager}
}

// Read understands a manifest. There may be a resource with the error.
func (d *Differ) Read(one compositions.Manifest) (*decide.Resource, error) {
	if one.Err != nil {
		return nil, one.Err
	}

	data, err := json.Marshal(one.Object)
	if err != nil {
		return nil, err
	}

	return d.Reader.Read(enov1.Manifest{Manifest: string(data), Deleted: one.Tombstone}, d.Composition.Annotations)
}

// Compare says what becomes of one object.
func (d *Differ) Compare(ctx context.Context, one compositions.Manifest) ObjectDiff {
	v := ObjectDiff{Manager: d.manager, Object: one.Ref, Change: ChangeNone, Blocked: []owners.RemovalView{}, Notes: []string{}}

	r, err := d.Read(one)
	if r == nil {
		return v.unknown("", err)
	}

	if r.IsPatch() {
		v.Object = identity.RefOf(r.Object.Object)
		v = v.noted("it is somebody else's, and only patched")
	}

	live, err := d.live(ctx, v.Object)
	if err != nil {
		return v.unknown("get", err)
	}

	if r, err = d.override(&v, r, live); err != nil {
		return v.unknown("", err)
	}

	s := d.situation(one, r, live)
	for _, warning := range r.Warnings() {
		v = v.noted(warning.Error())
	}

	return d.follow(ctx, v, one, r, s)
}

// situation is what is known about an object.
func (d *Differ) situation(one compositions.Manifest, r *decide.Resource, live *unstructured.Unstructured) decide.Situation {
	deleting := d.Composition.DeletionStarted()

	return decide.Situation{
		Looked: true, Live: live, Deleting: deleting, Manager: d.manager, Abandoned: d.Composition.Abandoned(),
		Ran:  r.IsPatch() && one.State.Deleted && !deleting,
		Ours: live != nil && one.State.UID != "" && one.State.UID == live.GetUID(),
	}
}

// override has overrides change the manifest, and says which of them do.
func (d *Differ) override(v *ObjectDiff, r *decide.Resource, live *unstructured.Unstructured) (*decide.Resource, error) {
	about := d.Composition.ObjectMeta
	if !d.Composition.DeletionStarted() {
		about.DeletionTimestamp = nil // as delivery has it
	}

	r, states, err := r.Override(live, &about)

	for _, s := range states {
		if s.State != decide.Inactive {
			*v = v.noted(s.String())
		}
	}

	return r, err
}

// follow shows what comes of a decision.
func (d *Differ) follow(ctx context.Context, v ObjectDiff, one compositions.Manifest, r *decide.Resource, s decide.Situation) ObjectDiff {
	a := decide.Decide(r, s)

	switch a.Verb {
	case decide.Leave:
		return v.ignored(a.Reason)
	case decide.Nothing:
		if r.DisableUpdates {
			return v.ignored(a.Reason)
		}

		return v
	case decide.Wait:
		return v.noted("it is waited for: " + a.Reason)
	case decide.Delete:
		return v.compared(s.Live.Object, nil)
	case decide.Patch:
		return d.patched(ctx, v, r, s.Live)
	default:
		return d.written(ctx, v, one, r, s.Live, a.Verb)
	}
}

// live is an object as it is, nil if there is none.
func (d *Differ) live(ctx context.Context, ref identity.Ref) (*unstructured.Unstructured, error) {
	live, err := d.server.Find(ctx, ref)

	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // it is absent, which is fine
	case err != nil:
		return nil, err
	default:
		return &unstructured.Unstructured{Object: live}, nil
	}
}

// written is about an object that is made, applied or replaced.
func (d *Differ) written(ctx context.Context, v ObjectDiff, one compositions.Manifest, r *decide.Resource, live *unstructured.Unstructured, how decide.Verb) ObjectDiff {
	w, was := Write{Object: r.Object.Object, Manager: d.manager}, map[string]any(nil)

	if live != nil {
		was = live.Object
	}

	switch {
	case how == decide.Replace:
		w.Replace = live.GetResourceVersion()
		v = v.noted("it is replaced as a whole")
	case live != nil:
		d.block(&v, one, r, live.Object)
	}

	after, err := d.server.Rehearse(ctx, w)
	err = kube.Discreet(err, r.Object.Object, was)

	switch {
	case err == nil:
		return v.compared(was, after)
	case live == nil && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)):
		// Its namespace or its definition may be made by the same apply.
		v = v.noted("it could not be rehearsed: " + err.Error())

		return v.compared(nil, r.Object.Object)
	default:
		return v.refusedBy("patch", err)
	}
}

// patched is about an object of somebody else.
func (d *Differ) patched(ctx context.Context, v ObjectDiff, r *decide.Resource, live *unstructured.Unstructured) ObjectDiff {
	if live == nil {
		return v
	}

	after, err := d.server.Rehearse(ctx, Write{Object: r.Object.Object, Patch: r.Ops, Manager: d.manager})
	if err != nil {
		return v.refusedBy("patch", kube.Discreet(err, live.Object, kube.PatchedObject(r.GVK, r.Ops)))
	}

	return v.compared(live.Object, after)
}

// block finds what the apply cannot remove, now and after ownership was moved
// in the part where that is done. What overrides leave to others is not to go.
func (d *Differ) block(v *ObjectDiff, one compositions.Manifest, r *decide.Resource, live map[string]any) {
	thing, err := owners.New(live)
	if err != nil {
		*v = v.noted(err.Error())
	}

	request := fields.Request{To: d.manager, Mode: r.Mode, Next: thing.Tree.Desired(r.Object.Object)}
	if last, err := d.Read(d.before[one.ID]); err == nil && d.before[one.ID].Object != nil {
		request.Previous = thing.Tree.Desired(r.Release(last.Object).Object)
	}

	plan := &fields.Plan{Entries: thing.Entries}

	scopes, err := owners.DefaultScopes(thing, one.Object)
	if err == nil {
		if p, err := owners.PlanScopes(thing, request, scopes); err == nil {
			plan = p
		}
	}

	for _, r := range owners.MoveViewOf(thing, request, scopes, plan).Removals {
		if r.Now != nil && (r.Now.Fate == fields.Partial || r.Now.Fate == fields.Kept) {
			v.Blocked = append(v.Blocked, r)
		}
	}
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
