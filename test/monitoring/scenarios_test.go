package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// Requests that a proxy gets in the way of.
const (
	statusOfPools   = `^PATCH /apis/plexaubnet\.io/v1alpha1/namespaces/[^/]+/subnetpools/[^/]+/status$`
	newSubnetClaims = `^POST /apis/plexaubnet\.io/v1alpha1/namespaces/[^/]+/subnetclaims$`
	newCompositions = `^POST /apis/eno\.azure\.io/v1/namespaces/[^/]+/compositions$`
	deployments     = `^(PUT|PATCH) /apis/apps/v1/namespaces/[^/]+/deployments/`
	configMaps      = `^PATCH /api/v1/namespaces/[^/]+/configmaps/held-`
	secretOfCA      = `^GET /api/v1/namespaces/[^/]+/secrets/arbor-webhook-ca$` //nolint:gosec // the name of a secret is none
)

// slots is how many syntheses the manager lets run at once.
const slots = 4

// absences are the alerts that fire when there is no manager and no scheduler.
var absences = []string{"SubnetManagerAbsent", "SynthesisManagerAbsent", "DeliveryManagerAbsent", "ArborSchedulerAbsent"}

// absent are scenarios without a manager and a scheduler. They end when there are.
var absent = func() []scenario {
	var all []scenario
	for _, name := range absences {
		all = append(all, scenario{
			alert: name, what: "no manager and no scheduler run, until they are started",
			breaks: func(t *testing.T, w *world) (map[string]string, func()) {
				t.Helper()

				return nil, func() {
					w.sighted.Add(1)
					w.start(t)
				}
			},
		})
	}

	return all
}()

// work are scenarios in which what people ask for cannot be done, or is slow.
var work = []scenario{
	{alert: "SubnetPoolExhausted", what: "a pool of two blocks has three claims, until one is deleted", breaks: exhausted},
	{alert: "SubnetPoolNearlyFull", what: "all blocks of a pool are taken, until one is given back", breaks: nearlyFull},
	{alert: "SubnetClaimsWaiting", what: "a claim names a pool that does not exist, until it does", breaks: waiting},
	{alert: "ParentPoolReconcileSlow", what: "the API server takes 1.5 s for the status of a pool, while Subnets are made", breaks: slow},
	{alert: "CompositionSynthesisFailing", what: "a program ends with an error, until its input is another", breaks: failing},
	{alert: "CompositionsStuckReconciling", what: "the API server refuses a manifest, until there is another", breaks: stuck},
	{alert: "CompositionPruneBlocked", what: "a program prints no manifests any more, until it does", breaks: pruneBlocked},
	{alert: "CompositionDeletionForbidden", what: "a ServiceAccount may not delete what it delivered, until it may", breaks: deletionForbidden},
	{alert: "CompositionUnhealthy", what: "the API server rejects a manifest, until there is another", breaks: unhealthy},
	{alert: "SynthesizerRolloutHalted", what: "users roll back three compositions, until the rollout is resumed", breaks: halted},
	{alert: "DeliveryErrorRate", what: "manifests change, and the API server refuses half of them", breaks: refused},
	{alert: "OwnershipMigrationsFailing", what: "ownership is split, and the manager may not write Deployments, until it may", breaks: split},
	{alert: "WebhookDenialsSurging", what: "twenty invalid PodGroups a second, until nobody asks any more", breaks: denied},
	{alert: "ArborGangBindFailures", what: "the API server refuses to bind pods of gangs, until it does not", breaks: unbound},
	{alert: "ArborGangCycleSlow", what: "an extender takes 1.2 s for each gang, until it takes less", breaks: slowGangs},
	{alert: "WebhookErrors", what: "the manager may not review who may use a PriorityClass, until it may", breaks: undecided},
	{alert: "ArborGangsWaiting", what: "a gang has waited for an hour, until it is deleted", breaks: waitingGang},
	{alert: "ArborLeaderMissing", what: "another process holds the lease of a manager, until it is deleted", breaks: leaderless},
	{alert: "ArborRestarting", what: "a process starts again and again, until it does not", breaks: restarting},
	{alert: "WebhookCertificateExpiring", what: "the manager may not read the Secret of the webhooks, until it may", breaks: expiring},
}

// outage are scenarios in which the API server does not do its part.
var outage = []scenario{
	{alert: "ParentPoolReconcileErrorRate", what: "the manager may not write the status of pools while Subnets are made, until it may", breaks: unwritable("errors", "10.5.0.0/16")},
	{alert: "ParentPoolStatusStale", what: "Subnets are made, and no status of a pool can be written, until one can", breaks: unwritable("stale", "10.6.0.0/16")},
	{alert: "SubnetQueueNotDraining", what: "the API server holds new SubnetClaims of SubnetPoolClaims, until it answers", breaks: heldClaims},
	{alert: "CompositionQueueNotDraining", what: "the API server holds new compositions of symphonies, until it answers", breaks: heldSymphonies},
	{alert: "DeliveryNotDraining", what: "the API server holds manifests that are applied, until it answers", breaks: heldDeliveries},
	{alert: "WebhookSlow", what: "the API server takes 1.5 s to review who may use a PriorityClass, until it takes less", breaks: slowReviews},
	{alert: "SynthesisSlotsExhausted", what: "as many programs hang as may run, until they end", breaks: hanging},
}

// start starts the manager and the scheduler, if they do not run yet, and has them
// scraped.
func (w *world) start(t *testing.T) {
	t.Helper()
	// It is not enough that all of them fire: who looks late has to see it, too.
	cluster.Eventually(t, "each of them was seen", func() error {
		if n := w.sighted.Load(); n < w.playing {
			return fmt.Errorf("%d of %d were", n, w.playing)
		}

		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.manager != nil {
		return
	}
	// It ends with all scenarios, and not with this one.
	kubeconfig, err := server.Through(t.Context(), w.proxy.Kubeconfig)
	must(t, err)
	m, err := server.Manager(
		kubeconfig, "--local-synthesizers", "--rollout-cooldown=0s", "--synthesis-timeout=5m",
		fmt.Sprintf("--synthesis-concurrency=%d", slots), "--watchdog-threshold=2s", "--delivery-workers=2", "--composition-label-selector=!tenant", "--log-format=text",
	)
	must(t, err)
	w.manager = m
	must(t, m.Await())
	w.scrape(t, plainJob, m.Metrics)
	w.startScheduler(t)
}

func (w *world) create(t *testing.T, o client.Object) {
	t.Helper()
	o.SetNamespace(w.ns)
	must(t, w.client.Create(t.Context(), o))
}

func (w *world) delete(t *testing.T, o client.Object) {
	t.Helper()
	must(t, w.client.Delete(t.Context(), o))
}

// pool makes one whose default block is a /25.
func (w *world) pool(t *testing.T, name, cidr string) {
	t.Helper()
	w.create(t, &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetPoolSpec{CIDR: cidr, DefaultBlockSize: new(int32(25))}})
}

// claim asks for a /25.
func (w *world) claim(t *testing.T, pool, name string) *v1alpha1.SubnetClaim {
	t.Helper()
	c := &v1alpha1.SubnetClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetClaimSpec{PoolRef: pool, ClusterID: name, BlockSize: new(int32(25))}}
	w.create(t, c)

	return c
}

// bound waits until a claim is served.
func (w *world) bound(t *testing.T, c *v1alpha1.SubnetClaim) {
	t.Helper()
	cluster.Eventually(t, "claim "+c.Name+" is bound", func() error {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil || c.Status.Phase != v1alpha1.ClaimBound {
			return fmt.Errorf("it is %q: %w", c.Status.Phase, err)
		}

		return nil
	})
}

// ofPool are the labels of alerts about one.
func (w *world) ofPool(name string) map[string]string {
	return map[string]string{"job": plainJob, "ns": w.ns, "name": name}
}

func exhausted(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.pool(t, "exhausted", "10.1.0.0/24")
	one, two := w.claim(t, "exhausted", "exhausted-1"), w.claim(t, "exhausted", "exhausted-2")
	w.bound(t, one)
	w.bound(t, two)
	three := w.claim(t, "exhausted", "exhausted-3")

	return w.ofPool("exhausted"), func() {
		w.delete(t, one)
		w.delete(t, two)
		w.bound(t, three)
	}
}

func nearlyFull(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.pool(t, "full", "10.2.0.0/24")
	w.claim(t, "full", "full-1")
	two := w.claim(t, "full", "full-2")
	w.bound(t, two)

	return w.ofPool("full"), func() { w.delete(t, two) }
}

func waiting(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	c := w.claim(t, "nowhere", "waiting")

	return w.ofPool("nowhere"), func() {
		w.pool(t, "nowhere", "10.3.0.0/16")
		w.bound(t, c)
	}
}

// subnets makes a pool, and then Subnets in it by hand, one after the other, so that
// the status of the pool is always another.
func (w *world) subnets(t *testing.T, pool, cidr string) {
	t.Helper()
	w.pool(t, pool, cidr)
	next := netip.MustParsePrefix(cidr).Addr()

	load(t, 250*time.Millisecond, func(i int) error {
		s := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("%s-%d", pool, i)}}
		s.Spec = v1alpha1.SubnetSpec{PoolRef: pool, CIDR: netip.PrefixFrom(next, 28).String(), ClusterID: s.Name}
		for range 16 {
			next = next.Next()
		}

		return w.client.Create(context.WithoutCancel(t.Context()), s)
	})
}

func slow(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.subnets(t, "slow", "10.4.0.0/16")

	return map[string]string{"job": plainJob}, w.proxy.Slow(t, statusOfPools, 1500*time.Millisecond)
}

func unwritable(pool, cidr string) func(*testing.T, *world) (map[string]string, func()) {
	return func(t *testing.T, w *world) (map[string]string, func()) {
		t.Helper()
		w.subnets(t, pool, cidr)

		return map[string]string{"job": plainJob}, w.proxy.Forbid(t, statusOfPools)
	}
}

func heldClaims(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.pool(t, "parent", "10.7.0.0/16")
	release := w.proxy.Hold(t, newSubnetClaims)
	for i := range 4 { // one is worked on at a time
		w.create(t, &v1alpha1.SubnetPoolClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("child-%d", i)},
			Spec:       v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "parent", DesiredBlockSize: 24},
		})
	}

	return map[string]string{"job": plainJob, "name": "subnetpoolclaim"}, release
}

// script is the program of all compositions. Its input selects what it does.
const script = `in=$(cat)
mode=$(printf %s "$in" | sed 's/.*"mode":"\([a-z]*\)".*/\1/')
tick=$(printf %s "$in" | sed 's/.*"tick":"\([0-9]*\)".*/\1/')
config() { printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"%s"},"data":{"tick":"%s"}}' "$1" "$COMPOSITION_NAMESPACE" "$tick"; }
deployment() { printf '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"split","namespace":"%s","annotations":{"tick":"%s"}},"spec":{"selector":{"matchLabels":{"app":"split"}},"template":{"metadata":{"labels":{"app":"split"}},"spec":{%s"containers":[{"name":"web","image":"web:2"}]}}}}' "$COMPOSITION_NAMESPACE" "$tick" "$1"; }
case $mode in
good) items=$(config "$COMPOSITION_NAME-good") ;;
refused) items="$(config "$COMPOSITION_NAME-good"),$(config Bad_Name)" ;;
pair) items="$(config "$COMPOSITION_NAME-1"),$(config "$COMPOSITION_NAME-2")" ;;
nothing) items= ;;
many) items=$(for i in 1 2 3 4 5 6 7; do config "held-$i"; printf ,; done; config held-8) ;;
named) items=$(deployment '"initContainers":[{"name":"base-os-bash","image":"base:2"}],') ;;
dropped) items=$(deployment '') ;;
hangs) while [ ! -e GATE ]; do sleep 0.05; done; items=$(config "$COMPOSITION_NAME-good") ;;
*) echo "there is no mode $mode" >&2; exit 1 ;;
esac
printf '{"kind":"ResourceList","items":[%s]}' "$items"`

// composition makes one, with a synthesizer and an input of its own.
func (w *world) composition(t *testing.T, name, mode string) {
	t.Helper()
	must(t, w.client.Create(t.Context(), &enov1.Synthesizer{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: enov1.SynthesizerSpec{
			Command: []string{"sh", "-c", strings.ReplaceAll(script, "GATE", w.gate())}, Image: "none",
			Refs: []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap"}}},
		},
	}))
	w.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"mode": mode, "tick": "0"}})
	w.create(t, &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: enov1.CompositionSpec{
		Synthesizer: enov1.SynthesizerRef{Name: name},
		Bindings:    []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: w.ns, Name: name}}},
	}})
}

// gate is the file that programs wait for.
func (w *world) gate() string { return filepath.Join(w.dir, "gate") }

// input changes that of a composition.
func (w *world) input(ctx context.Context, name, at, value string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{at: value}})
	if err != nil {
		return err
	}
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}

	return w.client.Patch(context.WithoutCancel(ctx), o, client.RawPatch(types.MergePatchType, patch))
}

// becomes has the program of a composition do something else.
func (w *world) becomes(t *testing.T, name, mode string) func() {
	t.Helper()

	return func() { must(t, w.input(t.Context(), name, "mode", mode)) }
}

// changing changes an input, so that there is always something new to deliver, and what
// fails is not put off for longer and longer. Each change waits until the one before was
// synthesized: those that come faster than a slow manager can follow would keep it from
// writing that it did.
func (w *world) changing(t *testing.T, name string) {
	t.Helper()
	ctx, last := context.WithoutCancel(t.Context()), ""
	load(t, 500*time.Millisecond, func(i int) error {
		c := &enov1.Composition{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: name}, c); err != nil {
			return err
		}
		if s := c.Status.CurrentSynthesis; s == nil || s.UUID == last {
			return nil
		}
		if err := w.input(ctx, name, "tick", strconv.Itoa(i+1)); err != nil {
			return err
		}
		last = c.Status.CurrentSynthesis.UUID

		return nil
	})
}

// ready waits until a composition is.
func (w *world) ready(t *testing.T, name string) {
	t.Helper()
	cluster.Eventually(t, name+" is ready", func() error {
		c := &enov1.Composition{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, c); err != nil {
			return err
		}
		if c.Status.Simplified == nil || c.Status.Simplified.Status != "Ready" {
			return fmt.Errorf("it is %+v", c.Status.Simplified)
		}

		return nil
	})
}

func failing(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.composition(t, "failing", "none")

	return map[string]string{"job": plainJob}, w.becomes(t, "failing", "good")
}

func stuck(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.composition(t, "stuck", "refused")

	return map[string]string{"job": plainJob, "synthesizer": "stuck"}, w.becomes(t, "stuck", "good")
}

func pruneBlocked(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.composition(t, "pruned", "pair")
	w.ready(t, "pruned")
	w.becomes(t, "pruned", "nothing")()

	return map[string]string{"job": plainJob}, w.becomes(t, "pruned", "pair")
}

func unhealthy(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.composition(t, "unhealthy", "refused")

	return map[string]string{"job": plainJob}, w.becomes(t, "unhealthy", "good")
}

func refused(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	w.composition(t, "refused", "refused")
	w.changing(t, "refused")

	return map[string]string{"job": plainJob}, w.becomes(t, "refused", "good")
}

// split has another client create a workload, of which delivery takes one field of an init
// container, and then wants all of it gone.
func split(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "split"}, "spec": {
		"selector": {"matchLabels": {"app": "split"}}, "template": {"metadata": {"labels": {"app": "split"}}, "spec": {
			"initContainers": [{"name": "base-os-bash", "image": "base:1", "command": ["sh"], "imagePullPolicy": "Always"}],
			"containers": [{"name": "web", "image": "web:1"}]}}}}`), &o.Object))
	o.SetNamespace(w.ns)
	must(t, w.client.Create(t.Context(), o, client.FieldOwner("Go-http-client")))
	w.composition(t, "split", "named")
	// The object alone does not show that the manager knows what it has applied, without which it
	// sees nothing that has to go.
	cluster.Eventually(t, "the workload is delivered", func() error {
		c := &enov1.Composition{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "split"}, c); err != nil {
			return err
		}
		if s := c.Status.CurrentSynthesis; s == nil || s.Reconciled == nil {
			return fmt.Errorf("it is %+v", c.Status.Simplified)
		}

		return nil
	})
	allow := w.proxy.Forbid(t, deployments)
	w.becomes(t, "split", "dropped")()
	w.changing(t, "split")

	return map[string]string{"job": plainJob}, allow
}

func denied(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	bad := v2alpha2.PodGroupSpec{MinMember: new(int32(1)), Queue: "default", SubGroups: []v2alpha2.SubGroup{{Name: "a", MinMember: new(int32(1)), Parent: new("nobody")}}}
	stop := load(t, 50*time.Millisecond, func(int) error {
		err := w.client.Create(context.WithoutCancel(t.Context()), &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "bad"}, Spec: bad})
		if err == nil || !strings.Contains(err.Error(), "admission webhook") {
			return fmt.Errorf("it was not denied: %w", err)
		}

		return nil
	})

	return map[string]string{"job": plainJob, "kind": "PodGroup"}, stop
}

func heldSymphonies(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	release := w.proxy.Hold(t, newCompositions)
	for i := range 8 { // four are worked on at a time
		w.create(t, &enov1.Symphony{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("symphony-%d", i)},
			Spec:       enov1.SymphonySpec{Variations: []enov1.Variation{{Synthesizer: enov1.SynthesizerRef{Name: "nobody"}}}},
		})
	}

	return map[string]string{"job": plainJob, "name": "symphony"}, release
}

func heldDeliveries(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	release := w.proxy.Hold(t, configMaps)
	w.composition(t, "many", "many")

	return map[string]string{"job": plainJob}, func() {
		release()
		w.ready(t, "many")
	}
}

func hanging(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	for i := range slots {
		w.composition(t, fmt.Sprintf("hangs-%d", i), "hangs")
	}

	return map[string]string{"job": plainJob}, func() { must(t, os.WriteFile(w.gate(), nil, 0o600)) }
}

// expiring has another manager, whose certificates live for some seconds, and whose metrics are for
// those who may read them. It serves no webhook that is needed.
func expiring(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	p := server.NewProxy(t, "", 0)
	m := server.StartManager(t,
		"--kubeconfig="+p.Kubeconfig, "--controllers=delivery", "--namespace=arbor-secured", "--composition-namespace=arbor-secured",
		"--webhook-configuration=arbor-secured", "--webhook-ca-lifetime=60s", "--metrics-secure=true", "--log-format=text")
	grant := w.account(t)
	w.scrape(t, securedJob, m.Metrics)
	t.Cleanup(func() { w.scrape(t, securedJob) })
	w.awaitTarget(t, "down", "403")
	grant()
	w.awaitTarget(t, "up", "")

	return map[string]string{"job": securedJob, "certificate": "serving"}, p.Forbid(t, secretOfCA)
}

// account makes one for Prometheus, and returns what gives it the permission to read
// metrics.
func (w *world) account(t *testing.T) (grant func()) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}}
	w.create(t, account)
	request := &authenticationv1.TokenRequest{}
	must(t, w.client.SubResource("token").Create(t.Context(), account, request))
	must(t, os.WriteFile(w.token(), []byte(request.Status.Token), 0o600))

	return func() {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "arbor-metrics-reader"},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		}
		if err := w.client.Create(t.Context(), role); !apierrors.IsAlreadyExists(err) {
			must(t, err)
		}
		must(t, w.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-metrics-reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: account.Name}},
		}))
	}
}

// awaitTarget waits until the secured job is up, or down for a reason.
func (w *world) awaitTarget(t *testing.T, health, reason string) {
	t.Helper()
	cluster.Eventually(t, securedJob+" is "+health, func() error {
		got, why, err := w.target(securedJob)
		if err != nil || got != health || !strings.Contains(why, reason) {
			return errors.Join(fmt.Errorf("it is %q, %q", got, why), err)
		}

		return nil
	})
}
