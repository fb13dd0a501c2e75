package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/source"
)

// probeTime is how long a manager gets to add a finalizer again, and probeInterval how
// often the pool is read meanwhile.
var (
	probeTime     = 3 * time.Second
	probeInterval = 100 * time.Millisecond
)

// errStop ends a visit of pages early.
var errStop = errors.New("stop")

// check returns an error if a manager runs, and from how many pools it has removed the
// finalizer to find out.
func (o *uninstallOptions) check(ctx context.Context, e source.Editor) (int, error) {
	list, err := o.connect(o.flags, o.ErrOut)
	if err != nil {
		return 0, err
	}

	if err := source.NoManager(ctx, list, o.now()); err != nil {
		return 0, err
	}

	pool, err := firstProtected(ctx, e)
	if err != nil || pool == nil {
		return 0, err
	}

	c := &cleaner{editor: e, kind: v1alpha1.SubnetPoolKind, yes: true}
	if err := c.strip(ctx, pool); err != nil {
		return 0, nil //nolint:nilerr // it fails again when the pool's turn comes, and is then reported
	}

	return 1, noWriter(ctx, list, pool)
}

// firstProtected returns a pool that has a finalizer of Arbor and is not being deleted, nil
// if there is none.
func firstProtected(ctx context.Context, e source.Editor) (*metav1.PartialObjectMetadata, error) {
	var pool *metav1.PartialObjectMetadata

	err := e.Pages(ctx, v1alpha1.SubnetPoolKind, func(page []metav1.PartialObjectMetadata) error {
		i := slices.IndexFunc(page, func(p metav1.PartialObjectMetadata) bool {
			return p.DeletionTimestamp == nil && slices.Contains(p.Finalizers, v1alpha1.Finalizer)
		})
		if i < 0 {
			return nil
		}

		pool = &page[i]

		return errStop
	})
	if errors.Is(err, errStop) {
		err = nil
	}

	return pool, err
}

// noWriter returns an error if a manager adds the finalizer of a pool again.
func noWriter(ctx context.Context, list source.Lister, pool *metav1.PartialObjectMetadata) error {
	q := source.Query{Resource: v1alpha1.GroupVersion.WithResource("subnetpools"), Namespace: pool.Namespace, Name: pool.Name}

	err := wait.PollUntilContextTimeout(ctx, probeInterval, probeTime, true, func(ctx context.Context) (bool, error) {
		pools, err := list(ctx, q)

		return slices.ContainsFunc(pools, func(o map[string]any) bool {
			return slices.Contains((&unstructured.Unstructured{Object: o}).GetFinalizers(), v1alpha1.Finalizer)
		}), err
	})

	switch {
	case err == nil:
		return fmt.Errorf("%w without the Lease of the leader election: it has added the finalizer of pool %s/%s again; stop it and try again",
			source.ErrManagerRuns, pool.Namespace, pool.Name)
	case wait.Interrupted(err) && ctx.Err() == nil:
		return nil
	}

	return err
}
