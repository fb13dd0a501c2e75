package synthesis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// lossyServer is an API server with a composition whose slice is lost. Once a client has failed to
// read the slice, a function of the test changes the server.
type lossyServer struct {
	client.Client

	composition *enov1.Composition
	slice       *enov1.ResourceSlice
	meanwhile   func(*lossyServer)
	promoted    *enov1.Composition
}

func (s *lossyServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch to := into.(type) {
	case *enov1.Composition:
		s.composition.DeepCopyInto(to)

		return nil
	case *enov1.ResourceSlice:
		if s.slice != nil {
			s.slice.DeepCopyInto(to)

			return nil
		}
		s.meanwhile(s)
	}

	return apierrors.NewNotFound(schema.GroupResource{Resource: "resourceslices"}, key.Name)
}

func (*lossyServer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	o.SetName("new")

	return nil
}

func (s *lossyServer) Status() client.SubResourceWriter { return lossyStatus{server: s} }

type lossyStatus struct {
	client.SubResourceWriter

	server *lossyServer
}

func (s lossyStatus) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	s.server.promoted, _ = o.(*enov1.Composition)

	return nil
}

// restoreSlice has delivery restore the slice, whose digest is another one then.
func restoreSlice(s *lossyServer) {
	s.slice = &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "old", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.composition, enov1.GroupVersion.WithKind(enov1.CompositionKind))},
	}}
	s.slice.Spec.SynthesisUUID = "before"
	s.slice.Spec.Resources = []enov1.Manifest{{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dropped","namespace":"n"}}`}}
	s.composition.Status.CurrentSynthesis.ResourceSlices[0].Digest = tenancy.Digest(&s.slice.Spec)
}

// TestPublishWaits has a synthesis that replaces one whose slice is lost at first.
func TestPublishWaits(t *testing.T) {
	cases := map[string]struct {
		reason    string
		meanwhile func(*lossyServer)
		want      error
		results   int // warnings about the slice
	}{
		"Restored": {reason: "The slice has the digest that delivery has recorded.", meanwhile: restoreSlice},
		"Lost":     {reason: "The slice is not restored in time.", meanwhile: func(*lossyServer) {}, results: 1},
		"Replaced": {reason: "The tombstones would be those of an earlier synthesis.", meanwhile: func(s *lossyServer) { s.composition.Status.CurrentSynthesis.UUID = "other" }, want: ErrSuperseded},
		"Canceled": {reason: "Another synthesis is in flight.", meanwhile: func(s *lossyServer) { s.composition.Status.InFlightSynthesis.UUID = "other" }, want: ErrSuperseded},
		"Deleted": {reason: "The composition is being deleted.", meanwhile: func(s *lossyServer) {
			now := metav1.Now()
			s.composition.DeletionTimestamp = &now
		}, want: ErrSuperseded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
			c.Status.InFlightSynthesis = &enov1.Synthesis{UUID: "next"}
			c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "before", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "old", Digest: "sha256:before"}}}
			server := &lossyServer{composition: c, meanwhile: tc.meanwhile}
			now := time.Now()
			r := &Runner{Client: server, Reader: server, Now: func() time.Time {
				now = now.Add(decide.LostGrace / 4)

				return now
			}}
			before := c.DeepCopy()
			if err := r.publish(t.Context(), before, made{}); !errors.Is(err, tc.want) {
				t.Fatalf("%s: the error is %v, want %v", tc.reason, err, tc.want)
			}
			if tc.want != nil {
				return
			}
			if diff := cmp.Diff(tc.results, len(server.promoted.Status.CurrentSynthesis.Results)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if got := len(server.promoted.Status.CurrentSynthesis.ResourceSlices); got != 1-tc.results {
				t.Errorf("%s: %d slices have tombstones", tc.reason, got)
			}
		})
	}
}
