package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/invariant"
)

// storedSubnets stores what the last release made of the work of subnets: owner references
// connect the objects, and pools have no range in their status.
func (s *tenant) storedSubnets() {
	s.Helper()
	pool := &v1alpha1.SubnetPool{ObjectMeta: s.meta("pool"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}}
	pool.Finalizers = []string{v1alpha1.Finalizer}
	s.store(pool, func() {
		pool.Status.AllocatedCount, pool.Status.DelegatedCount = 2, 1
		pool.Status.UtilizationPercent, pool.Status.FragmentationPercent = 2, 48
	})
	owner := &v1alpha1.SubnetPoolClaim{ObjectMeta: s.meta("child"), Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "pool", DesiredBlockSize: 22}}
	owner.Finalizers = []string{v1alpha1.Finalizer}
	s.store(owner, func() { owner.Status.Phase, owner.Status.BoundPoolName = v1alpha1.ClaimBound, "child" })
	owners := []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolClaimKind))}

	block := &v1alpha1.SubnetClaim{ObjectMeta: s.meta("child"), Spec: v1alpha1.SubnetClaimSpec{PoolRef: "pool", ClusterID: string(owner.UID), BlockSize: new(int32(22))}}
	block.Finalizers, block.OwnerReferences = []string{v1alpha1.Finalizer}, owners
	s.storeClaim(block, "10.0.0.0/22", "pool-10-0-0-0-22")
	child := &v1alpha1.SubnetPool{ObjectMeta: s.meta("child"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/22"}}
	child.Labels = map[string]string{v1alpha1.ParentLabel: "pool", v1alpha1.IPAMLabel: "true"}
	child.Finalizers, child.OwnerReferences = []string{v1alpha1.Finalizer}, owners
	s.store(child, func() {
		child.Status.AllocatedCount, child.Status.UtilizationPercent, child.Status.FragmentationPercent = 1, 25, 33
	})

	for i, b := range []struct{ pool, cidr, subnet string }{
		{"pool", "10.0.4.0/24", "pool-10-0-4-0-24"}, {"pool", "10.0.5.0/24", "pool-10-0-5-0-24"}, {"child", "10.0.0.0/24", "child-10-0-0-0-24"},
	} {
		c := &v1alpha1.SubnetClaim{ObjectMeta: s.meta(fmt.Sprintf("block-%d", i))}
		c.Spec.PoolRef, c.Spec.ClusterID, c.Spec.BlockSize = b.pool, c.Name, new(int32(24))
		s.storeClaim(c, b.cidr, b.subnet)
	}
}

// storeClaim stores a claim that is bound, and its Subnet.
func (s *tenant) storeClaim(c *v1alpha1.SubnetClaim, cidr, subnet string) {
	s.Helper()
	s.store(c, func() {
		c.Status.Phase, c.Status.AllocatedCIDR, c.Status.SubnetRef = v1alpha1.ClaimBound, cidr, subnet
	})
	b := &v1alpha1.Subnet{ObjectMeta: s.meta(subnet), Spec: v1alpha1.SubnetSpec{
		PoolRef: c.Spec.PoolRef, CIDR: cidr, ClusterID: c.Spec.ClusterID, ClaimRef: &v1alpha1.ClaimReference{Name: c.Name, UID: c.UID},
	}}
	b.Labels = map[string]string{v1alpha1.ClusterIDLabel: c.Spec.ClusterID}
	b.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetClaimKind))}
	s.store(b, func() { b.Status.Phase = v1alpha1.SubnetAllocated })
}

// store creates an object, and then gives it a status.
func (s *tenant) store(o client.Object, status func()) {
	s.Helper()
	s.create(o)
	status()
	must(s, s.Status().Update(s.Context(), o))
}

// A migration is a namespace whose child pools the last release left in use: they have no
// backing Subnets.
type migration struct {
	*tenant
}

// blocksOfMigration are the blocks that claims have, by pool.
var blocksOfMigration = map[string]string{"core": "10.0.0.0/24", "field": "10.0.16.0/24", "label": "10.0.32.0/24"}

// store stores a parent and two child pools made by hand, one for each way to name the
// parent, with Allocated Subnets in all of them.
func (s *migration) store() {
	s.Helper()
	for name, cidr := range map[string]string{"core": "10.0.0.0/16", "field": "10.0.16.0/20", "label": "10.0.32.0/20"} {
		p := &v1alpha1.SubnetPool{ObjectMeta: s.meta(name), Spec: v1alpha1.SubnetPoolSpec{CIDR: cidr}}
		p.Finalizers = []string{v1alpha1.Finalizer}
		switch name {
		case "field":
			p.Spec.Parent = "core"
		case "label":
			p.Labels = map[string]string{v1alpha1.ParentLabel: "core"}
		}
		s.tenant.store(p, func() { p.Status.ObservedGeneration, p.Status.AllocatedCount = p.Generation, 1 })
		c := &v1alpha1.SubnetClaim{ObjectMeta: s.meta("in-" + name)}
		c.Spec.PoolRef, c.Spec.ClusterID, c.Spec.BlockSize = name, c.Name, new(int32(24))
		block := blocksOfMigration[name]
		s.storeClaim(c, block, name+"-"+strings.NewReplacer(".", "-", "/", "-").Replace(block))
	}
	byHand := &v1alpha1.Subnet{ObjectMeta: s.meta("by-hand"), Spec: v1alpha1.SubnetSpec{PoolRef: "field", CIDR: "10.0.17.0/24", ClusterID: "by-hand"}}
	s.tenant.store(byHand, func() { byHand.Status.Phase = v1alpha1.SubnetAllocated })
}

// condition waits until the condition Ready of an object has a status and a reason, and
// returns its message.
func (s *migration) condition(o client.Object, conditions *[]metav1.Condition, status metav1.ConditionStatus, reason string) string {
	s.Helper()
	message := ""
	s.await(o, func() bool {
		ready := meta.FindStatusCondition(*conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != status || ready.Reason != reason {
			return false
		}
		message = ready.Message

		return true
	})

	return message
}

// claim creates a claim in a pool.
func (s *migration) claim(pool, name string) *v1alpha1.SubnetClaim {
	s.Helper()
	c := &v1alpha1.SubnetClaim{ObjectMeta: s.meta(name)}
	c.Spec.PoolRef, c.Spec.ClusterID, c.Spec.BlockSize = pool, c.Name, new(int32(24))
	s.create(c)

	return c
}

// arbor runs arbor pools with a command for this namespace.
func (s *migration) arbor(args ...string) (string, int) {
	s.Helper()
	out, errs, code := server.Arbor(s, append([]string{"pools", args[0], "-n", s.ns}, args[1:]...)...)

	return out + errs, code
}

// expect runs arbor pools with a command until it has an exit code, and fails the test
// unless the output then contains a text.
func (s *migration) expect(code int, want string, args ...string) {
	s.Helper()
	text := ""
	cluster.Eventually(s, fmt.Sprintf("arbor pools %v has the exit code %d", args, code), func() error {
		var got int
		if text, got = s.arbor(args...); got != code {
			return fmt.Errorf("exit code %d: %s", got, text)
		}

		return nil
	})
	if !strings.Contains(text, want) {
		s.Errorf("arbor pools %v does not report %q:\n%s", args, want, text)
	}
}

// backing returns the phases of the backing Subnets, by pool.
func (s *migration) backing() map[string]v1alpha1.SubnetPhase {
	s.Helper()
	list := &v1alpha1.SubnetList{}
	must(s, s.List(s.Context(), list, client.InNamespace(s.ns)))
	phases := map[string]v1alpha1.SubnetPhase{}
	for _, o := range list.Items {
		if o.Spec.Backs != nil {
			phases[o.Spec.Backs.Name] = o.Status.Phase
		}
	}

	return phases
}

// exclusive fails the test if an address has two owners.
func (s *migration) exclusive() {
	s.Helper()
	subnets, pools := &v1alpha1.SubnetList{}, &v1alpha1.SubnetPoolList{}
	must(s, s.List(s.Context(), subnets, client.InNamespace(s.ns)))
	must(s, s.List(s.Context(), pools, client.InNamespace(s.ns)))
	must(s, invariant.Error(invariant.Shared(subnets.Items, invariant.Backs(pools.Items))))
}

// Rule U3: a parent whose child pools were left in use stays closed until arbor pools
// migrate has created their backing Subnets while no manager runs. Bound claims keep
// their blocks all the time.
func TestMigrateUsedChildren(t *testing.T) {
	c := server.Client(t, nil)
	for _, crd := range released(t) {
		if crd.Spec.Group == v1alpha1.GroupVersion.Group {
			must(t, kube.EnsureCRD(t.Context(), c, crd, true))
		}
	}
	s := &migration{&tenant{T: t, Client: c, ns: cluster.Namespace(t, c)}}
	cluster.Eventually(t, "the kinds are served", func() error {
		_, err := s.stored()

		return errors.Join(err, s.List(s.Context(), &v1alpha1.SubnetPoolList{}, client.InNamespace(s.ns)))
	})
	s.store()
	before, err := s.stored()
	must(t, err)

	t.Cleanup(func() { removeWebhooks(t, c) }) // when the managers are stopped: they cannot create the configuration again
	m := server.StartManager(t, "--controllers=subnets", "--leader-elect=true")
	core := &v1alpha1.SubnetPool{ObjectMeta: s.meta("core")}
	next := map[string]*v1alpha1.SubnetClaim{}
	if text := s.condition(core, &core.Status.Conditions, metav1.ConditionFalse, "InUse"); !strings.Contains(text, "stop the manager and run `arbor pools migrate`") {
		t.Errorf("the pool does not report what to do: %s", text)
	}
	for pool := range blocksOfMigration {
		next[pool] = s.claim(pool, "next-"+pool)
	}
	for _, claim := range next {
		s.condition(claim, &claim.Status.Conditions, metav1.ConditionFalse, "PoolNotReady")
	}
	s.expect(1, "stop the manager, and run arbor pools migrate", "check")
	s.expect(2, "a manager runs", "migrate", "--yes")
	m.Stop()

	// While no manager runs, and the API server still asks it about what users create.
	byUser := &v1alpha1.Subnet{ObjectMeta: s.meta("by-user"), Spec: v1alpha1.SubnetSpec{PoolRef: "core", CIDR: "10.0.64.0/24", ClusterID: "by-user"}}
	cluster.Eventually(t, "the webhooks of the stopped manager are in place", func() error {
		if err := c.Create(t.Context(), byUser.DeepCopy(), client.DryRunAll); err == nil {
			return errors.New("a Subnet can be created")
		}

		return nil
	})
	phases := s.backing()
	s.expect(0, "2 Subnets to create, 0 conflicts (dry run", "migrate")
	if now := s.backing(); !maps.Equal(phases, now) {
		t.Errorf("a dry run has changed the backing Subnets from %v to %v", phases, now)
	}
	s.expect(0, "2 Subnets created, 0 conflicts, 0 failed", "migrate", "--yes")
	want := map[string]v1alpha1.SubnetPhase{"field": v1alpha1.SubnetAllocated, "label": v1alpha1.SubnetAllocated}
	if now := s.backing(); !maps.Equal(want, now) {
		t.Errorf("the backing Subnets are %v, want %v", now, want)
	}
	s.expect(0, "no child pool needs a backing Subnet", "migrate", "--yes")

	server.StartManager(t, "--controllers=subnets", "--leader-elect=true")
	for pool, claim := range next {
		p := &v1alpha1.SubnetPool{ObjectMeta: s.meta(pool)}
		s.await(p, func() bool { return p.Open() == p.Spec.CIDR })
		s.condition(p, &p.Status.Conditions, metav1.ConditionTrue, "Ready")
		s.condition(claim, &claim.Status.Conditions, metav1.ConditionTrue, "Allocated")
	}
	s.exclusive()
	s.expect(0, "nothing wrong", "check")
	after, err := s.stored()
	must(t, err)
	for name, was := range before {
		if is, ok := after[name]; !ok || is != was {
			t.Errorf("%s was %s, and is %q", name, was, is)
		}
	}
	s.removeAll()
}

// stored returns the UID and the block of each claim and Subnet.
func (s *migration) stored() (map[string]string, error) {
	claims, subnets := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetList{}
	if err := errors.Join(s.List(s.Context(), claims, client.InNamespace(s.ns)), s.List(s.Context(), subnets, client.InNamespace(s.ns))); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, c := range claims.Items {
		all["SubnetClaim "+c.Name] = fmt.Sprint(c.UID, c.Status.Phase, c.Status.AllocatedCIDR, c.Status.SubnetRef)
	}
	for _, o := range subnets.Items {
		all["Subnet "+o.Name] = fmt.Sprint(o.UID, o.Status.Phase, o.Spec.CIDR)
	}

	return all, nil
}

// removeAll deletes everything, and waits until it is gone.
func (s *migration) removeAll() {
	s.Helper()
	for _, kind := range []client.Object{&v1alpha1.SubnetClaim{}, &v1alpha1.SubnetPool{}} {
		must(s, s.DeleteAllOf(s.Context(), kind, client.InNamespace(s.ns)))
	}
	must(s, client.IgnoreNotFound(s.Delete(s.Context(), &v1alpha1.Subnet{ObjectMeta: s.meta("by-hand")})))
	cluster.Eventually(s, "everything is deleted", func() error {
		pools := &v1alpha1.SubnetPoolList{}
		left, err := s.stored()
		if err = errors.Join(err, s.List(s.Context(), pools, client.InNamespace(s.ns))); err == nil && len(left)+len(pools.Items) > 0 {
			err = fmt.Errorf("%v and %d pools are left", left, len(pools.Items))
		}

		return err
	})
}

// removeWebhooks keeps the API server from asking a manager that is stopped.
func removeWebhooks(t *testing.T, c client.Client) {
	t.Helper()
	ctx := context.Background() // the test's own one has ended
	must(t, client.IgnoreNotFound(c.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	cluster.Eventually(t, "the API server asks no manager", func() error {
		return c.Create(ctx, &v1alpha1.SubnetPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"},
		}, client.DryRunAll)
	})
}

// opened waits until the pools of a tenant have their ranges, and no owner reference is
// left between claims, Subnets and pools.
func (s *tenant) opened() {
	s.Helper()
	cluster.Eventually(s, "stored pools are open", func() error {
		all, err := s.look()
		if err != nil {
			return err
		}
		for name, o := range all {
			if o.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
				continue
			}
			cidr, _, _ := unstructured.NestedString(o.Object, "spec", "cidr")
			open, _, _ := unstructured.NestedString(o.Object, "status", "cidr")
			if o.GetKind() == "SubnetPool" && open != cidr {
				return fmt.Errorf("%s has %q of %s: %v", name, open, cidr, o.Object["status"])
			}
			if owners := o.GetOwnerReferences(); len(owners) > 0 {
				return fmt.Errorf("%s is owned by %v", name, owners)
			}
		}

		return nil
	})
}

// protected removes from an object what an upgrade changes in how it is connected with other
// objects, and protected.
func protected(o *unstructured.Unstructured) {
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	annotations, labels := o.GetAnnotations(), o.GetLabels()
	delete(annotations, v1alpha1.BlockAnnotation)
	delete(annotations, v1alpha1.PoolUIDAnnotation)
	delete(labels, v1alpha1.PoolClaimLabel)
	if len(annotations) == 0 {
		annotations = nil
	}
	if len(labels) == 0 {
		labels = nil
	}
	o.SetAnnotations(annotations)
	o.SetLabels(labels)
}
