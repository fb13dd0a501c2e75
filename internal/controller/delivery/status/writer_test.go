package status

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// A composition that is deleted has a new view, of the same slices. States of its earlier view that
// are not written yet must not be written after those of the new one.
func TestLastStateIsWritten(t *testing.T) {
	said := func(s enov1.ResourceState) (*model.Composition, *model.Item) {
		at := &model.Slice{Events: &model.SliceEvents{}, NamespacedName: types.NamespacedName{Namespace: "n", Name: "s"}, Count: 2}
		it := &model.Item{Place: model.Place{Slice: at}, State: s}
		v := &model.Composition{Items: []*model.Item{it, {Place: model.Place{Slice: at, Index: 1, Position: 1}}}}

		return v, it
	}
	made, gone := enov1.ResourceState{Reconciled: true}, enov1.ResourceState{Reconciled: true, Deleted: true}
	before, first := said(made)
	now, second := said(gone)

	w := NewWriter(nil, nil, nil)
	w.Set(before, first, made)
	w.Set(now, second, gone)
	// Another item of the earlier view, which a worker still has.
	w.Set(before, before.Items[1], made)
	if len(w.Dirty) != 1 {
		t.Fatalf("one slice is written %d times at once", len(w.Dirty))
	}
	for _, u := range w.Dirty {
		if diff := cmp.Diff([]enov1.ResourceState{gone, made}, u.All()); diff != "" {
			t.Errorf("the first write: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[int]enov1.ResourceState{0: gone, 1: made}, u.states); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		// It could not be written, and another state was set since.
		w.Dirty = map[types.NamespacedName]*unwritten{}
		w.Set(before, first, made)
		w.again(u)
	}
	for _, u := range w.Dirty {
		if diff := cmp.Diff(map[int]enov1.ResourceState{0: made, 1: made}, u.states); diff != "" {
			t.Errorf("after a failed write: -want, +got:\n%s", diff)
		}
	}
}

// A slice that is gone has no readers; one whose namespace is gone is still there, and is
// written to when the namespace is.
func TestResultOf(t *testing.T) {
	slices, namespaces := schema.GroupResource{Group: enov1.GroupVersion.Group, Resource: "resourceslices"}, schema.GroupResource{Resource: "namespaces"}
	for want, err := range map[string]error{
		metric.ResultSuccess: nil, metric.ResultGone: apierrors.NewNotFound(slices, "s"), metric.ResultFailure: apierrors.NewNotFound(namespaces, "n"), metric.ResultConflict: apierrors.NewConflict(slices, "s", nil),
	} {
		if got := resultOf(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

// TestStatusFits has the largest slice that an earlier release made, with an error about
// each of its objects: it must be possible to store that.
func TestStatusFits(t *testing.T) {
	const etcd = 3 << 19 // bytes that etcd accepts in one request
	s := &enov1.ResourceSlice{}
	for size := 0; size < 512<<10; size += len(s.Spec.Resources[0].Manifest) {
		s.Spec.Resources = append(s.Spec.Resources, enov1.Manifest{Manifest: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object-%06d","namespace":"not-there"},"data":{"key":"v"}}`, size)})
	}
	at, now := model.NewSlice(s), metav1.Now()
	text := strings.Repeat("x", event.MaxMessage)
	for range s.Spec.Resources {
		s.Status.Resources = append(s.Status.Resources, at.Bound(enov1.ResourceState{ReconciliationError: &text, UID: "01234567-0123-0123-0123-0123456789ab", Ready: &now}))
	}
	data, err := json.Marshal(s)
	if err != nil || len(data) > etcd {
		t.Errorf("%d resources take %d bytes: %v", len(s.Spec.Resources), len(data), err)
	}
	if got := (&model.Slice{Count: 20}).Bound(enov1.ResourceState{ReconciliationError: &text}); *got.ReconciliationError != text {
		t.Errorf("of few resources, an error was cut to %d bytes", len(*got.ReconciliationError))
	}
}

func TestSlowSliceRests(t *testing.T) {
	t.Parallel()
	now := time.Now()
	open := enov1.ResourceState{}
	done := enov1.ResourceState{Reconciled: true}
	for name, tc := range map[string]struct {
		reason     string
		rest, wait time.Duration
		states     []enov1.ResourceState
		want       time.Duration
	}{
		"First":      {"A slice that was never written is written at once.", 0, 0, []enov1.ResourceState{open, done}, 0},
		"Rests":      {"A slice in the middle of its work waits after a slow write.", time.Second, 0, []enov1.ResourceState{open, done}, time.Second},
		"Complete":   {"What is complete is written at once: synthesis and users wait for it.", time.Second, 0, []enov1.ResourceState{done, done}, 0},
		"Failed":     {"A failed write waits, also of a slice that is complete.", 0, time.Minute, []enov1.ResourceState{done, done}, time.Minute},
		"FailedLong": {"The longer wait counts.", time.Second, time.Minute, []enov1.ResourceState{open, done}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &model.Slice{Count: len(tc.states), RestUntil: now.Add(tc.rest)}
			v := &model.Composition{}
			for i, state := range tc.states {
				v.Items = append(v.Items, &model.Item{Place: model.Place{Slice: s, Index: i}, State: state})
			}
			v.Items = append(v.Items, &model.Item{Place: model.Place{Slice: &model.Slice{}}, State: open}) // another slice does not count
			u := &unwritten{View: v, slice: s, notBefore: now.Add(tc.wait)}
			if got := u.earliest().Sub(now); got != tc.want {
				t.Errorf("%s: waits for %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// writeTimes is a client that notes when a status is written.
type writeTimes struct {
	client.Client

	at chan time.Time
}

func (w *writeTimes) Status() client.SubResourceWriter { return statusTimes{at: w.at} }

type statusTimes struct {
	client.SubResourceWriter

	at chan time.Time
}

func (w statusTimes) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	w.at <- time.Now()

	return nil
}

// States are gathered for a while, unless one completes its slice: users wait for that.
func TestCompleteSliceIsWrittenAtOnce(t *testing.T) {
	ready := enov1.ResourceState{Reconciled: true, Ready: &metav1.Time{}}
	for name, tc := range map[string]struct {
		reason string
		states []enov1.ResourceState
		want   time.Duration
	}{
		"Open":     {"Another manifest is not applied yet.", []enov1.ResourceState{ready, {}}, Gather},
		"Complete": {"Nothing is left to gather.", []enov1.ResourceState{ready, ready}, 0},
		"Unready":  {"The object may become ready within the time.", []enov1.ResourceState{{Reconciled: true}, ready}, Gather},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := &writeTimes{at: make(chan time.Time, 1)}
				w := NewWriter(c, c, metric.New(prometheus.NewRegistry()))
				s := &model.Slice{Events: &model.SliceEvents{}, Count: len(tc.states), Initialized: true}
				v := &model.Composition{}
				for i, state := range tc.states {
					v.Items = append(v.Items, &model.Item{Place: model.Place{Slice: s, Index: i, Position: i}, State: state})
				}
				go w.Run(ctx)
				began := time.Now()
				w.Set(v, v.Items[0], tc.states[0])
				if got := (<-c.at).Sub(began); got != tc.want {
					t.Errorf("%s: it is written after %s, want %s", tc.reason, got, tc.want)
				}
			})
		})
	}
}
