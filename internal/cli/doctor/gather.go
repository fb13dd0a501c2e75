package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/health"
)

// waiting are the kinds that people wait for, and the condition that they wait
// to become true.
var waiting = []struct {
	source.Query

	kind, condition string
}{
	{source.Query{Resource: v2alpha2.GroupVersion.WithResource("podgroups")}, v2alpha2.PodGroupKind, string(v2alpha2.PodGroupValid)},
	{source.Query{Resource: v1alpha1.GroupVersion.WithResource("subnetclaims")}, v1alpha1.SubnetClaimKind, v1alpha1.ConditionReady},
	{source.Query{Resource: v1alpha1.GroupVersion.WithResource("subnetpoolclaims")}, v1alpha1.SubnetPoolClaimKind, v1alpha1.ConditionReady},
	{source.Query{Resource: enov1.GroupVersion.WithResource("compositions")}, enov1.CompositionKind, enov1.ConditionReady},
}

// A doctor looks at a cluster.
type doctor struct {
	client.Client

	namespace string
	list      source.Lister
}

// gatherFacts looks at everything once. An error means that there is no cluster
// to look at; what else goes wrong is one of the facts.
func gatherFacts(ctx context.Context, flags *genericclioptions.ConfigFlags, release Release, namespace string) (health.Facts, error) {
	f := health.Facts{Namespace: namespace}

	parts, err := release.Parts()
	if err != nil {
		return f, err
	}

	f.Parts = parts

	config, err := flags.ToRESTConfig()
	if err != nil {
		return f, fmt.Errorf("cannot find a cluster: %w", err)
	}

	if f.Server.Is, err = serverVersion(flags); err != nil {
		return f, err
	}

	scheme := clientgoscheme.Scheme
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return f, err
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return f, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	list, err := source.Connect(flags, io.Discard)
	if err != nil {
		return f, err
	}

	d := doctor{c, namespace, list}
	f.Definitions = d.definitions(ctx)
	f.Deployment = d.deployment(ctx, componentManager)
	f.Lease = one[coordinationv1.Lease](ctx, c, namespace, health.Flag(f.Deployment.Is, "leader-election-id", names.Lease))
	f.Webhooks = one[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, c, "", health.Flag(f.Deployment.Is, "webhook-configuration", names.Arbor))
	f.Secret = one[corev1.Secret](ctx, c, namespace, names.WebhookSecret)
	f.Scheduler = d.scheduler(ctx)
	f.Backlog = d.backlog(ctx)
	running := f.Running()
	f.Lacking = d.lacking(ctx, f.Deployment.Is, running)

	var names []string
	for _, p := range running {
		names = append(names, p.Name)
	}

	f.Answers.Is, f.Answers.Err = release.Answers(ctx, config, names)

	return f, nil
}

func serverVersion(flags *genericclioptions.ConfigFlags) (*version.Version, error) {
	apis, err := flags.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	info, err := apis.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("cannot ask the cluster for its version: %w", source.ShortError(err))
	}

	v, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("cannot read the version of the cluster, %q: %w", info.GitVersion, err)
	}

	return v, nil
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
		return health.Found[P]{Err: source.ShortError(err)}
	}

	return health.Found[P]{Is: o}
}

func (d doctor) definitions(ctx context.Context) (f health.Found[map[string]*apiextensionsv1.CustomResourceDefinition]) {
	all := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := d.List(ctx, all); err != nil {
		f.Err = source.ShortError(err)

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
func (d doctor) deployment(ctx context.Context, component string) (f health.Found[*appsv1.Deployment]) {
	all := &appsv1.DeploymentList{}
	if err := d.List(ctx, all, client.InNamespace(d.namespace), client.MatchingLabels{names.NameLabel: names.Arbor}); err != nil {
		f.Err = source.ShortError(err)

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

func (d doctor) backlog(ctx context.Context) []health.Backlog {
	var all []health.Backlog

	for _, w := range waiting {
		objects, err := d.list(ctx, w.Query)
		if errors.Is(err, source.ErrNotInstalled) {
			continue
		}

		b := health.Waits(w.kind, w.condition, objects)
		b.Err = err
		all = append(all, b)
	}

	return all
}

// lacking are rights that the manager's service account does not have.
func (d doctor) lacking(ctx context.Context, manager *appsv1.Deployment, parts []health.Part) (f health.Found[[]string]) {
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
			f.Err = source.ShortError(err)

			return f
		}

		if text := wordsOf(n); !review.Status.Allowed && !slices.Contains(f.Is, text) {
			f.Is = append(f.Is, text)
		}
	}

	return f
}

// wordsOf is a right as kubectl auth can-i has it.
func wordsOf(r authorizationv1.ResourceAttributes) string {
	text := r.Verb + " " + strings.TrimSuffix(r.Resource+"."+r.Group, ".")
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}

	return text
}
