package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/identity"
)

// deliveryVerbs are what delivery does with an object.
var deliveryVerbs = []string{"get", "create", "patch", "delete"}

// A scopeDoctor finds out what --delivery-scope=namespace would change.
type scopeDoctor struct {
	client.Client

	list   source.Lister
	mapper meta.RESTMapper
	// allowed are the answers so far.
	allowed map[scopeQuestion]bool
}

// A scopeQuestion is whether a user may do something.
type scopeQuestion struct {
	account                          tenancy.Account
	verb, group, resource, namespace string
}

// gatherScope reads Compositions and their manifests, and asks what their accounts may do.
func gatherScope(ctx context.Context, flags *genericclioptions.ConfigFlags, manager *appsv1.Deployment, account string) (f health.ScopeFacts) {
	d, err := newScopeDoctor(flags)
	if err != nil {
		f.Compositions.Err = err

		return f
	}

	f.Compositions.Is, f.Compositions.Err = d.compositions(ctx, cmp.Or(account, health.Flag(manager, "default-service-account", "")))
	f.Closed.Is, f.Closed.Err = d.closed(ctx, manager, f.Compositions.Is)

	return f
}

func newScopeDoctor(flags *genericclioptions.ConfigFlags) (*scopeDoctor, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find a cluster: %w", err)
	}

	config.QPS = -1 // one review after the other

	mapper, err := flags.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	list, err := source.Connect(flags, io.Discard)
	if err != nil {
		return nil, err
	}

	return &scopeDoctor{Client: c, list: list, mapper: mapper, allowed: map[scopeQuestion]bool{}}, nil
}

func (d *scopeDoctor) compositions(ctx context.Context, byDefault string) ([]health.Delivered, error) {
	found, err := d.list(ctx, source.Query{Resource: enov1.GroupVersion.WithResource("compositions")})
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
func (d *scopeDoctor) manifests(ctx context.Context, c *enov1.Composition) ([]identity.Head, error) {
	if c.Status.CurrentSynthesis == nil {
		return nil, nil
	}

	var all []identity.Head

	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		found, err := d.list(ctx, source.Query{Resource: source.SliceResource, Namespace: c.Namespace, Name: ref.Name})
		if err != nil {
			return nil, err
		}

		for _, obj := range found {
			s := &enov1.ResourceSlice{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, s); err != nil {
				return nil, fmt.Errorf("cannot read ResourceSlice %s/%s: %w", c.Namespace, ref.Name, err)
			}

			for _, m := range s.Spec.Resources {
				h := identity.Head{}
				if !m.Deleted && json.Unmarshal([]byte(m.Manifest), &h) == nil {
					all = append(all, h)
				}
			}
		}
	}

	return all, nil
}

// resolve returns which object a manifest is about, and the resource of its kind, which is empty
// if the cluster does not serve it.
func (d *scopeDoctor) resolve(h identity.Head) (identity.Identity, string) {
	id := h.Identity()
	id.Patch = 0

	mapping, err := d.mapper.RESTMapping(schema.GroupKind{Group: id.Group, Kind: id.Kind})
	if err != nil {
		return id, ""
	}

	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		id.Namespace = ""
	}

	return id, mapping.Resource.Resource
}

// lacking adds the permissions that an account needs for an object and does not have.
func (d *scopeDoctor) lacking(ctx context.Context, a tenancy.Account, id identity.Identity, resource string, into map[string]bool) error {
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
			into[wordsOf(authorizationv1.ResourceAttributes{Verb: verb, Group: id.Group, Resource: resource, Namespace: id.Namespace})] = true
		}
	}

	return nil
}

// ask asks the API server once.
func (d *scopeDoctor) ask(ctx context.Context, q scopeQuestion) (bool, error) {
	if answer, ok := d.allowed[q]; ok {
		return answer, nil
	}

	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.account.Username(), Groups: q.account.Groups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: q.verb, Group: q.group, Resource: q.resource, Namespace: q.namespace},
	}}
	if err := d.Create(ctx, review); err != nil {
		return false, source.ShortError(err)
	}

	d.allowed[q] = review.Status.Allowed

	return review.Status.Allowed, nil
}

// closed are the namespaces of Compositions in which the manager may not impersonate. Nothing
// is known of a manager that runs elsewhere.
func (d *scopeDoctor) closed(ctx context.Context, manager *appsv1.Deployment, compositions []health.Delivered) ([]string, error) {
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
