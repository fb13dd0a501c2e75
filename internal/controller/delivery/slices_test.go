package delivery

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// sliced is a composition with a slice, which has a manifest that cannot be read, a tombstone, a
// Patch that deletes its target and a manifest with settings.
func sliced(states ...enov1.ResourceState) (*enov1.Composition, []enov1.ResourceSlice) {
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "s"}}}
	s := enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", ResourceVersion: "1"}}
	s.Spec.SynthesisUUID = "u"
	s.Spec.Resources = []enov1.Manifest{
		{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"x":1},"name":"unreadable","namespace":"n"}}`},
		{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dropped","namespace":"n"}}`, Deleted: true, Requested: true, DroppedBy: "v"},
		{Manifest: `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"hook","namespace":"n"},"patch":{"apiVersion":"v1","kind":"ConfigMap","ops":[{"op":"add","path":"/metadata/deletionTimestamp","value":"2020-01-01T00:00:00Z"}]}}`},
		{Manifest: `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"annotations":{"eno.azure.io/deletion-strategy":"orphan","own":"kept"},"name":"web","namespace":"n"}}`},
	}
	s.Status.Resources = states

	return c, []enov1.ResourceSlice{s}
}

// A store is a server that has one slice, or none.
type store struct {
	client.Client

	slice *enov1.ResourceSlice
	// patches are what was written to the status.
	patches []string
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	to, ok := into.(*enov1.ResourceSlice)
	if s.slice == nil || !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "resourceslices"}, key.Name)
	}
	s.slice.DeepCopyInto(to)

	return nil
}

func (s *store) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if s.slice != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "resourceslices"}, o.GetName())
	}
	s.slice, _ = o.(*enov1.ResourceSlice)
	s.slice.ResourceVersion = "10"

	return nil
}

func (s *store) Status() client.SubResourceWriter { return storeStatus{store: s} }

type storeStatus struct {
	client.SubResourceWriter

	store *store
}

func (s storeStatus) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := p.Data(o)
	s.store.patches = append(s.store.patches, string(data))

	return err
}

// TestRestore has slices that do not exist: those whose objects are still to be deleted, or to be
// kept, are created again, with their manifests and states.
func TestRestore(t *testing.T) {
	done := enov1.ResourceState{Reconciled: true, UID: "7"}
	deleted := enov1.ResourceState{Reconciled: true, Deleted: true}
	cases := map[string]struct {
		reason   string
		states   []enov1.ResourceState
		change   func(*enov1.Composition, *Deliverer)
		exists   bool
		restored bool
		status   bool
	}{
		"Lost":    {reason: "It is restored with its states.", states: []enov1.ResourceState{{}, deleted, deleted, done}, restored: true, status: true},
		"New":     {reason: "Before the first state is written there is no status.", restored: true},
		"Exists":  {reason: "Another client may have restored it.", states: []enov1.ResourceState{{}, done, done, done}, exists: true},
		"Deleted": {reason: "Nothing is left to be deleted: synthesis removes it.", states: []enov1.ResourceState{deleted, deleted, deleted, deleted}, change: deleteComposition},
		"Deletes": {reason: "Something is.", states: []enov1.ResourceState{deleted, deleted, deleted, done}, change: deleteComposition, restored: true, status: true},
		"Abandoned": {
			reason: "The objects stay.", states: []enov1.ResourceState{deleted, deleted, deleted, done},
			change: func(c *enov1.Composition, d *Deliverer) {
				deleteComposition(c, d)
				c.Labels = map[string]string{enov1.LabelSymphonyDeleting: "true"}
			},
		},
		"Shared": {
			reason: "Another delivery knows the other manifests.", states: []enov1.ResourceState{{}, deleted, deleted, done},
			change: func(_ *enov1.Composition, d *Deliverer) { d.Filter, _ = ParseFilter(`self.metadata.name == "web"`) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, all := sliced(tc.states...)
			server, d := &store{}, idle()
			if tc.exists {
				server.slice = &all[0]
			}
			d.Client, d.Reader, d.Status.Client = server, server, server
			if tc.change != nil {
				tc.change(c, d)
			}
			v := d.NewView(c, all)
			v.Slices["s"].Events.SawDeletion()
			if !tc.exists {
				d.CheckSlices(t.Context(), v, c)
			} else if err := d.RestoreAll(t.Context(), v, c); err != nil {
				t.Fatal(err)
			}
			if (server.slice != nil) != (tc.restored || tc.exists) || (len(server.patches) > 0) != tc.status {
				t.Fatalf("%s: the slice is %v, its status %v", tc.reason, server.slice, server.patches)
			}
			if !tc.restored {
				return
			}
			if diff := cmp.Diff(all[0].Spec, server.slice.Spec); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if o := server.slice; o.Finalizers[0] != enov1.Finalizer || o.OwnerReferences[0].UID != c.UID || o.Name != "s" {
				t.Errorf("%s: the metadata are %+v", tc.reason, o.ObjectMeta)
			}
			if tc.status && !strings.Contains(server.patches[0], `"uid":"7"`) {
				t.Errorf("%s: the states are %v", tc.reason, server.patches)
			}
		})
	}
}

// deleteComposition has a composition deleted, with its objects.
func deleteComposition(c *enov1.Composition, _ *Deliverer) {
	now := metav1.Now()
	c.DeletionTimestamp, c.Generation = &now, 1
	c.Status.CurrentSynthesis.ObservedCompositionGeneration = 1
}

// TestOverwritten has another client write the status of a slice: what is known is written again.
func TestOverwritten(t *testing.T) {
	done := enov1.ResourceState{Reconciled: true, UID: "7"}
	deleted := enov1.ResourceState{Reconciled: true, Deleted: true}
	states := []enov1.ResourceState{{}, deleted, deleted, done}
	cases := map[string]struct {
		reason string
		before []enov1.ResourceState
		live   []enov1.ResourceState
		want   []int
	}{
		"Same":      {reason: "Metadata were changed.", before: states, live: states},
		"Cleared":   {reason: "All states that are known are written again.", before: states, want: []int{1, 2, 3}},
		"Shortened": {reason: "States are known by their index.", before: states, live: states[1:], want: []int{1, 2, 3}},
		"Changed":   {reason: "Only what differs is written.", before: states, live: []enov1.ResourceState{{}, deleted, {}, done}, want: []int{2}},
		"Early":     {reason: "Before the first write nothing is known.", live: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, all := sliced(tc.before...)
			d := idle()
			v := d.NewView(c, all)
			live := all[0].DeepCopy()
			live.Status.Resources = tc.live
			var got []int
			for _, it := range v.Overwritten(v.Slices["s"], live) {
				got = append(got, it.Index)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecallHooks has a slice that has lost its states while no manager ran.
func TestRecallHooks(t *testing.T) {
	now := metav1.Now()
	ran := enov1.ResourceState{Reconciled: true, Deleted: true}
	for name, tc := range map[string]struct {
		reason     string
		reconciled *metav1.Time
		states     []enov1.ResourceState
		want       bool
	}{
		"Recorded": {"The composition has recorded that all was done.", &now, nil, true},
		"Unknown":  {"It may not have run.", nil, nil, false},
		"Stored":   {"States that exist count.", &now, []enov1.ResourceState{{}, ran, {}, {}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, all := sliced(tc.states...)
			c.Status.CurrentSynthesis.Reconciled = tc.reconciled
			v := idle().NewView(c, all)
			v.RestorePatchStates(c)
			if got := v.Ran(v.Items[2]); got != tc.want {
				t.Errorf("%s: the hook has run: %t, want %t", tc.reason, got, tc.want)
			}
			if v.Items[3].State.Reconciled {
				t.Error("other work is repeated")
			}
		})
	}
}
