package apply

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// rigid is a client of a cluster with one object, whose fields are all immutable. It notes
// what is deleted, and keeps it.
type rigid struct {
	client.Client

	managers []string
	deleted  []types.UID
}

func (*rigid) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (r *rigid) Get(_ context.Context, at client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetNamespace(at.Namespace)
	o.SetName(at.Name)
	o.SetUID("present")
	var all []metav1.ManagedFieldsEntry
	for _, name := range r.managers {
		all = append(all, metav1.ManagedFieldsEntry{Manager: name, Operation: metav1.ManagedFieldsOperationApply})
	}
	o.SetManagedFields(all)

	return nil
}

func (*rigid) reject() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Invalid(field.NewPath("data"), "x", "field is immutable")})
}

func (r *rigid) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return r.reject()
}

func (r *rigid) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return r.reject()
}

func (*rigid) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, o.GetName())
}

func (r *rigid) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	r.deleted = append(r.deleted, o.GetUID())

	return nil
}

func (*rigid) Status() client.SubResourceWriter { return silent{} }

// silent accepts every status.
type silent struct{ client.SubResourceWriter }

func (silent) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

const (
	manifestOfA = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"a":"b"}}`
	patchOfA    = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a","namespace":"n"},"patch":{"apiVersion":"v1","kind":"ConfigMap","ops":[{"op":"add","path":"/data/a","value":"b"}]}}`
)

// replacing is a composition whose objects are replaced if they must be, and its slices.
func replacing(manifest string) (*enov1.Composition, []enov1.ResourceSlice) {
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "c", UID: "1", Annotations: map[string]string{enov1.AnnotationReplaceOnConflict: "true"},
	}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "s"}}}

	return c, []enov1.ResourceSlice{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"},
		Spec:       enov1.ResourceSliceSpec{Resources: []enov1.Manifest{{Manifest: manifest}}},
		Status:     enov1.ResourceSliceStatus{Resources: make([]enov1.ResourceState, 1)},
	}}
}

// TestReplacement has a change rejected because a field is immutable. Only an object that
// no other client has a claim to is deleted.
func TestReplacement(t *testing.T) {
	cases := map[string]struct {
		reason   string
		manifest string
		managers []string
		others   func(*testWorker)
		want     []types.UID
		text     string // of the error, "" for none: a deletion may take a minute
	}{
		"Own":   {reason: "It is delivered by this composition only.", manifest: manifestOfA, managers: []string{decide.Manager}, want: []types.UID{"present"}},
		"Patch": {reason: "The target of a Patch is created by others.", manifest: patchOfA, managers: []string{decide.Manager}, text: "immutable"},
		"Plane": {reason: "Another control plane delivers it, too.", manifest: manifestOfA, managers: []string{decide.Manager, "eno-edge"}, text: "eno-edge"},
		"Shared": {reason: "Another composition wants it.", manifest: manifestOfA, managers: []string{decide.Manager}, others: func(d *testWorker) {
			c, slices := replacing(manifestOfA)
			c.Name = "b"
			d.swap(client.ObjectKeyFromObject(c), d.NewView(c, slices))
		}, text: "composition n/b wants, too"},
		"Broken": {reason: "One that cannot be read any more wants it.", manifest: manifestOfA, managers: []string{decide.Manager}, others: func(d *testWorker) {
			wants := []decide.Identity{{Kind: "ConfigMap", Namespace: "n", Name: "a"}}
			d.MarkUnreadable(types.NamespacedName{Namespace: "n", Name: "d"}, "", wants)
		}, text: "composition n/d wants, too"},
		"Own broken": {reason: "It is its own composition that could not be read.", manifest: manifestOfA, managers: []string{decide.Manager}, others: func(d *testWorker) {
			wants := []decide.Identity{{Kind: "ConfigMap", Namespace: "n", Name: "a"}}
			d.MarkUnreadable(types.NamespacedName{Namespace: "n", Name: "c"}, "", wants)
		}, want: []types.UID{"present"}},
		"Unread": {reason: "One that was not read yet may want it.", manifest: manifestOfA, managers: []string{decide.Manager}, others: func(d *testWorker) {
			c, _ := replacing(manifestOfA)
			c.Name = "b"
			d.Client = &compositionLister{items: []enov1.Composition{*c}, meanwhile: func() {}}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remote := &rigid{managers: tc.managers}
			d := idleWorker()
			d.Remote, d.Status.Client, d.Migration = remote, remote, decide.MigrationOff
			d.Client = &compositionLister{meanwhile: func() {}}
			v := d.NewView(replacing(tc.manifest))
			d.swap(v.Name, v)
			if tc.others != nil {
				tc.others(d)
			}
			if err := d.AwaitOthers(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			v.Start()
			it := v.Items[0]
			it.ReplaceOnConflict = true // whatever was read
			_, err := d.deliver(t.Context(), queue.Key{Composition: v.Name, Object: it.Identity}, v, it)
			if !slices.Equal(remote.deleted, tc.want) {
				t.Errorf("%s\ndeleted: %v, want %v", tc.reason, remote.deleted, tc.want)
			}
			s, text := v.StateOf(it), ""
			if s.ReconciliationError != nil {
				text = *s.ReconciliationError
			}
			if s.Reconciled || !strings.Contains(text, tc.text) || tc.text == "" && text != "" {
				t.Errorf("%s\nthe state does not say %q: %+v, %v", tc.reason, tc.text, s, err)
			}
		})
	}
}

// TestReportAfterReplacement has --drift=report. What was deleted to be created again is
// created, whichever process does that.
func TestReportAfterReplacement(t *testing.T) {
	text, now := "the object is being deleted", metav1.Now()
	cases := map[string]struct {
		reason  string
		state   enov1.ResourceState
		applied bool
		want    bool
	}{
		"Delivered":   {reason: "An earlier process has delivered it.", state: enov1.ResourceState{Reconciled: true, Ready: &now, UID: "a"}, want: true},
		"Here":        {reason: "This process has delivered it.", applied: true, want: true},
		"New":         {reason: "It was not delivered yet.", state: enov1.ResourceState{}},
		"Unready":     {reason: "It may not have been delivered in this synthesis.", state: enov1.ResourceState{Reconciled: true, UID: "a"}},
		"Replacing":   {reason: "It is being deleted.", state: enov1.ResourceState{Ready: &now, UID: "a", Replaced: "a", ReconciliationError: &text}},
		"Other":       {reason: "It is being deleted, and is not the object that was delivered last.", state: enov1.ResourceState{Ready: &now, UID: "a", Replaced: "b", ReconciliationError: &text}},
		"Pending":     {reason: "It was not created again.", state: enov1.ResourceState{Reconciled: true, Ready: &now, UID: "a", Replaced: "a"}},
		"Replaced":    {reason: "It was created again.", state: enov1.ResourceState{Reconciled: true, Ready: &now, UID: "b", Replaced: "a"}, want: true},
		"Failed":      {reason: "It could not be applied after it was ready.", state: enov1.ResourceState{Ready: &now, UID: "a", ReconciliationError: &text}},
		"Passed over": {reason: "Errors that are passed over are errors.", state: enov1.ResourceState{Reconciled: true, Ready: &now, UID: "a", ReconciliationError: &text}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := idleWorker()
			d.Drift = decide.DriftReport
			c, slices := replacing(manifestOfA)
			slices[0].Status.Resources[0] = tc.state
			v := d.NewView(c, slices)
			it := v.Items[0].Unpacked()
			if tc.applied {
				it.Memory.Applied, it.Memory.Desired = v.SliceNames, it.Desired()
			}
			if got := d.reportOnly(v, it); got != tc.want {
				t.Errorf("%s\nreportOnly(...): %t", tc.reason, got)
			}
		})
	}
}

// TestReplacedHere has --drift=report, and an object that is deleted by this process after
// it was delivered: overrides want something else for a moment.
func TestReplacedHere(t *testing.T) {
	remote := &rigid{managers: []string{decide.Manager}}
	d := idleWorker()
	d.Remote, d.Status.Client, d.Drift = remote, remote, decide.DriftReport
	v := d.NewView(replacing(manifestOfA))
	it := v.Items[0].Unpacked()
	it.Memory.Applied, it.Memory.Desired = v.SliceNames, it.Desired()
	if _, err := d.deleteToRecreate(t.Context(), queue.Key{Composition: v.Name, Object: it.Identity}, v, it, remote.reject()); err != nil || len(remote.deleted) != 1 {
		t.Fatalf("deleted: %v, %v", remote.deleted, err)
	}
	if d.reportOnly(v, it) {
		t.Error("it is not created again")
	}
}
