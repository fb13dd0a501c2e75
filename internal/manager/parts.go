package manager

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/api/crds"
	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/access"
	podgroupcontroller "github.com/arbor-control/arbor/internal/controller/podgroup"
	"github.com/arbor-control/arbor/internal/controller/poolstatus"
	"github.com/arbor-control/arbor/internal/controller/subnet"
	"github.com/arbor-control/arbor/internal/controller/subnetclaim"
	"github.com/arbor-control/arbor/internal/controller/subnetpool"
	"github.com/arbor-control/arbor/internal/controller/subnetpoolclaim"
	"github.com/arbor-control/arbor/internal/controller/synthesis"
	"github.com/arbor-control/arbor/internal/controller/synthesispod"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/webhook"
	podgroupwebhook "github.com/arbor-control/arbor/internal/webhook/podgroup"
	"github.com/arbor-control/arbor/internal/webhook/serving"
	subnetwebhook "github.com/arbor-control/arbor/internal/webhook/subnet"
	subnetpoolwebhook "github.com/arbor-control/arbor/internal/webhook/subnetpool"
)

// A part is what --controllers can switch on.
type part struct {
	name string
	// kinds whose CRDs it needs.
	kinds []schema.GroupKind
	// scheme of those kinds.
	scheme func(*runtime.Scheme) error
	// controllers starts them with the manager, and returns the endpoints that they serve in
	// addition to the webhooks.
	controllers func(ctrl.Manager, Options) ([]endpoint, error)
	// cached is how objects of its kinds are cached, if not by the default.
	cached func(Options) map[client.Object]cache.ByObject
	// scoped are the kinds that --composition-namespace is about.
	scoped []client.Object
	// webhooks admit the kinds.
	webhooks []hook
}

// A hook is a webhook and its handler.
type hook struct {
	serving.Webhook

	handler func(mgr ctrl.Manager, o Options, m *webhook.Metrics) admission.Handler
	// mustReject returns an object that the webhook must reject; see Probe.
	mustReject func() client.Object
}

// An endpoint is a URL of the manager's own that callers need a right for.
type endpoint struct {
	path    string
	handler http.Handler
	ask     access.Ask
}

// probe is what objects are called that are never stored.
var probe = metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "arbor-probe"}

// Two components have these, and a cache must be configured once.
var compositions, resourceSlices = &enov1.Composition{}, &enov1.ResourceSlice{}

// parts is the list of everything that Arbor can run.
var parts = []part{
	{
		name:   "podgroups",
		kinds:  []schema.GroupKind{{Group: v2alpha2.GroupVersion.Group, Kind: v2alpha2.PodGroupKind}},
		scheme: v2alpha2.AddToScheme,
		controllers: func(mgr ctrl.Manager, _ Options) ([]endpoint, error) {
			return nil, podgroupcontroller.SetupWithManager(mgr)
		},
		webhooks: []hook{{
			Webhook: podgroupwebhook.Registration,
			handler: func(mgr ctrl.Manager, o Options, m *webhook.Metrics) admission.Handler {
				return podgroupwebhook.NewHandler(podgroup.Guard(o.PriorityClassGuard), o.webhookTimeout(), mgr.GetClient(), mgr.GetAPIReader(), m)
			},
			mustReject: func() client.Object {
				return &v2alpha2.PodGroup{
					ObjectMeta: probe,
					Spec:       v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "REFUSED"}}},
				}
			},
		}},
	},
	{
		name: "subnets",
		kinds: []schema.GroupKind{
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetPoolKind},
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetKind},
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetClaimKind},
			{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.SubnetPoolClaimKind},
		},
		scheme:      v1alpha1.AddToScheme,
		controllers: setupSubnets,
		cached: func(Options) map[client.Object]cache.ByObject {
			return map[client.Object]cache.ByObject{&v1alpha1.Subnet{}: {Transform: slimSubnets()}}
		},
		webhooks: []hook{
			{
				Webhook: subnetpoolwebhook.Registration,
				handler: func(mgr ctrl.Manager, _ Options, m *webhook.Metrics) admission.Handler {
					return subnetpoolwebhook.NewHandler(mgr.GetClient(), m)
				},
				mustReject: func() client.Object {
					return &v1alpha1.SubnetPool{ObjectMeta: probe, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.1/8"}}
				},
			},
			{
				Webhook: subnetwebhook.Registration,
				handler: func(mgr ctrl.Manager, _ Options, m *webhook.Metrics) admission.Handler {
					return subnetwebhook.NewHandler(mgr.GetClient(), m)
				},
				mustReject: func() client.Object {
					return &v1alpha1.Subnet{ObjectMeta: probe, Spec: v1alpha1.SubnetSpec{PoolRef: "arbor-probe", CIDR: "10.0.0.1/8", ClusterID: "arbor-probe"}}
				},
			},
		},
	},
	{
		name: "synthesis",
		kinds: []schema.GroupKind{
			{Group: enov1.GroupVersion.Group, Kind: enov1.CompositionKind},
			{Group: enov1.GroupVersion.Group, Kind: enov1.SynthesizerKind},
			{Group: enov1.GroupVersion.Group, Kind: enov1.ResourceSliceKind},
			{Group: enov1.GroupVersion.Group, Kind: enov1.SymphonyKind},
		},
		scheme:      enov1.AddToScheme,
		controllers: setupSynthesis,
		cached: func(o Options) map[client.Object]cache.ByObject {
			return map[client.Object]cache.ByObject{
				resourceSlices: {Transform: synthesis.Slim},
				&corev1.Pod{}:  synthesispod.Cached(podNamespace(o)),
			}
		},
		scoped: []client.Object{compositions, resourceSlices, &enov1.Symphony{}},
	},
	{
		name: "delivery",
		kinds: []schema.GroupKind{
			{Group: enov1.GroupVersion.Group, Kind: enov1.CompositionKind},
			{Group: enov1.GroupVersion.Group, Kind: enov1.ResourceSliceKind},
		},
		scheme:      enov1.AddToScheme,
		controllers: setupDelivery,
		cached: func(Options) map[client.Object]cache.ByObject {
			return map[client.Object]cache.ByObject{resourceSlices: {Transform: synthesis.Slim}}
		},
		scoped: []client.Object{compositions, resourceSlices},
	},
}

// setupSubnets starts what serves subnet pools. Status and allocation share a
// view, which is fed while this replica leads.
func setupSubnets(mgr ctrl.Manager, o Options) ([]endpoint, error) {
	if err := kube.IndexSubnets(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	pools, m, claims := ipamcache.NewPools(), poolstatus.NewMetrics(metrics.Registry), subnetclaim.NewMetrics(metrics.Registry)
	feed := ipamcache.NewFeed(pools, m.Requeued)
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return feed.Start(ctx, mgr.GetCache()) }))
	if err != nil {
		return nil, err
	}
	trigger := poolstatus.NewTrigger(mgr.GetClient(), func(ctx context.Context, key types.NamespacedName) error {
		return feed.Recount(ctx, mgr.GetClient(), key)
	}, mgr.Elected())
	obstacles := poolstatus.NewObstacles()
	unbacked := func(ctx context.Context, pool types.NamespacedName, message string) {
		if obstacles.Set(pool, message) {
			trigger.Enqueue(ctx, pool)
		}
	}
	for _, setup := range []func() error{
		func() error {
			return metrics.Registry.Register(subnet.NewCollector(mgr.GetClient(), mgr.Elected()))
		},
		func() error { return subnet.SetupWithManager(mgr, o.RestoreGrace) },
		func() error { return subnetclaim.SetupAllocator(mgr, pools, feed, claims, trigger.Enqueue) },
		func() error { return subnetclaim.SetupBinder(mgr, claims) },
		func() error { return subnetpoolclaim.SetupWithManager(mgr, o.RestoreGrace) },
		func() error { return subnetpool.SetupWithManager(mgr, feed, o.RestoreGrace, unbacked) },
		func() error { return poolstatus.SetupWithManager(mgr, pools, feed, trigger, m, obstacles) },
	} {
		if err := setup(); err != nil {
			return nil, err
		}
	}

	return []endpoint{{path: poolstatus.TriggerPath, handler: trigger, ask: mayRecalculate}}, nil
}

// mayRecalculate is the right that a recalculation needs. It is a subresource
// that exists for rules only, so that it can be granted per namespace.
func mayRecalculate(r *http.Request, u user.Info) (authorizer.Attributes, error) {
	key, err := poolstatus.Wanted(r)

	return authorizer.AttributesRecord{
		User: u, Verb: "create", Namespace: key.Namespace, Name: key.Name, ResourceRequest: true,
		APIGroup: v1alpha1.GroupVersion.Group, APIVersion: v1alpha1.GroupVersion.Version, Resource: "subnetpools", Subresource: "recalculate",
	}, err
}

// Parts returns the names that --controllers knows. All are on by default.
func Parts() []string {
	names := make([]string, 0, len(parts))
	for _, p := range parts {
		names = append(names, p.name)
	}

	return names
}

// selected returns the parts of these names.
func selected(names []string) []part {
	var on []part
	for _, p := range parts {
		if slices.Contains(names, p.name) {
			on = append(on, p)
		}
	}

	return on
}

func (p part) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(p.kinds))
	for _, k := range p.kinds {
		crd, ok := crds.ByKind(k.Group, k.Kind)
		if !ok {
			return nil, fmt.Errorf("there is no CRD for %s", k)
		}
		all = append(all, crd)
	}

	return all, nil
}
