package subnets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// installPolicy installs the admission policies of the chart for one namespace, and
// waits until a Subnet there cannot be deleted.
func (w *world) installPolicy(probe *v1alpha1.Subnet) {
	w.t.Helper()
	text, err := server.Helm(w.t.Context(), append([]string{"template", "arbor", cluster.Chart(), "--namespace", "arbor-system"}, cluster.Set("fullnameOverride=arbor")...)...)
	must(w.t, err)
	objects, err := cluster.Objects(text)
	must(w.t, err)
	var installed []*unstructured.Unstructured
	for _, o := range objects {
		switch o.GetKind() {
		case "ValidatingAdmissionPolicyBinding":
			// Other tests delete Subnets.
			selector := map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: w.ns}}
			must(w.t, unstructured.SetNestedMap(o.Object, selector, "spec", "matchResources", "namespaceSelector"))
			installed = append(installed, o)
		case "ValidatingAdmissionPolicy":
			installed = append(installed, o)
		}
	}
	if len(installed) < 2 {
		w.t.Fatal("the chart has no admission policy for Subnets")
	}
	for _, o := range installed {
		w.create(o)
		w.t.Cleanup(func() { _ = w.c.Delete(context.Background(), o) })
	}
	w.eventually("the policy is enforced", func() error {
		if err := w.c.Delete(w.t.Context(), probe, client.DryRunAll); !denied(err) {
			return fmt.Errorf("a Subnet of a claim can be deleted: %w", err)
		}

		return nil
	})
}

func denied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// The chart's policy keeps users from deleting Subnets that a claim or a child pool has.
// Everything else can be deleted as before, and the manager can delete all of them.
func TestDeletionPolicy(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only, noWebhooks)
	w := newWorld(t, c)
	claim, lab := w.claim("p", "claim", 24), w.poolClaim("lab", "p", 20)
	w.create(w.pool("p", "10.0.0.0/16", ""), claim, lab, w.pool("c", "10.0.128.0/20", "p"))
	w.bound(claim)
	w.awaitPoolClaim(lab, metav1.ConditionTrue, "Bound")
	byHand := newSubnet(w.ns, "by-hand", "10.0.255.0/24")
	allocated(t, c, byHand)
	inner := w.claim("c", "inner", 24)
	w.create(inner)
	w.bound(inner)
	w.installPolicy(newSubnet(w.ns, claim.Status.SubnetRef, ""))

	list := &v1alpha1.SubnetList{}
	must(t, c.List(t.Context(), list, client.InNamespace(w.ns)))
	if len(list.Items) != 5 { // of two claims, a pool claim, a child pool, and the one made by hand
		t.Errorf("there are %d Subnets", len(list.Items))
	}
	for _, s := range list.Items {
		err := c.Delete(t.Context(), s.DeepCopy(), client.DryRunAll)
		if s.Name == byHand.Name && err != nil || s.Name != byHand.Name && !denied(err) {
			t.Errorf("deletion of Subnet %s: %v", s.Name, err)
		}
		if s.Name == claim.Status.SubnetRef && !strings.Contains(fmt.Sprint(err), "claim") {
			t.Errorf("it does not contain what to delete instead: %v", err)
		}
	}
	// A Subnet without a phase holds no block.
	unjudged := newSubnet(w.ns, "unjudged", "10.9.0.0/24")
	unjudged.Spec.PoolRef, unjudged.Spec.ClaimRef = "nowhere", &v1alpha1.ClaimReference{Name: "nowhere", UID: "gone"}
	w.create(unjudged)
	w.remove(unjudged)
	w.gone(unjudged)
	// The ways that are meant for it.
	w.remove(byHand, claim, inner, lab)
	w.gone(byHand, newSubnet(w.ns, claim.Status.SubnetRef, ""), newSubnet(w.ns, inner.Status.SubnetRef, ""), lab)
	w.remove(w.pool("c", "", ""), w.pool("p", "", ""))
	w.gone(w.pool("c", "", ""), w.pool("p", "", ""))

	// A namespace can be deleted, with all that is in it.
	w.create(w.pool("p", "10.0.0.0/16", ""), w.claim("p", "claim", 24))
	w.bound(w.claim("p", "claim", 24))
	w.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})
	w.gone(w.pool("p", "", ""))
}

// A pool with reuseAfter keeps the blocks of deleted claims for that time, across a
// restart of the manager, but does not wait for them when it is deleted.
func TestReuseAfter(t *testing.T) {
	c := newClient(t)
	m := server.StartManager(t, only, noWebhooks)
	w := newWorld(t, c)
	long, short := w.pool("long", "10.0.0.0/16", ""), w.pool("short", "10.1.0.0/16", "")
	long.Spec.ReuseAfter, short.Spec.ReuseAfter = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: 3 * time.Second}
	w.create(long, short)
	freed := map[string]time.Time{}
	blocks := map[string]string{}
	for _, p := range []string{"long", "short"} {
		claim := w.claim(p, "first-"+p, 24)
		w.create(claim)
		blocks[p] = w.bound(claim)
		freed[p] = time.Now()
		w.remove(claim)
		w.gone(claim)
	}
	m.Kill()
	server.StartManager(t, only, noWebhooks)

	next, again := w.claim("long", "next", 24), w.exact("long", "again", blocks["long"])
	soon := w.exact("short", "soon", blocks["short"])
	w.create(next, again, soon)
	if got := w.bound(next); got == blocks["long"] {
		t.Errorf("%s was allocated again at once", got)
	}
	w.waits(again, "RequestedCIDRTaken")
	w.eventually("the claim reports until when the block stays unused", func() error {
		if err := w.get(again); err != nil || !strings.Contains(again.Status.Message, blocks["long"]+" was released and stays unused until ") {
			return errors.Join(err, fmt.Errorf("it reports %q", again.Status.Message))
		}

		return nil
	})
	w.bound(soon)
	// The API server rounds the time of a deletion down to seconds.
	if after := time.Since(freed["short"]); after < short.Spec.ReuseAfter.Duration-time.Second {
		t.Errorf("%s was allocated again after %s", blocks["short"], after)
	}
	w.remove(next, again)
	w.gone(next, again)
	w.remove(long)
	w.gone(long)
}

// rejectSubnets keeps Subnets of one clusterID from being created in a namespace.
func (w *world) rejectSubnets(clusterID string) {
	w.t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"subnets"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.clusterID != '" + clusterID + "'", Message: "not for this cluster"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.ns}},
			},
		},
	}
	w.create(policy, binding)
	w.t.Cleanup(func() {
		_ = errors.Join(w.c.Delete(context.Background(), binding), w.c.Delete(context.Background(), policy))
	})
	w.eventually("the policy is enforced", func() error {
		s := newSubnet(w.ns, "probe", "10.255.0.0/24")
		s.Spec.ClusterID = clusterID
		if err := w.c.Create(w.t.Context(), s, client.DryRunAll); !denied(err) {
			return fmt.Errorf("a Subnet can be created: %w", err)
		}

		return nil
	})
}

func oneCreateRejected(w *world) {
	w.rejectSubnets("bad")
	w.create(w.claim("p", "bad", 24), w.claim("p", "good", 24), w.pool("p", "10.0.0.0/16", ""))
	w.bound(w.claim("p", "good", 24))
	bad := w.claim("p", "bad", 24)
	w.waits(bad, "NotCreated")
	if !strings.Contains(bad.Status.Message, "not for this cluster") {
		w.t.Errorf("it does not repeat the error of the API server: %s", bad.Status.Message)
	}
	// It does not keep a block from other claims for long, and other claims are still served.
	later := w.claim("p", "later", 17)
	w.create(later)
	w.bound(later)
}

// Names of quotas.
const (
	subnetCount = "count/subnets.plexaubnet.io"
	claimCount  = "count/subnetclaims.plexaubnet.io"
)

// limit creates a quota, and waits until it is enforced.
func (w *world) limit(name corev1.ResourceName, most string) *corev1.ResourceQuota {
	w.t.Helper()
	limit := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "limit"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse(most)}},
	}
	w.create(limit)
	touched := time.Now()
	w.eventually("the quota is enforced", func() error {
		if err := w.get(limit); err != nil {
			return err
		}
		if _, known := limit.Status.Used[name]; known {
			return nil
		}
		// The quota controller learns of new kinds every 30 seconds, and checks a quota
		// again when its spec changes.
		if time.Since(touched) > 2*time.Second {
			touched = time.Now()
			w.patch(limit, func() { limit.Spec.Hard["count/secrets"] = *resource.NewQuantity(touched.Unix(), resource.DecimalSI) })
		}

		return fmt.Errorf("its status is %+v", limit.Status)
	})

	return limit
}

func quota(w *world) {
	limit := w.limit(subnetCount, "1")
	first, second := w.claim("p", "first", 24), w.claim("p", "second", 24)
	w.create(w.pool("p", "10.0.0.0/16", ""), first)
	w.bound(first)
	w.create(second)
	w.waits(second, "NotCreated")
	if !strings.Contains(second.Status.Message, "exceeded quota") {
		w.t.Errorf("it does not repeat the error of the API server: %s", second.Status.Message)
	}
	w.patch(limit, func() { limit.Spec.Hard[subnetCount] = resource.MustParse("5") })
	w.bound(second)
}
