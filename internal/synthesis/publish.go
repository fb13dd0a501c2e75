package synthesis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// restorePoll is how often a lost slice is looked for.
const restorePoll = 250 * time.Millisecond

// publish writes slices of what was made, and makes them the current ones. If nothing
// has changed, the slices that there are stay.
func (r *Runner) publish(ctx context.Context, c *enov1.Composition, m made) error {
	uuid := c.Status.InFlightSynthesis.UUID
	live, err := r.wanted(ctx, c, uuid)
	if err != nil {
		return err
	}
	done := decide.Done{UUID: uuid, Results: m.results, Inputs: m.inputs, HistoryLimit: r.HistoryLimit}
	var current []*enov1.ResourceSlice
	if live.Status.CurrentSynthesis != nil {
		done.BasedOn = live.Status.CurrentSynthesis.UUID
		if live, current, err = r.current(ctx, live, &done); err != nil {
			return err
		}
	}
	if done.Unchanged = decide.Unchanged(&live.Status, m.manifests, current); done.Unchanged {
		return r.promote(ctx, c, done)
	}
	for _, manifests := range decide.Cut(decide.Manifests(m.manifests, current, uuid, decide.RequestOf(&live.Status, current))) {
		ref, err := r.create(ctx, live, uuid, manifests)
		if err != nil {
			return err
		}
		done.Slices = append(done.Slices, ref)
	}

	return r.promote(ctx, c, done)
}

// wanted reads a composition whose synthesis is in flight. It returns ErrSuperseded if the synthesis
// is not wanted any more.
func (r *Runner) wanted(ctx context.Context, c *enov1.Composition, uuid string) (*enov1.Composition, error) {
	live := &enov1.Composition{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), live); apierrors.IsNotFound(err) {
		return nil, ErrSuperseded
	} else if err != nil {
		return nil, fmt.Errorf("cannot read Composition %s/%s: %w", c.Namespace, c.Name, err)
	}
	if live.UID != c.UID || live.DeletionTimestamp != nil || !decide.Wanted(&live.Status, uuid) {
		return nil, ErrSuperseded
	}

	return live, nil
}

// promote makes the written slices the current synthesis. The status, under its resourceVersion,
// decides whether it is still wanted. Promotion is not canceled any more: a controller that sees
// the promotion would otherwise take the synthesis for superseded, and cancel it before the
// response arrives.
func (r *Runner) promote(ctx context.Context, c *enov1.Composition, done decide.Done) error {
	ctx, cancel := lingering(ctx, stopGrace)
	defer cancel()
	promoted := false
	_, err := r.update(ctx, c, func(live *enov1.Composition) (enov1.CompositionStatus, bool) {
		st := &live.Status
		// A write can succeed without its answer coming back.
		if promoted = st.CurrentSynthesis != nil && st.CurrentSynthesis.UUID == done.UUID; promoted {
			return *st, false
		}
		next, ok := decide.Promote(st, done, r.Now())
		promoted = ok

		return next, ok
	})
	if err == nil && !promoted {
		return ErrSuperseded
	}

	return err
}

// lingering returns a context that ends some time after another.
func lingering(ctx context.Context, longer time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(longer, cancel) })

	return later, func() {
		stop()
		cancel()
	}
}

// create writes a slice. The digest is that of what the API server stored.
func (r *Runner) create(ctx context.Context, c *enov1.Composition, uuid string, manifests []enov1.Manifest) (*enov1.ResourceSliceRef, error) {
	slice := &enov1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       c.Namespace,
			GenerateName:    c.Name + "-",
			Finalizers:      []string{enov1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, enov1.GroupVersion.WithKind(enov1.CompositionKind))},
		},
		Spec: enov1.ResourceSliceSpec{SynthesisUUID: uuid, Resources: manifests},
	}
	if err := r.Client.Create(ctx, slice); isTooLarge(err) {
		ref, size := decide.Largest(manifests)

		return nil, fmt.Errorf("cannot store %s: its manifest takes %d KiB in a ResourceSlice, which the API server does not accept; split it: %w", ref, size>>10, err)
	} else if err != nil {
		return nil, fmt.Errorf("cannot create a ResourceSlice: %w", err)
	}

	return &enov1.ResourceSliceRef{Name: slice.Name, Digest: tenancy.Digest(&slice.Spec)}, nil
}

// isTooLarge reports whether the API server or its store rejects an object because of
// its size.
func isTooLarge(err error) bool {
	return err != nil && (apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "too large"))
}

// current reads the slices of the current synthesis. Objects of one that is lost would not be
// pruned, so it waits until delivery has restored it, for a limited time. Delivery records the digest
// of a slice that it restores, so each attempt reads the composition again, and the last one is
// returned. A result names the slices that are still lost.
func (r *Runner) current(ctx context.Context, c *enov1.Composition, done *decide.Done) (*enov1.Composition, []*enov1.ResourceSlice, error) {
	read, err := r.slices(ctx, c, c.Status.CurrentSynthesis)
	for until := r.Now().Add(decide.LostGrace); err == nil && len(read) < len(c.Status.CurrentSynthesis.ResourceSlices) && r.Now().Before(until); {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(restorePoll):
		}
		if c, err = r.wanted(ctx, c, done.UUID); err != nil {
			return nil, nil, err
		}
		if s := c.Status.CurrentSynthesis; s == nil || s.UUID != done.BasedOn {
			return nil, nil, ErrSuperseded
		}
		read, err = r.slices(ctx, c, c.Status.CurrentSynthesis)
	}
	if err != nil {
		return nil, nil, err
	}
	reportLost(c, read, done)

	return c, read, nil
}

// reportLost adds a result that names the slices of the current synthesis that were not read.
func reportLost(c *enov1.Composition, read []*enov1.ResourceSlice, done *decide.Done) {
	var names []string
	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		if !slices.ContainsFunc(read, func(one *enov1.ResourceSlice) bool { return one.Name == ref.Name }) {
			names = append(names, ref.Name)
		}
	}
	if len(names) > 0 {
		done.Results = append(slices.Clone(done.Results), enov1.Result{Severity: enov1.SeverityWarning, Message: decide.Lost(strings.Join(names, ", "))})
	}
}

// slices reads those of a synthesis from the API server, without those that are lost: they do not
// exist, or do not belong to the synthesis. The controller of compositions reports and heals that.
func (r *Runner) slices(ctx context.Context, c *enov1.Composition, s *enov1.Synthesis) ([]*enov1.ResourceSlice, error) {
	var all []*enov1.ResourceSlice
	for _, ref := range s.ResourceSlices {
		slice := &enov1.ResourceSlice{}
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, slice)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read ResourceSlice %s/%s: %w", c.Namespace, ref.Name, err)
		}
		if tenancy.SliceProblem(c, ref, slice, tenancy.Digest(&slice.Spec)) == "" {
			all = append(all, slice)
		}
	}

	return all, nil
}

// update changes the status of a composition as it is now, unless change returns false, and reports
// whether it did. It retries however often another client writes first: the synthesis would
// otherwise stay in flight until its timeout.
func (r *Runner) update(ctx context.Context, c *enov1.Composition, change func(*enov1.Composition) (enov1.CompositionStatus, bool)) (wrote bool, err error) {
	write := func(ctx context.Context) error {
		wrote = false
		live := &enov1.Composition{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		next, ok := change(live)
		if !ok || live.UID != c.UID {
			return nil
		}
		live.Status = next
		if err := r.Client.Status().Update(ctx, live); err != nil {
			return err
		}
		wrote = true

		return nil
	}
	for {
		if err = kube.RetryOnConflict(ctx, write); !kube.LostRace(err) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("cannot write the status of Composition %s/%s: %w", c.Namespace, c.Name, err)
	}

	return wrote, err
}
