package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// tenantOf is a composition of a namespace that is delivered as the account deployer, with a
// ConfigMap of namespace a, or the tombstone of one.
func tenantOf(namespace string, deleted bool) (*enov1.Composition, []enov1.ResourceSlice) {
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c", UID: types.UID(namespace), ResourceVersion: "5"}, Spec: enov1.CompositionSpec{ServiceAccountName: "deployer"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "1", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "s"}}}

	return c, []enov1.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
		{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}`, Deleted: deleted},
	}}}}
}

// TestClaimsOfTenants has a composition of another namespace want an object, and one that was
// not read yet.
func TestClaimsOfTenants(t *testing.T) {
	cases := map[string]struct {
		reason string
		scope  tenancy.Scope
		other  string
		waits  bool
	}{
		"Cluster":   {"All compositions share their objects.", tenancy.Cluster, "b", true},
		"Namespace": {"A tenant does not keep objects of another one.", tenancy.Namespace, "b", false},
		"Same":      {"Compositions of a tenant share their objects.", tenancy.Namespace, "a", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := idleWorker()
			d.Scope = tc.scope
			other, slices := tenantOf(tc.other, false)
			other.Name = "other"
			d.Client = &compositionLister{items: []enov1.Composition{*other}, meanwhile: func() {}}
			own, gone := tenantOf("a", true)
			v := d.NewView(own, gone)
			if err := d.AwaitOthers(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			d.swap(v.Name, v)
			if got := d.Unread(v) != ""; got != tc.waits {
				t.Errorf("%s\nthe deletion waits for the other composition: %t", tc.reason, got)
			}
			d.swap(client.ObjectKeyFromObject(other), d.NewView(other, slices))
			id := decide.Identity{Kind: "ConfigMap", Namespace: "a", Name: "x"}
			if got := d.IsWanted(v.Name, id); got != tc.waits {
				t.Errorf("%s\nthe object is taken: %t", tc.reason, got)
			}
			if got := d.OtherOwner(v.Name, id) != ""; got != tc.waits {
				t.Errorf("%s\nthe object is shared: %t", tc.reason, got)
			}
			d.swap(client.ObjectKeyFromObject(other), nil)
			if len(d.Wanted) > 0 {
				t.Errorf("%s\nclaims are left: %v", tc.reason, d.Wanted)
			}
		})
	}
}

// TestDenied has requests fail because the account has no permission.
func TestDenied(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New(`User "system:serviceaccount:b:deployer" cannot patch resource "configmaps" in API group "" in the namespace "a"`))
	cases := map[string]struct {
		reason  string
		scope   tenancy.Scope
		deleted bool
		err     error
		want    string // the reason of the condition
		gone    bool   // it is settled as deleted
	}{
		"Apply":     {reason: "It is reported.", scope: tenancy.Namespace, err: denied, want: enov1.ReasonOutOfScope},
		"Cluster":   {reason: "The manager's own permissions are another matter.", scope: tenancy.Cluster, err: denied},
		"Other":     {reason: "Other errors are reported as always.", scope: tenancy.Namespace, err: errors.New("no")},
		"Unwritten": {reason: "What was never written is not waited for.", scope: tenancy.Namespace, deleted: true, err: denied, gone: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := idleWorker()
			d.Scope = tc.scope
			c, slices := tenantOf("b", tc.deleted)
			v := d.NewView(c, slices)
			d.swap(v.Name, v)
			it := v.Items[0].Unpacked()
			_, err := d.handleError(t.Context(), queue.Key{Composition: v.Name, Object: it.Identity}, v, it, nil, tc.err)
			if (err == nil) != tc.gone || v.StateOf(it).Deleted != tc.gone {
				t.Errorf("%s\nthe error is %v, the state %+v", tc.reason, err, v.StateOf(it))
			}
			if got := v.DeniedCondition().Reason; got != tc.want {
				t.Errorf("%s\nthe reason is %q, want %q", tc.reason, got, tc.want)
			}
			d.allow(v, it)
			if got := v.DeniedCondition(); tc.scope.Restricts() && got.Reason != "" {
				t.Errorf("%s\nit works now, and the condition is %+v", tc.reason, got)
			}
		})
	}
}

// absent is a reader of a cluster without objects.
type absent struct{ client.Reader }

func (absent) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// ending is a reader of a cluster whose namespaces are being deleted since then.
type ending struct {
	client.Reader

	since time.Time
}

func (e ending) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetDeletionTimestamp(new(metav1.NewTime(e.since)))

	return nil
}

// TestLeavesAfterGrace has a composition be deleted that holds up its namespace.
func TestLeavesAfterGrace(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	cases := map[string]struct {
		reason                 string
		composition, namespace time.Duration // for how long they have been deleted
		want                   bool
	}{
		"Both":      {reason: "The grace is over.", composition: time.Hour, namespace: time.Hour, want: true},
		"Namespace": {reason: "The composition was deleted long before the namespace.", composition: 5 * time.Hour, namespace: time.Minute},
		"Late":      {reason: "The namespace controller deletes compositions later.", composition: time.Minute, namespace: 5 * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := idleWorker()
			d.Now = func() time.Time { return now }
			d.Scope, d.Reader, d.ForbiddenGrace = tenancy.Namespace, ending{since: now.Add(-tc.namespace)}, time.Hour
			c, slices := tenantOf("a", false)
			c.DeletionTimestamp = new(metav1.NewTime(now.Add(-tc.composition)))
			slices[0].Spec.Resources[0].Manifest = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}`
			slices[0].Status.Resources = []enov1.ResourceState{{UID: "u"}}
			v := d.NewView(c, slices)
			if got := d.leaveBehind(t.Context(), v, v.Items[0].Unpacked()); got != tc.want {
				t.Errorf("%s\nit is left: %t", tc.reason, got)
			}
		})
	}
}

// TestLeaves has a composition be deleted whose account may not delete a cluster-scoped object.
func TestLeaves(t *testing.T) {
	ready := metav1.Now()
	cases := map[string]struct {
		reason     string
		own, whole string // the strategies of the manifest and of the composition
		state      enov1.ResourceState
		patch      string // the operations of a Patch
		want       bool
	}{
		"Waits":     {reason: "It waits for the permission.", state: enov1.ResourceState{UID: "u"}},
		"Orphan":    {reason: "The user leaves the objects behind, also those whose manifests have a strategy.", own: "foreground", whole: "orphan", state: enov1.ResourceState{UID: "u"}, want: true},
		"Manifest":  {reason: "Without the annotation, the strategy of the manifest waits.", own: "foreground", state: enov1.ResourceState{UID: "u"}},
		"Patch":     {reason: "A Patch that deletes its target waits, too.", patch: `{"op":"add","path":"/metadata/deletionTimestamp","value":"2020-01-01T00:00:00Z"}`},
		"Label":     {reason: "Another Patch does nothing then.", patch: `{"op":"add","path":"/metadata/labels/a","value":"b"}`, want: true},
		"Unwritten": {reason: "It was never written.", state: enov1.ResourceState{ReconciliationError: new("forbidden")}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := idleWorker()
			d.Scope, d.Reader, d.ForbiddenGrace = tenancy.Namespace, absent{}, time.Hour
			c, slices := tenantOf("a", false)
			c.DeletionTimestamp = &ready
			c.Annotations = map[string]string{enov1.AnnotationDeletionStrategy: tc.whole}
			slices[0].Spec.Resources[0].Manifest = fmt.Sprintf(
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","annotations":{"eno.azure.io/deletion-strategy":%q}}}`, tc.own)
			if tc.patch != "" {
				slices[0].Spec.Resources[0].Manifest = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"x"},"patch":{"apiVersion":"v1","kind":"Namespace","ops":[` + tc.patch + `]}}`
			}
			slices[0].Status.Resources = []enov1.ResourceState{tc.state}
			v := d.NewView(c, slices)
			if !v.Deleting {
				t.Fatal("the composition is not being deleted")
			}
			if got := d.leaveBehind(t.Context(), v, v.Items[0].Unpacked()); got != tc.want {
				t.Errorf("%s\nit is left: %t", tc.reason, got)
			}
		})
	}
}

// TestDenialsOfViews has a view replaced by one with the same account, and with another one.
func TestDenialsOfViews(t *testing.T) {
	d := idleWorker()
	d.Scope = tenancy.Namespace
	c, slices := tenantOf("a", false)
	first := d.NewView(c, slices)
	first.Denials.Note(first.Items[0].Identity, tenancy.Denial{Reason: enov1.ReasonDeletionForbidden, Message: "m"})
	first.Denials.Note(decide.Identity{Name: "dropped"}, tenancy.Denial{Reason: enov1.ReasonNoServiceAccount, Message: "m"})
	second := d.NewView(c, slices)
	second.InheritFrom(first)
	if got := second.DeniedCondition(); got.Reason != enov1.ReasonDeletionForbidden || got.Message != "m" {
		t.Errorf("with the same account it is %+v", got)
	}
	d.swap(second.Name, second)
	if got := d.CountForbidden(); got != 1 {
		t.Errorf("%d compositions may not delete", got)
	}
	c.Spec.ServiceAccountName = "other"
	if second.IsOf(d.VersionOf(c)) {
		t.Error("the view is used with another account")
	}
	third := d.NewView(c, slices)
	third.InheritFrom(second)
	if got := third.DeniedCondition(); got.Reason != "" {
		t.Errorf("with another account it is %+v", got)
	}
}
