package subnets_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

var kindsOfPools = []string{v1alpha1.SubnetPoolKind, v1alpha1.SubnetKind, v1alpha1.SubnetClaimKind, v1alpha1.SubnetPoolClaimKind}

// arbor uninstall --keep-objects removes the finalizers of the whole cluster, and the CRDs
// are deleted afterwards, so this test has a control plane of its own.
func TestUninstall(t *testing.T) {
	up, err := cluster.Start(t.TempDir(), "--unsafe-no-fsync", "--bare", "--nodes=0")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			up.DumpLogs()
		}
		up.Stop()
	})
	c := up.Client(t, nil)
	must(t, cluster.Define(t.Context(), c, v1alpha1.GroupVersion, kindsOfPools...))
	for _, step := range []struct {
		name string
		run  func(*uninstall)
	}{
		{"ManagerAgain", (*uninstall).managerAgain},
		{"NoManager", (*uninstall).noManager}, // the last one: it deletes the CRDs
	} {
		t.Run(step.name, func(t *testing.T) { step.run(&uninstall{world: newWorld(t, c), up: up}) })
	}
}

// An uninstall is a namespace of a cluster from which Arbor is removed.
type uninstall struct {
	*world

	up *cluster.Up
}

// run runs arbor uninstall --keep-objects and returns its exit code.
func (u *uninstall) run(args ...string) (string, int) {
	u.t.Helper()
	out, errs, code := u.up.Arbor(u.t, append([]string{"uninstall", "--keep-objects"}, args...)...)

	return out + errs, code
}

// fill creates pools of all kinds, each with a claim, and a Subnet that was made by hand.
func (u *uninstall) fill() {
	u.t.Helper()
	lab, byHand := u.poolClaim("lab", "root", 20), newSubnet(u.ns, "by-hand", "10.0.200.0/24")
	byHand.Spec.PoolRef = "root"
	u.create(u.pool("root", "10.0.0.0/16", ""), u.pool("hand", "10.0.64.0/20", "root"), lab)
	u.awaitPoolClaim(lab, metav1.ConditionTrue, "Bound")
	for _, pool := range []string{"root", "hand", "lab"} {
		claim := u.claim(pool, "in-"+pool, 24)
		u.create(claim)
		u.bound(claim)
		u.observed(u.pool(pool, "", ""))
	}
	allocated(u.t, u.c, byHand)
}

// protected returns the objects that have a finalizer of Arbor.
func (u *uninstall) protected() []string {
	u.t.Helper()
	all, err := u.list()
	must(u.t, err)
	var found []string
	for _, o := range all {
		if slices.Contains(o.GetFinalizers(), v1alpha1.Finalizer) {
			found = append(found, fmt.Sprintf("%T %s", o, o.GetName()))
		}
	}

	return found
}

// released fails the test if an object has a finalizer of Arbor.
func (u *uninstall) released() {
	u.t.Helper()
	if left := u.protected(); len(left) > 0 {
		u.t.Fatalf("these have a finalizer of Arbor: %v", left)
	}
}

// backing returns the Subnet that holds the block of a child pool.
func (u *uninstall) backing(pool string) *v1alpha1.Subnet {
	u.t.Helper()
	list := &v1alpha1.SubnetList{}
	must(u.t, u.c.List(u.t.Context(), list, client.InNamespace(u.ns)))
	for i := range list.Items {
		if s := &list.Items[i]; s.Spec.Backs != nil && s.Spec.Backs.Name == pool {
			return s
		}
	}
	u.t.Fatalf("pool %s has no backing Subnet", pool)

	return nil
}

// Pools that are deleted after an uninstall leave their blocks behind. A manager that
// starts later releases those, and protects the rest again.
func (u *uninstall) managerAgain() {
	m := u.up.StartManager(u.t, only, noWebhooks)
	u.fill()
	gone, kept := u.pool("gone", "10.0.80.0/20", "root"), u.pool("hand", "", "")
	late := u.claim("root", "late", 24)
	u.create(gone, late)
	u.observed(gone)
	u.bound(late)
	if text, code := u.run("--yes"); code != 2 || !strings.Contains(text, "a manager runs without the Lease") {
		u.t.Errorf("exit code %d next to a manager without a Lease: %s", code, text)
	}
	u.eventually("pool gone is open", func() error {
		if err := u.get(gone); err != nil || gone.Open() == "" {
			return fmt.Errorf("it is %+v (%w)", gone.Status, err)
		}

		return nil
	})
	m.Stop()
	if text, code := u.run("--yes"); code != 0 {
		u.t.Fatalf("exit code %d: %s", code, text)
	}
	u.released()
	backingGone, backingKept := u.backing("gone"), u.backing("hand")
	// Nothing but finalizers could keep them.
	u.remove(gone, late, u.poolClaim("lab", "", 0))
	for _, o := range []client.Object{gone, late, u.poolClaim("lab", "", 0)} {
		if err := u.get(o); !apierrors.IsNotFound(err) {
			u.t.Fatalf("%T %s can still be read: %v", o, o.GetName(), err)
		}
	}

	// Without the flag the manager waits ten minutes for the pool to be restored.
	u.up.StartManager(u.t, only, noWebhooks, "--restore-grace=1s")
	u.gone(backingGone, newSubnet(u.ns, late.Status.SubnetRef, ""))
	again := u.exact("root", "again", gone.Spec.CIDR)
	u.create(again)
	u.bound(again)
	// Objects that still exist are protected as before, and keep their blocks.
	u.observed(kept)
	u.eventually("the block of pool hand is protected", func() error {
		s := newSubnet(u.ns, backingKept.Name, "")
		if err := u.get(s); err != nil {
			return err
		}
		if s.UID != backingKept.UID || s.DeletionTimestamp != nil || !slices.Contains(s.Finalizers, v1alpha1.Finalizer) {
			return fmt.Errorf("it is %+v", s.ObjectMeta)
		}

		return nil
	})
	if got := u.bound(u.claim("", "in-hand", 0)); !strings.HasPrefix(got, "10.0.64.") {
		u.t.Errorf("the claim in pool hand has %s", got)
	}
	must(u.t, u.exclusive())
	u.removeAll()
}

// After an uninstall all objects and the CRDs can be deleted, although no manager runs.
func (u *uninstall) noManager() {
	m := u.up.StartManager(u.t, only, noWebhooks)
	inCRD := &uninstall{world: newWorld(u.t, u.c), up: u.up} // its objects are deleted with the CRDs
	u.fill()
	inCRD.fill()
	busy := inCRD.pool("busy", "10.1.0.0/16", "")
	inBusy := inCRD.claim("busy", "in-busy", 24)
	inCRD.create(busy, inBusy)
	inCRD.bound(inBusy)
	inCRD.observed(busy)
	inCRD.remove(busy) // it waits for the claim
	m.Stop()
	m = u.up.StartManager(u.t, only, "--leader-elect=true")
	u.eventually("the API server asks the manager", func() error {
		if err := u.c.Create(u.t.Context(), u.pool("probe", "10.2.0.1/16", ""), client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("an invalid pool is not rejected: %w", err)
		}

		return nil
	})
	u.eventually("the manager holds the Lease", func() error {
		if text, code := u.run("--yes"); code != 2 || !strings.Contains(text, "a manager runs") {
			return fmt.Errorf("exit code %d: %s", code, text)
		}

		return nil
	})
	m.Stop()

	before := u.protected()
	text, code := u.run()
	if says(u.t, text, "dry run: nothing was written"); code != 0 {
		u.t.Errorf("exit code %d: %s", code, text)
	}
	if after := u.protected(); !slices.Equal(before, after) {
		u.t.Errorf("a dry run has changed finalizers: they were on %v, and are on %v", before, after)
	}
	u.webhooksRemain()
	objects, err := u.list()
	must(u.t, err)
	text, code = u.run("--yes")
	if says(u.t, text, "no object has a finalizer of Arbor any more"); code != 0 {
		u.t.Fatalf("exit code %d: %s", code, text)
	}
	u.released()
	inCRD.released()
	u.gone(busy)
	for _, o := range objects {
		must(u.t, u.get(o)) // nothing else was deleted
	}
	must(u.t, inCRD.get(inBusy))

	// Each object, at once and in any order.
	u.remove(objects...)
	left, err := u.list()
	if must(u.t, err); len(left) > 0 {
		u.t.Errorf("%d objects are left, such as %T %s with the finalizers %v", len(left), left[0], left[0].GetName(), left[0].GetFinalizers())
	}
	u.removeCRDs()
}

// webhooksRemain runs the command while the API server asks a manager that is stopped. It
// fails, and reports what to do.
func (u *uninstall) webhooksRemain() {
	u.t.Helper()
	text := ""
	// A manager that had to be killed keeps the Lease for a while.
	u.eventually("the Lease is free", func() error {
		var code int
		if text, code = u.run("--yes"); code != 1 {
			return fmt.Errorf("exit code %d: %s", code, text)
		}

		return nil
	})
	says(u.t, text, "delete its ValidatingWebhookConfiguration", "could not be changed: run the command again")
	u.remove(&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "arbor"}})
	u.eventually("the API server asks no manager", func() error {
		return u.c.Create(u.t.Context(), u.pool("probe", "10.2.0.0/16", ""), client.DryRunAll)
	})
}

// removeCRDs deletes the CRDs, and the objects that are left with them.
func (u *uninstall) removeCRDs() {
	u.t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	must(u.t, u.c.List(u.t.Context(), list))
	deleted := 0
	for i := range list.Items {
		if list.Items[i].Spec.Group == v1alpha1.GroupVersion.Group {
			deleted++
			u.remove(&list.Items[i])
		}
	}
	if deleted != len(kindsOfPools) {
		u.t.Errorf("%d CRDs were deleted, want %d", deleted, len(kindsOfPools))
	}
	for i := range list.Items {
		if list.Items[i].Spec.Group != v1alpha1.GroupVersion.Group {
			continue
		}
		cluster.Eventually(u.t, "CRD "+list.Items[i].Name+" is deleted", func() error {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := u.c.Get(u.t.Context(), client.ObjectKeyFromObject(&list.Items[i]), crd); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("its conditions are %+v", crd.Status.Conditions), err)
			}

			return nil
		})
	}
}
