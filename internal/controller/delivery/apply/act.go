package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/ownership"
)

// act does what was decided.
func (w *Worker) act(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item, a decide.Action, s situation) (outcome, error) {
	switch a.Verb {
	case decide.Wait:
		return outcome{waits: a.Reason, again: retryAfter, stuck: s.Unread != "", replaces: s.Replacing}, nil
	case decide.Nothing:
		w.confirm(k, v, it, s)
		it.Memory.Applied = v.SliceNames

		return outcome{live: s.Live}, nil
	case decide.Delete:
		w.expectRemoval(k, v, it, s)

		return w.remove(ctx, it, a, s)
	case decide.Report:
		return w.inspect(ctx, k, v, it, s), nil
	case decide.Create, decide.Replace, decide.Patch, decide.Apply:
	default: // it is left alone
		return outcome{}, nil
	}

	return w.put(ctx, k, v, it, a, s)
}

// put makes or changes an object, and remembers what it became.
func (w *Worker) put(ctx context.Context, k queue.Key, v *model.Composition, it *model.Item, a decide.Action, s situation) (outcome, error) {
	live, err := w.write(ctx, v, it, a, s)
	if err != nil && it.ReplaceOnConflict && !it.IsPatch() && decide.IsImmutable(err) {
		return w.deleteToRecreate(ctx, k, v, it, err)
	}
	if err != nil {
		return outcome{}, err
	}
	w.Metrics.Did(a.Verb)
	if a := decide.AfterWrite(it.Resource, live); a.Verb == decide.Wait {
		w.remember(k, it, live)

		return outcome{waits: a.Reason, again: retryAfter}, nil // it may be gone already: see AfterWrite
	}
	if v.Drift.Note(it.Identity, "") {
		w.Status.Drifted(v)
	}
	w.wrote(k, v, it, live, s)
	it.Memory.Created(live, a.Verb)
	it.Memory.Failures = 0
	it.Memory.Applied = v.SliceNames
	w.reevaluate(ctx, k, v, it, live)

	return outcome{live: live}, nil
}

// expectRemoval remembers which object a Patch is about to delete.
func (w *Worker) expectRemoval(k queue.Key, v *model.Composition, it *model.Item, s situation) {
	if it.IsPatch() && !v.Deleting {
		it.Memory.Removed.Slices, it.Memory.Removed.UID = v.SliceNames, s.Live.GetUID()
		w.track(k, it, s.Live)
	}
}

// confirm remembers an object that was found as it should be. What is in sync is
// known better already: this may be later than a change that is still to be seen.
func (w *Worker) confirm(k queue.Key, v *model.Composition, it *model.Item, s situation) {
	if s.Live != nil && !s.InSync && !v.Deleting && !it.Tombstone {
		w.remember(k, it, s.Live)
	}
}

// wrote notes what came of a write. There is nothing if a patch has found nothing.
func (w *Worker) wrote(k queue.Key, v *model.Composition, it *model.Item, live *unstructured.Unstructured, s situation) {
	if live == nil {
		w.track(k, it, it.Object)

		return
	}
	if s.Drifted && !s.seen.Unserved && live.GetResourceVersion() != s.seen.Version {
		it.Memory.Damper.Corrected(w.Now())
		it.Memory.OtherWriter = "" // another client may change it next
		w.Metrics.Drift.Inc()
		w.corrected(v, it, s)
	}
	w.remember(k, it, live)
}

// write makes or changes an object, and returns what it became.
func (w *Worker) write(ctx context.Context, v *model.Composition, it *model.Item, a decide.Action, s situation) (*unstructured.Unstructured, error) {
	switch a.Verb {
	case decide.Create:
		return w.create(ctx, it)
	case decide.Replace:
		return w.replace(ctx, it, s)
	case decide.Patch:
		return w.patch(ctx, it)
	default:
		return w.apply(ctx, v, it)
	}
}

// remember keeps what an object became, so that the next look at it is free, and
// has it watched.
func (w *Worker) remember(k queue.Key, it *model.Item, live *unstructured.Unstructured) {
	m, entries := it.Memory, live.GetManagedFields()
	isKnown := m.IsOwned(live) && !it.IsPatch() // its manifest may have lost all fields
	m.Desired, m.UID, m.Version, m.OwnFields = it.Desired(), live.GetUID(), live.GetResourceVersion(), watch.OwnedFields(entries, w.Manager)
	m.Owned = decide.IsOurs(entries, w.Manager) || isKnown
	m.Written.Store(true)
	if it.IsPatch() {
		m.OwnFields = "" // another field manager may own what it changes: only the server knows
	}
	w.track(k, it, live)
	if m.Watched {
		w.Watches.Written(m.Location, m.Version, k)
	}
}

// track has an object watched.
func (w *Worker) track(k queue.Key, it *model.Item, live *unstructured.Unstructured) {
	m := it.Memory
	mapping, err := w.Remote.RESTMapper().RESTMapping(it.GVK.GroupKind(), it.GVK.Version)
	if err != nil {
		return
	}
	at := watch.Location{GroupVersionResource: mapping.Resource, NamespacedName: types.NamespacedName{Namespace: live.GetNamespace(), Name: live.GetName()}}
	if m.Watched && m.Location == at {
		return
	}
	if m.Watched {
		w.Watches.Untrack(m.Location, k)
	}
	m.Location, m.Watched = at, true
	w.Watches.Track(at, k)
}

func (w *Worker) create(ctx context.Context, it *model.Item) (*unstructured.Unstructured, error) {
	o := it.Object.DeepCopy()
	if err := w.Remote.Create(ctx, o, client.FieldOwner(w.Manager)); err != nil {
		return nil, explainNamespace(fmt.Errorf("cannot create %s: %w", it.Identity, err))
	}

	return o, nil
}

// replace writes an object as a whole, on condition that it is the one that was read.
func (w *Worker) replace(ctx context.Context, it *model.Item, s situation) (*unstructured.Unstructured, error) {
	o := it.Object.DeepCopy()
	o.SetResourceVersion(s.Live.GetResourceVersion())
	o.SetUID(s.Live.GetUID())
	if err := w.Remote.Update(ctx, o, client.FieldOwner(w.Manager)); err != nil {
		return nil, fmt.Errorf("cannot replace %s: %w", it.Identity, err)
	}

	return o, nil
}

// patch changes an object that another client creates, if it exists.
func (w *Worker) patch(ctx context.Context, it *model.Item) (*unstructured.Unstructured, error) {
	o := it.Object.DeepCopy()
	err := w.Remote.Patch(ctx, o, client.RawPatch(types.JSONPatchType, it.Ops), client.FieldOwner(w.Manager))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is nothing to be patched
	case err != nil:
		return nil, fmt.Errorf("cannot patch %s %s: %w", it.GVK.Kind, client.ObjectKeyFromObject(o), withoutTarget(it, err))
	}

	return o, nil
}

// withoutTarget returns the error of a patch without what the target has. A server that rejects the
// patch of a Secret quotes the whole Secret, escaped more than once, and the Secret was not read
// before: only the reason and the fields are kept of the answer.
func withoutTarget(it *model.Item, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || it.GVK.GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return err
	}
	why := []string{cmp.Or(string(status.ErrStatus.Reason), strconv.Itoa(int(status.ErrStatus.Code)))}
	if details := status.ErrStatus.Details; details != nil {
		for _, c := range details.Causes {
			why = append(why, fmt.Sprintf("%s (%s)", cmp.Or(c.Field, "patch"), c.Type))
		}
	}

	return kube.WithText(err, fmt.Sprintf("the API server rejects it: %s; its message is not shown, because it may contain values of the Secret", strings.Join(why, ", ")))
}

// remove deletes the object that was read, on condition that it was not replaced since.
func (w *Worker) remove(ctx context.Context, it *model.Item, a decide.Action, s situation) (outcome, error) {
	uid := s.Live.GetUID()
	err := w.Remote.Delete(ctx, s.Live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return outcome{}, fmt.Errorf("cannot delete %s: %w", it.Identity, err)
	}
	w.Metrics.Did(decide.Delete)
	if a.Foreground {
		return outcome{waits: a.Reason, again: retryAfter / 10}, nil
	}

	return outcome{}, nil
}

// apply makes an object what is desired. Mostly that is one request. Where something must be
// removed that other field managers may own, or the server rejects what would be left of it,
// ownership is moved first.
func (w *Worker) apply(ctx context.Context, v *model.Composition, it *model.Item) (*unstructured.Unstructured, error) {
	scopes := w.scopes(it)
	before := it.LastAppliedIn(scopes)
	migrates := len(scopes) > 0 && w.Migration == decide.MigrationOn
	var rejected error
	if it.TakesOver(scopes, before) {
		if !migrates {
			w.detect(ctx, v, it, scopes, before)
		} else if o, err := w.migrate(ctx, v, it, scopes, before); ownership.OnlyRewrite(err) {
			rejected = err // the finding is reported; the apply may work without it
		} else {
			return o, err
		}
	}
	o, err := w.applyPlainly(ctx, it)
	switch {
	case rejected != nil && err != nil:
		return nil, fmt.Errorf("%w; without it: %w", rejected, err)
	case rejected == nil && migrates && apierrors.IsInvalid(err):
		return w.migrate(ctx, v, it, scopes, before)
	}

	return o, err
}

// applyPlainly applies an object and does nothing about ownership.
func (w *Worker) applyPlainly(ctx context.Context, it *model.Item) (*unstructured.Unstructured, error) {
	o := it.Object.DeepCopy()
	o.SetResourceVersion(it.BaseVersion) // another version may make overrides return something else
	err := w.Remote.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.ForceOwnership, client.FieldOwner(w.Manager))
	if kinds.IsUnserved(err) {
		return nil, fmt.Errorf("cannot apply %s: the API server does not serve %s in version %s: change the apiVersion of the manifest, or have the version served again: %w",
			it.Identity, it.GVK.GroupKind(), it.GVK.Version, err)
	}
	if err != nil {
		return nil, explainNamespace(fmt.Errorf("cannot apply %s: %w", it.Identity, err))
	}

	return o, nil
}

// explainNamespace adds to the error of a missing namespace that it is missing in the cluster that
// is delivered to, and not in that of the composition.
func explainNamespace(err error) error {
	name, ok := kube.MissingNamespace(err)
	if !ok {
		return err
	}

	return fmt.Errorf("%w: there is no namespace %q in the cluster that is delivered to; make it, or have the synthesizer write it", err, name)
}

// scopes are what ownership is moved of, none if that is off.
func (w *Worker) scopes(it *model.Item) []fields.Scope {
	if w.Migration == decide.MigrationOff {
		return nil
	}
	if len(it.Scopes) > 0 {
		return it.Scopes
	}
	all, err := ownership.DefaultScopes(it.Object)
	if err != nil {
		return nil
	}

	return all
}

// migrate applies with whatever has to be done about ownership for it.
func (w *Worker) migrate(ctx context.Context, v *model.Composition, it *model.Item, scopes []fields.Scope, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result, err := w.Migrator.Migrate(ctx, ownership.Request{Desired: it.Object, Previous: before, Scopes: scopes, Mode: it.Mode, Version: it.BaseVersion})
	p := result.Plan
	switch {
	case ownership.IsStale(err): // overrides are evaluated again first
	// The server may reject what is left of it, and the reason is that it is left.
	case p != nil && p.Skip == ownership.Contested:
		message := fmt.Sprintf("%s take back what is moved to %s, and are left alone", strings.Join(p.Contested, ", "), w.Manager)
		w.reportOwnership(v, it, finding{enov1.OwnershipSplit, message, reasonContested, p.Moves})
	case err != nil && p != nil && isSplit(p):
		w.reportOwnership(v, it, finding{enov1.OwnershipFailed, err.Error(), reasonFailed, p.Moves})
	case err != nil:
	case result.Migrated:
		message := fmt.Sprintf("%s owns what %s had of %s", w.Manager, sources(p.Moves), names(scopes))
		w.reportOwnership(v, it, finding{enov1.OwnershipMigrated, message, reasonMigrated, p.Moves})
	default:
		w.reportOwnership(v, it, finding{})
	}
	if err != nil {
		return nil, err
	}

	return result.Object, nil
}

// detect reports what a migration would do, and does nothing about it.
func (w *Worker) detect(ctx context.Context, v *model.Composition, it *model.Item, scopes []fields.Scope, before *unstructured.Unstructured) {
	p, err := w.Migrator.Plan(ctx, ownership.Request{Desired: it.Object, Previous: before, Scopes: scopes, Mode: it.Mode})
	switch {
	case err != nil:
		w.reportOwnership(v, it, finding{state: enov1.OwnershipFailed, message: err.Error(), reason: reasonFailed})
	case isSplit(p) && p.Skip == "":
		w.reportOwnership(v, it, finding{enov1.OwnershipSplit, fmt.Sprintf("%s hold parts of %s", sources(p.Moves), names(scopes)), reasonSplit, p.Moves})
	default:
		w.reportOwnership(v, it, finding{})
	}
}

// isSplit reports whether other field managers own anything.
func isSplit(p *ownership.Plan) bool { return p.Live != nil && len(p.Moves) > 0 }

// sources are the managers that something is moved from.
func sources(moves []fields.Move) string {
	var all []string
	for _, m := range moves {
		if name := m.From.Manager; name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)

	return strings.Join(all, ", ")
}

func names(scopes []fields.Scope) string {
	all := make([]string, len(scopes))
	for i, s := range scopes {
		all[i] = s.String()
	}

	return strings.Join(all, ", ")
}
