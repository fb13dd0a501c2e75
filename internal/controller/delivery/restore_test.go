package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

var sliceResource = schema.GroupResource{Group: enov1.GroupVersion.Group, Resource: "resourceslices"}

// sliceServer is an API server with one composition and its slices.
type sliceServer struct {
	client.Client

	composition *enov1.Composition
	slices      map[string]*enov1.ResourceSlice
	// createError and digestError are returned by the next create of a slice, and by the next patch
	// of the status of the composition.
	createError, digestError error
	// afterRead is called once when both slices were read.
	afterRead func()
	reads     int
	mu        sync.Mutex
	// written are the slices whose status was written.
	written []string
}

// newSliceServer has a composition that was synthesized into slices a and b. The manifests of a are
// not formatted like those that delivery restores.
func newSliceServer() *sliceServer {
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u"}
	s := &sliceServer{composition: c, slices: map[string]*enov1.ResourceSlice{}}
	for _, name := range []string{"a", "b"} {
		one := &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: name, ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, enov1.GroupVersion.WithKind(enov1.CompositionKind))},
		}}
		one.Spec.SynthesisUUID = "u"
		one.Spec.Resources = []enov1.Manifest{{Manifest: `{"kind":"ConfigMap", "apiVersion":"v1", "metadata":{"name":"` + name + `","namespace":"n"}}`}}
		one.Status.Resources = []enov1.ResourceState{{Reconciled: true, UID: "7"}}
		s.slices[name] = one
		c.Status.CurrentSynthesis.ResourceSlices = append(c.Status.CurrentSynthesis.ResourceSlices, &enov1.ResourceSliceRef{Name: name, Digest: tenancy.Digest(&one.Spec)})
	}

	return s
}

// deliverer returns a Deliverer of the server, and the view that it has of the composition.
func (s *sliceServer) deliverer(t *testing.T) (*Deliverer, *model.Composition) {
	t.Helper()
	d := idle()
	d.Client, d.Reader, d.Status.Client, d.Status.Reader = s, s, s, s
	v, err := d.Load(t.Context(), s.composition.DeepCopy(), nil)
	if err != nil {
		t.Fatal(err)
	}

	return d, v
}

func (s *sliceServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	defer s.countRead(into)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch to := into.(type) {
	case *enov1.Composition:
		s.composition.DeepCopyInto(to)

		return nil
	case *enov1.ResourceSlice:
		if one := s.slices[key.Name]; one != nil {
			one.DeepCopyInto(to)

			return nil
		}
	case *metav1.PartialObjectMetadata:
		if s.slices[key.Name] != nil {
			return nil
		}
	}

	return apierrors.NewNotFound(sliceResource, key.Name)
}

func (s *sliceServer) countRead(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := o.(*enov1.ResourceSlice); !ok || s.afterRead == nil {
		return
	}
	if s.reads++; s.reads == 2 {
		s.afterRead()
		s.afterRead = nil
	}
}

func (s *sliceServer) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if to, ok := into.(*enov1.CompositionList); ok {
		to.Items = append(to.Items, *s.composition.DeepCopy())
	}

	return nil
}

func (s *sliceServer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if err := s.createError; err != nil {
		s.createError = nil

		return err
	}
	if s.slices[o.GetName()] != nil {
		return apierrors.NewAlreadyExists(sliceResource, o.GetName())
	}
	if one, ok := o.(*enov1.ResourceSlice); ok {
		one.ResourceVersion = "10"
		s.slices[one.Name] = one.DeepCopy()
	}

	return nil
}

func (s *sliceServer) Status() client.SubResourceWriter { return sliceServerStatus{server: s} }

type sliceServerStatus struct {
	client.SubResourceWriter

	server *sliceServer
}

func (s sliceServerStatus) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	c, ok := o.(*enov1.Composition)
	if !ok {
		if s.server.slices[o.GetName()] == nil {
			return apierrors.NewNotFound(sliceResource, o.GetName())
		}
		s.server.written = append(s.server.written, o.GetName())

		return nil
	}
	if err := s.server.digestError; err != nil {
		s.server.digestError = nil

		return err
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	var all []status.Operation
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, one := range all {
		for i, ref := range s.server.composition.Status.CurrentSynthesis.ResourceSlices {
			if one.Op == "replace" && strings.HasPrefix(one.Path, "/status/currentSynthesis/resourceSlices/"+string(rune('0'+i))) {
				ref.Digest, _ = one.Value.(string)
			}
		}
	}
	s.server.composition.DeepCopyInto(c)

	return nil
}

// names are those of the slices of a view.
func namesOf(v *model.Composition) string {
	var all []string
	for _, name := range []string{"a", "b"} {
		if v.Slices[name] != nil {
			all = append(all, name)
		}
	}

	return strings.Join(all, " ")
}

// TestLoadRestores loads a composition of which slice a is lost. Only the present view has its
// manifests, so it stays until the slice is restored.
func TestLoadRestores(t *testing.T) {
	overload := apierrors.NewTooManyRequests("later", 1)
	terminating := apierrors.NewForbidden(sliceResource, "a", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason      string
		createError error
		digestError error
		deleting    bool
		fails       bool   // the first attempt
		want        string // the slices of the view at the end
	}{
		"Restored":    {reason: "Nothing fails.", want: "a b"},
		"Create":      {reason: "A slice that cannot be created is created later.", createError: overload, fails: true, want: "a b"},
		"Deletes":     {reason: "Its objects would be left behind.", createError: overload, deleting: true, fails: true, want: "a b"},
		"Gone":        {reason: "Its namespace was removed by force.", createError: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Kind: "namespaces", Name: "n"}}}, deleting: true, want: "b"},
		"Terminating": {reason: "It cannot be created any more; the other objects are deleted.", createError: terminating, deleting: true, want: "b"},
		"Digest":      {reason: "A slice without its digest would be rejected.", digestError: overload, fails: true, want: "a b"},
		"DigestLast":  {reason: "This is so for a deletion, too.", digestError: overload, deleting: true, fails: true, want: "a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newSliceServer()
			d, old := server.deliverer(t)
			kept := server.composition.Status.CurrentSynthesis.ResourceSlices[1].Digest
			delete(server.slices, "a")
			server.createError, server.digestError = tc.createError, tc.digestError
			if tc.deleting {
				deleteComposition(server.composition, d)
			}
			v, err := d.Load(t.Context(), server.composition.DeepCopy(), old)
			if (err != nil) != tc.fails {
				t.Fatalf("%s: the error is %v", tc.reason, err)
			}
			if err != nil {
				v, err = d.Load(t.Context(), server.composition.DeepCopy(), old)
			}
			if err != nil {
				t.Fatalf("%s: it fails again: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, namesOf(v)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if server.composition.Status.CurrentSynthesis.ResourceSlices[1].Digest != kept {
				t.Error("the digest of a slice that exists has changed")
			}
		})
	}
}

// reconcile reconciles the composition and returns the slices of its view.
func (s *sliceServer) reconcile(t *testing.T, d *Deliverer) string {
	t.Helper()
	name := client.ObjectKeyFromObject(s.composition)
	if _, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); err != nil {
		t.Fatal(err)
	}

	return namesOf(d.View(name))
}

// TestPartialView has a composition that is being deleted, of which slice a is missing at first. It
// is read again, not with each request, until all slices are there.
func TestPartialView(t *testing.T) {
	server := newSliceServer()
	d, _ := server.deliverer(t)
	now := time.Now()
	d.Now = func() time.Time { return now }
	deleteComposition(server.composition, d)
	a := server.slices["a"]
	delete(server.slices, "a")
	if got := server.reconcile(t, d); got != "b" {
		t.Fatalf("the view has slices %q", got)
	}
	server.slices["a"] = a
	if got := server.reconcile(t, d); got != "b" {
		t.Errorf("the slices are read again at once: the view has slices %q", got)
	}
	result, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(server.composition)})
	if err != nil || result.RequeueAfter != model.ReloadDelay {
		t.Errorf("another request ends the wait for the slices: %v, %v", result, err)
	}
	now = now.Add(model.ReloadDelay)
	if got := server.reconcile(t, d); got != "a b" {
		t.Errorf("the slices are not read again: the view has slices %q", got)
	}
	whole := d.View(client.ObjectKeyFromObject(server.composition))
	now = now.Add(model.ReloadDelay)
	server.reconcile(t, d)
	if d.View(whole.Name) != whole {
		t.Error("a view with all slices is read again")
	}
}

// TestDeletionWhileLoading has slice a deleted after it was read, and before the view is in use.
func TestDeletionWhileLoading(t *testing.T) {
	cases := map[string]struct {
		reason string
		loaded bool
	}{
		"First": {reason: "There was no view that could note it."},
		"Next":  {reason: "The view that is replaced notes it.", loaded: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newSliceServer()
			d, _ := server.deliverer(t)
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			d.Compositions.Store(&queue)
			if tc.loaded {
				server.reconcile(t, d)
				d.View(client.ObjectKeyFromObject(server.composition)).Rescoped.Store(true)
			}
			server.afterRead = func() {
				a := server.slices["a"]
				delete(server.slices, "a")
				d.sliceHandler().Delete(t.Context(), event.DeleteEvent{Object: a}, queue)
			}
			server.reconcile(t, d)
			if server.slices["a"] != nil {
				t.Fatal("the slice was not deleted")
			}
			if _, shutdown := queue.Get(); shutdown { // waits until it is added
				t.Fatal("the composition is not reconciled again")
			}
			server.reconcile(t, d)
			if server.slices["a"] == nil {
				t.Errorf("%s: the slice is not restored", tc.reason)
			}
		})
	}
}

// TestForeignSlice has another client delete slice a and create one with its name. States are written
// to it only if it belongs to the composition.
func TestForeignSlice(t *testing.T) {
	cases := map[string]struct {
		reason  string
		replace func(*sliceServer, *enov1.ResourceSlice)
		foreign bool
		again   bool // it belongs to the composition later
	}{
		"Same":    {reason: "A backup was restored.", replace: func(_ *sliceServer, s *enov1.ResourceSlice) { s.UID = "other" }},
		"Owner":   {reason: "It has no owner.", replace: func(_ *sliceServer, s *enov1.ResourceSlice) { s.OwnerReferences = nil }, foreign: true},
		"Adopted": {reason: "It has its owner again.", replace: func(_ *sliceServer, s *enov1.ResourceSlice) { s.OwnerReferences = nil }, foreign: true, again: true},
		"Spec": {reason: "It has other manifests.", replace: func(_ *sliceServer, s *enov1.ResourceSlice) {
			s.Spec.Resources = []enov1.Manifest{{Manifest: exampleManifest}}
		}, foreign: true},
		"Stale": {reason: "The cache does not have its digest yet.", replace: func(server *sliceServer, s *enov1.ResourceSlice) {
			s.Spec.Resources[0].Manifest += " "
			server.composition.Status.CurrentSynthesis.ResourceSlices[0].Digest = tenancy.Digest(&s.Spec)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newSliceServer()
			d, v := server.deliverer(t)
			cached := server.composition.DeepCopy()
			tc.replace(server, server.slices["a"])
			server.slices["a"].Status.Resources = nil // it must be written again
			s := v.Slices["a"]
			s.Events.SawDeletion()
			d.CheckSlices(t.Context(), v, cached)
			d.Status.Set(v, v.Items[0], enov1.ResourceState{Reconciled: true})
			s.RestUntil = time.Time{}
			d.Status.Flush(t.Context())
			if got := len(server.written) == 0; got != tc.foreign {
				t.Fatalf("%s: states are written to %v", tc.reason, server.written)
			}
			if !tc.foreign {
				return
			}
			if err := d.Status.Persist(t.Context(), v, v.Items[0], enov1.ResourceState{}); err == nil {
				t.Error("a state counts as written")
			}
			if tc.again {
				s.Initialized = false // and no state was written before
				server.slices["a"].OwnerReferences = server.slices["b"].OwnerReferences
				d.CheckSlices(t.Context(), v, cached)
				s.RestUntil = time.Time{}
				d.Status.Flush(t.Context())
				if len(server.written) == 0 {
					t.Errorf("%s: the states are not written", tc.reason)
				}

				return
			}
			delete(server.slices, "a")
			d.CheckSlices(t.Context(), v, cached)
			if server.slices["a"] == nil || len(server.written) == 0 {
				t.Errorf("%s: the slice is not restored with its states once its name is free", tc.reason)
			}
		})
	}
}

// TestDeletionBeforeFirstWrite has slice a deleted before a state was written to it: the first write
// finds no slice, so its state is written when the slice exists again.
func TestDeletionBeforeFirstWrite(t *testing.T) {
	cases := map[string]struct {
		reason string
		backup bool
	}{
		"Restored": {reason: "Delivery restores the slice."},
		"Backup":   {reason: "Another client restores the slice.", backup: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := newSliceServer()
			a := server.slices["a"]
			a.Status.Resources = nil
			d, v := server.deliverer(t)
			delete(server.slices, "a")
			state, changed, _ := v.Settle(v.Items[0], enov1.ResourceState{Reconciled: true, UID: "7"})
			if !changed {
				t.Fatal("there is no state to be written")
			}
			d.Status.Set(v, v.Items[0], state)
			v.Slices["a"].RestUntil = time.Time{}.Add(time.Second)
			d.Status.Flush(t.Context())
			if len(server.written) > 0 || d.Status.Depth() > 0 {
				t.Fatalf("the first write finds a slice: %v", server.written)
			}
			if tc.backup {
				server.slices["a"] = a
			}
			v.Slices["a"].Events.SawDeletion()
			d.CheckSlices(t.Context(), v, server.composition.DeepCopy())
			d.Status.Flush(t.Context())
			if diff := cmp.Diff([]string{"a"}, server.written); diff != "" {
				t.Errorf("%s The state is not written: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
