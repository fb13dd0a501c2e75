package clusterfacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/internal/kube"
)

// waiting are the kinds that users wait for, and the condition that they wait for.
var waiting = []struct {
	kind      schema.GroupVersionKind
	condition string
}{
	{v2alpha2.GroupVersion.WithKind(v2alpha2.PodGroupKind), string(v2alpha2.PodGroupValid)},
	{v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetClaimKind), v1alpha1.ConditionReady},
	{v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolClaimKind), v1alpha1.ConditionReady},
	{enov1.GroupVersion.WithKind(enov1.CompositionKind), enov1.ConditionReady},
}

// A Release is what this build of Arbor can run.
type Release struct {
	Parts func() ([]health.Part, error)
	// Answers tries each webhook of parts with an object that it must reject, as a
	// dry run, and returns the errors, "" if it rejected.
	Answers func(ctx context.Context, config *rest.Config, parts []string) (map[string]string, error)
}

// A Reader reads a cluster.
type Reader struct {
	client.Client

	config *rest.Config
	apis   discovery.DiscoveryInterface
}

// Connect returns a Reader of the cluster that a user has chosen.
func Connect(from genericclioptions.RESTClientGetter) (*Reader, error) {
	config, err := from.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find a cluster: %w", err)
	}

	config.QPS = -1 // one request after the other

	apis, err := from.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("cannot register types: %w", err)
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	return &Reader{Client: c, config: config, apis: apis}, nil
}

// Facts reads everything once. An error means that the cluster does not answer; all other errors are
// among the facts.
func (d *Reader) Facts(ctx context.Context, release Release, namespace string) (health.Facts, error) {
	f := health.Facts{Namespace: namespace}

	var err error
	if f.Parts, err = release.Parts(); err != nil {
		return f, err
	}

	if f.Server.Is, err = d.serverVersion(); err != nil {
		return f, err
	}

	f.Definitions = d.definitions(ctx)
	f.Deployment = d.deployment(ctx, namespace, componentManager)
	f.Lease = one[coordinationv1.Lease](ctx, d, namespace, health.Flag(f.Deployment.Is, "leader-election-id", names.Lease))
	f.Webhooks = one[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, d, "", health.Flag(f.Deployment.Is, "webhook-configuration", names.Arbor))
	f.Secret = one[corev1.Secret](ctx, d, namespace, names.WebhookSecret)
	f.Scheduler = d.scheduler(ctx, namespace)
	f.Backlog = d.backlog(ctx)
	running := f.Running()
	f.Lacking = d.lacking(ctx, f.Deployment.Is, running)

	var parts []string
	for _, p := range running {
		parts = append(parts, p.Name)
	}

	f.Answers.Is, f.Answers.Err = release.Answers(ctx, d.config, parts)

	return f, nil
}

func (d *Reader) serverVersion() (*version.Version, error) {
	info, err := d.apis.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("cannot ask the cluster for its version: %w", kube.ShortError(err))
	}

	v, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("cannot read the version of the cluster, %q: %w", info.GitVersion, err)
	}

	return v, nil
}

// objects lists all objects of a kind, page by page. served is false if the cluster does not have the kind.
func (d *Reader) objects(ctx context.Context, kind schema.GroupVersionKind) (all []map[string]any, served bool, err error) {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))

		return page, d.List(ctx, page, &client.ListOptions{Limit: o.Limit, Continue: o.Continue})
	})

	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if u, ok := o.(*unstructured.Unstructured); ok {
			all = append(all, u.Object)
		}

		return nil
	})

	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, false, nil
	}

	if err != nil {
		plural, _ := meta.UnsafeGuessKindToResource(kind)

		return nil, true, fmt.Errorf("cannot list %s: %w", plural.GroupResource(), kube.ShortError(err))
	}

	return all, true, nil
}

// one is an object, nil if there is none.
func one[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c client.Reader, namespace, name string,
) health.Found[P] {
	o := P(new(T))

	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return health.Found[P]{}
	}

	if err != nil {
		return health.Found[P]{Err: kube.ShortError(err)}
	}

	return health.Found[P]{Is: o}
}

func (d *Reader) definitions(ctx context.Context) (f health.Found[map[string]*apiextensionsv1.CustomResourceDefinition]) {
	all := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := d.List(ctx, all); err != nil {
		f.Err = kube.ShortError(err)

		return f
	}

	f.Is = map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range all.Items {
		f.Is[all.Items[i].Name] = &all.Items[i]
	}

	return f
}

// Components, as the chart and the kustomize base label their pods.
const (
	componentManager   = "manager"
	componentScheduler = "scheduler"
)

// deployment is that of a component. Pods without the label are the manager's.
func (d *Reader) deployment(ctx context.Context, namespace, component string) (f health.Found[*appsv1.Deployment]) {
	all := &appsv1.DeploymentList{}
	if err := d.List(ctx, all, client.InNamespace(namespace), client.MatchingLabels{names.NameLabel: names.Arbor}); err != nil {
		f.Err = kube.ShortError(err)

		return f
	}

	for i := range all.Items {
		if cmp.Or(all.Items[i].Spec.Template.Labels[names.ComponentLabel], componentManager) == component {
			f.Is = &all.Items[i]

			break
		}
	}

	return f
}

func (d *Reader) backlog(ctx context.Context) []health.Backlog {
	var all []health.Backlog

	for _, w := range waiting {
		objects, served, err := d.objects(ctx, w.kind)
		if !served {
			continue
		}

		b := health.Waits(w.kind.Kind, w.condition, objects)
		b.Err = err
		all = append(all, b)
	}

	return all
}

// lacking are permissions that the manager's service account does not have.
func (d *Reader) lacking(ctx context.Context, manager *appsv1.Deployment, parts []health.Part) (f health.Found[[]string]) {
	if manager == nil {
		return f
	}

	account := manager.Spec.Template.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}

	needed := []authorizationv1.ResourceAttributes{
		{Verb: "update", Group: coordinationv1.GroupName, Resource: "leases", Namespace: manager.Namespace, Name: health.Flag(manager, "leader-election-id", names.Lease)},
		{Verb: "create", Group: "events.k8s.io", Resource: "events"},
	}
	for _, p := range parts {
		for _, crd := range p.Definitions {
			for _, verb := range []string{"list", "watch"} {
				needed = append(needed, authorizationv1.ResourceAttributes{Verb: verb, Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
			}
		}
	}

	for _, n := range needed {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + manager.Namespace + ":" + account,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + manager.Namespace, "system:authenticated"}, ResourceAttributes: &n,
		}}
		if err := d.Create(ctx, review); err != nil {
			f.Err = kube.ShortError(err)

			return f
		}

		if text := permissionText(n); !review.Status.Allowed && !slices.Contains(f.Is, text) {
			f.Is = append(f.Is, text)
		}
	}

	return f
}

// permissionText is a permission as kubectl auth can-i has it.
func permissionText(r authorizationv1.ResourceAttributes) string {
	text := r.Verb + " " + strings.TrimSuffix(r.Resource+"."+r.Group, ".")
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}

	return text
}
