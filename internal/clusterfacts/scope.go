package clusterfacts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/kube"
)

// deliveryVerbs are what delivery does with an object.
var deliveryVerbs = []string{"get", "create", "patch", "delete"}

// A scopeReader finds out what --delivery-scope=namespace would change.
type scopeReader struct {
	*Reader

	// allowed are the answers so far.
	allowed map[scopeQuestion]bool
}

// A scopeQuestion is whether a user may do something.
type scopeQuestion struct {
	account                          tenancy.Account
	verb, group, resource, namespace string
}

// ScopeFacts reads Compositions and their manifests, and asks what their accounts may do.
func (d *Reader) ScopeFacts(ctx context.Context, manager *appsv1.Deployment, account string) (f health.ScopeFacts) {
	r := &scopeReader{Reader: d, allowed: map[scopeQuestion]bool{}}
	f.Compositions.Is, f.Compositions.Err = r.compositions(ctx, cmp.Or(account, health.Flag(manager, "default-service-account", "")))
	f.Closed.Is, f.Closed.Err = r.closed(ctx, manager, f.Compositions.Is)

	return f
}

func (d *scopeReader) compositions(ctx context.Context, byDefault string) ([]health.Delivered, error) {
	found, _, err := d.objects(ctx, enov1.GroupVersion.WithKind(enov1.CompositionKind))
	if err != nil {
		return nil, err
	}

	var all []health.Delivered

	for _, obj := range found {
		c := &enov1.Composition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, c); err != nil {
			return nil, fmt.Errorf("cannot read a Composition: %w", err)
		}

		account := tenancy.Namespace.AccountOf(c, byDefault)
		one := health.Delivered{Namespace: c.Namespace, Name: c.Name, Account: account.Name}

		heads, err := d.manifests(ctx, c)
		if err != nil {
			return nil, err
		}

		lacking := map[string]bool{}

		for _, h := range heads {
			id, resource := d.resolve(h)
			one.Objects = append(one.Objects, id)

			if err := d.lacking(ctx, account, id, resource, lacking); err != nil {
				return nil, err
			}
		}

		one.Lacking = slices.Sorted(maps.Keys(lacking))
		all = append(all, one)
	}

	return all, nil
}

// manifests are the identifying parts of those of the current synthesis.
func (d *scopeReader) manifests(ctx context.Context, c *enov1.Composition) ([]identity.Head, error) {
	if c.Status.CurrentSynthesis == nil {
		return nil, nil
	}

	var all []identity.Head

	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))

		err := d.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, u)
		if apierrors.IsNotFound(err) {
			continue
		}

		s := &enov1.ResourceSlice{}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s)
		}

		if err != nil {
			return nil, fmt.Errorf("cannot read ResourceSlice %s/%s: %w", c.Namespace, ref.Name, kube.ShortError(err))
		}

		for _, m := range s.Spec.Resources {
			h := identity.Head{}
			if !m.Deleted && json.Unmarshal([]byte(m.Manifest), &h) == nil {
				all = append(all, h)
			}
		}
	}

	return all, nil
}

// resolve returns which object a manifest is about, and the resource of its kind, which is empty
// if the cluster does not serve it.
func (d *scopeReader) resolve(h identity.Head) (identity.Identity, string) {
	id := h.Identity()
	id.Patch = 0

	mapping, err := d.RESTMapper().RESTMapping(schema.GroupKind{Group: id.Group, Kind: id.Kind})
	if err != nil {
		return id, ""
	}

	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		id.Namespace = ""
	}

	return id, mapping.Resource.Resource
}

// lacking adds the permissions that an account needs for an object and does not have.
func (d *scopeReader) lacking(ctx context.Context, a tenancy.Account, id identity.Identity, resource string, into map[string]bool) error {
	if a == (tenancy.Account{}) || resource == "" {
		return nil
	}

	for _, verb := range deliveryVerbs {
		q := scopeQuestion{a, verb, id.Group, resource, id.Namespace}

		allowed, err := d.ask(ctx, q)
		if err != nil {
			return err
		}

		if !allowed {
			into[permissionText(authorizationv1.ResourceAttributes{Verb: verb, Group: id.Group, Resource: resource, Namespace: id.Namespace})] = true
		}
	}

	return nil
}

// ask asks the API server once.
func (d *scopeReader) ask(ctx context.Context, q scopeQuestion) (bool, error) {
	if answer, ok := d.allowed[q]; ok {
		return answer, nil
	}

	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.account.Username(), Groups: q.account.Groups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: q.verb, Group: q.group, Resource: q.resource, Namespace: q.namespace},
	}}
	if err := d.Create(ctx, review); err != nil {
		return false, kube.ShortError(err)
	}

	d.allowed[q] = review.Status.Allowed

	return review.Status.Allowed, nil
}

// closed are the namespaces of Compositions in which the manager may not impersonate. Nothing
// is known of a manager that runs elsewhere.
func (d *scopeReader) closed(ctx context.Context, manager *appsv1.Deployment, compositions []health.Delivered) ([]string, error) {
	if manager == nil {
		return nil, nil
	}

	account := tenancy.Account{Namespace: manager.Namespace, Name: cmp.Or(manager.Spec.Template.Spec.ServiceAccountName, "default")}

	var all []string

	for _, c := range compositions {
		allowed, err := d.ask(ctx, scopeQuestion{account, "impersonate", "", "serviceaccounts", c.Namespace})
		if err != nil {
			return nil, err
		}

		if !allowed && !slices.Contains(all, c.Namespace) {
			all = append(all, c.Namespace)
		}
	}

	return all, nil
}
