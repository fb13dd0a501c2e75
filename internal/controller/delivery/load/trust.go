package load

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// slice reads a slice that the status of a composition names. It returns an error if it does not
// belong to the composition: anything in it could be delivered, or deleted.
func (l *Loader) slice(ctx context.Context, c *enov1.Composition, ref *enov1.ResourceSliceRef) (*enov1.ResourceSlice, error) {
	s := &enov1.ResourceSlice{}
	if err := l.Reader.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: ref.Name}, s); err != nil {
		return nil, err
	}
	if problem := tenancy.SliceProblem(c, ref, s, tenancy.Digest(&s.Spec)); problem != "" {
		return nil, &model.RejectedError{Reason: problem}
	}

	return s, nil
}

// problemOf returns why a slice does not belong to the current synthesis of a composition, "" if it
// does. The cache may not have the digest of a slice that was restored a moment ago, so before a slice
// is rejected, the composition is read from the API server.
func (l *Loader) problemOf(ctx context.Context, s *enov1.ResourceSlice, c *enov1.Composition) (string, error) {
	if sliceProblem(s, c) == "" {
		return "", nil
	}
	name, live := client.ObjectKeyFromObject(c), &enov1.Composition{}
	if err := l.Reader.Get(ctx, name, live); err != nil {
		return "", fmt.Errorf("cannot read composition %s: %w", name, err)
	}

	return sliceProblem(s, live), nil
}

// sliceProblem is like tenancy.SliceProblem. A slice that the current synthesis does not name has none.
func sliceProblem(s *enov1.ResourceSlice, c *enov1.Composition) string {
	if c.Status.CurrentSynthesis == nil {
		return ""
	}
	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		if ref.Name == s.Name {
			return tenancy.SliceProblem(c, ref, s, tenancy.Digest(&s.Spec))
		}
	}

	return ""
}

// reportLeft records an event if objects of a composition that is being deleted stay because their
// slice does not belong to it.
func (l *Loader) reportLeft(c *enov1.Composition, s *enov1.Synthesis, because error) {
	if model.IsRejected(because) && s == c.Status.CurrentSynthesis {
		l.Events.Record(c.DeepCopy(), nil, corev1.EventTypeWarning, "SliceRejected", "objects are not deleted with the composition: "+because.Error())
	}
}
