package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// A stage is how far the relic is: its composition is deleted while the version of its
// manifest is not served, and created again when the version is.
type stage int

const (
	relicMade stage = iota
	relicUnserved
	relicDeleted
	relicServed
)

// furnishDeliveries creates the compositions of this file, and what they need.
func (l *load) furnishDeliveries(create func(client.Object, ...client.CreateOption)) {
	l.Helper()
	create(&corev1.ConfigMap{ObjectMeta: l.meta("theirs"), Data: map[string]string{"own": "0"}}, client.FieldOwner(old))
	crd := l.relicCRD()
	create(crd)
	for _, name := range []string{kinds, hooks, scaled, relic} {
		create(l.program(name))
		create(&corev1.ConfigMap{ObjectMeta: l.meta("in-" + name), Data: map[string]string{"round": "0"}})
		create(l.composition(name, name, name))
	}
	cluster.Eventually(l, "the replicas can be left to another writer", func() error { return l.scale(l.Context(), 1) })
}

// ready reads a composition, and reports whether everything of it is delivered.
func (l *load) ready(ctx context.Context, name string) (bool, error) {
	c := &enov1.Composition{}
	if err := l.Get(ctx, client.ObjectKey{Namespace: l.ns, Name: name}, c); err != nil {
		return false, err
	}
	if c.DeletionTimestamp != nil {
		return false, errors.New("it is being deleted")
	}
	st := c.Status

	return st.Simplified != nil && st.Simplified.Status == enov1.StatusReady && st.InFlightSynthesis == nil, nil
}

// create and remove a composition. One whose request had no answer may exist already, or
// not exist any more.
func (l *load) create(ctx context.Context, name string) error {
	o := l.composition(name, name, name)
	err := l.Create(ctx, o)
	l.note(o, enov1.CompositionKind, true, err)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}

	return err
}

func (l *load) remove(ctx context.Context, name string) error {
	o := l.composition(name, name, name)
	err := l.Delete(ctx, o)
	l.note(o, enov1.CompositionKind, false, err)

	return client.IgnoreNotFound(err)
}

// leaf changes the input of a CRD and its objects, deletes their composition now and
// then, and creates it again when it is gone.
func (l *load) leaf(ctx context.Context) {
	ready, err := l.ready(ctx, kinds)
	switch {
	case apierrors.IsNotFound(err):
		_ = l.create(ctx, kinds)
	case err != nil:
	case ready && !l.isCalm() && l.draw(6) == 0:
		if l.remove(ctx, kinds) == nil {
			l.mu.Lock()
			l.count("deletion of the CRD")
			l.mu.Unlock()
		}
	case ready || l.draw(8) == 0: // a synthesis may be replaced before it is delivered
		_ = l.input(ctx, kinds, 1)
	default:
		_ = l.input(ctx, kinds, 0)
	}
}

// hook has the next round follow when the last one is delivered, and now and then before.
func (l *load) hook(ctx context.Context) {
	o := &corev1.ConfigMap{}
	if client.IgnoreNotFound(l.Get(ctx, client.ObjectKey{Namespace: l.ns, Name: "after"}, o)) != nil {
		return
	}
	l.mu.Lock()
	round := strconv.Itoa(l.rounds[hooks])
	l.mu.Unlock()
	step := 0
	if o.Data["round"] == round {
		l.ledger.History.Complete(o.Data["synthesis"])
		step = 1
	} else if l.draw(8) == 0 {
		step = 1
	}
	if l.input(ctx, hooks, step) == nil && step == 1 {
		_ = l.write(ctx, l.next(&l.written))
	}
}

// next is a counter's next value.
func (l *load) next(counter *int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	*counter++

	return *counter
}

// write changes the object that the Patch is about, as the writer that made it.
func (l *load) write(ctx context.Context, n int) error {
	o := &corev1.ConfigMap{ObjectMeta: l.meta("theirs")}

	return l.Patch(ctx, o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"own":"%d"}}`, n)), client.FieldOwner(old))
}

// scaling raises the replicas, and changes the manifest at the same time.
func (l *load) scaling(ctx context.Context) {
	if l.draw(3) == 0 {
		_ = l.input(ctx, scaled, 1)
	}
	_ = l.scale(ctx, l.next(&l.replicas))
}

// scale writes the replicas as another field manager.
func (l *load) scale(ctx context.Context, n int) error {
	o := l.object(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, scaled, map[string]any{})
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"scale":"manual"}},"spec":{"replicas":%d}}`, n)

	return l.Patch(ctx, &o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("autoscaler"))
}

// relic goes one step. A step whose request had no answer is done again.
func (l *load) relic(ctx context.Context) {
	l.mu.Lock()
	at, calm := l.stage, l.calm
	l.mu.Unlock()
	var err error
	switch at {
	case relicMade:
		if ready, err := l.ready(ctx, relic); err != nil || !ready || calm {
			return
		}
		err = l.serve(ctx, false)
	case relicUnserved:
		if l.draw(3) > 0 { // delivery has to live with it for a while
			return
		}
		err = l.remove(ctx, relic)
	case relicDeleted:
		if err = l.Get(ctx, client.ObjectKey{Namespace: l.ns, Name: relic}, &enov1.Composition{}); !apierrors.IsNotFound(err) {
			return
		}
		o := l.object(l.relics("v1"), relic, map[string]any{})
		if err = l.Get(ctx, client.ObjectKeyFromObject(&o), &o); err == nil {
			l.Errorf("the composition is gone, and its object is left behind in another version: %v", o.Object)
		}
		err = l.serve(ctx, true)
	case relicServed:
		err = l.create(ctx, relic)
	}
	if err == nil {
		l.mu.Lock()
		l.stage = (at + 1) % (relicServed + 1)
		l.count("step of the removed version")
		l.mu.Unlock()
	}
}

// serve has the API server serve the version of the relic, or not.
func (l *load) serve(ctx context.Context, served bool) error {
	return l.Patch(ctx, l.relicCRD(), client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"replace","path":"/spec/versions/1/served","value":%t}]`, served)))
}

// isCalm reports whether the load must not do what delivery rightly counts as an error:
// CRDs and versions that are not served.
func (l *load) isCalm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.calm
}

// rest makes the load calm, and waits until it is; or ends that.
func (l *load) rest(calm bool, revive func()) {
	l.Helper()
	l.mu.Lock()
	l.calm = calm
	l.mu.Unlock()
	cluster.Eventually(l, "the load is calm", func() error {
		revive()
		l.mu.Lock()
		at := l.stage
		l.mu.Unlock()
		if !calm {
			return nil
		}
		first, err := l.ready(l.Context(), kinds)
		second, err2 := l.ready(l.Context(), relic)
		if err = errors.Join(err, err2); err != nil || !first || !second || at != relicMade {
			return fmt.Errorf("the relic is at stage %d, ready: %t, %t: %w", at, first, second, err)
		}

		return nil
	})
}

// count counts what was done to deliveries, for the log. The lock is held.
func (l *load) count(what string) { l.counts[what]++ }

// tally is what was counted since the last one, and how many syntheses have run the hook.
func (l *load) tally() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.counts
	l.counts = map[string]int{}

	return fmt.Sprintf("%v, %d syntheses with the hook so far", counts, l.ledger.History.Hooks())
}

// finishDeliveries writes the last values. All compositions exist then.
func (l *load) finishDeliveries() error {
	for _, name := range []string{kinds, hooks, scaled} {
		if err := l.input(l.Context(), name, 0); err != nil {
			return err
		}
	}
	if err := errors.Join(l.write(l.Context(), l.written), l.scale(l.Context(), l.replicas)); err != nil {
		return err
	}
	if l.stage != relicMade {
		l.relic(l.Context())
	}
	if l.stage != relicMade {
		return errors.New("the relic is not there again")
	}
	switch _, err := l.ready(l.Context(), kinds); {
	case apierrors.IsNotFound(err):
		return l.create(l.Context(), kinds)
	case err != nil:
		return fmt.Errorf("composition %s: %w", kinds, err)
	}

	return nil
}

// release removes the finalizer of objects that are being deleted, after a while, as the
// controller of their kind would.
func (l *load) release(ctx context.Context) {
	for _, kind := range []schema.GroupVersionKind{l.leaves(), {Version: "v1", Kind: "ConfigMap"}} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if l.List(ctx, list, client.InNamespace(l.ns)) != nil {
			continue // there may be no such kind
		}
		for i := range list.Items {
			o := &list.Items[i]
			if o.GetDeletionTimestamp() == nil || !slices.Contains(o.GetFinalizers(), hold) || l.draw(2) == 0 {
				continue
			}
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":null,"resourceVersion":%q}}`, o.GetResourceVersion()))
			if l.Patch(ctx, o, patch, client.FieldOwner("controller")) == nil {
				l.mu.Lock()
				l.count("finalizer removed")
				l.mu.Unlock()
			}
		}
	}
}
