package subnets_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// opened waits until a pool has a range.
func (w *world) opened(p *v1alpha1.SubnetPool, cidr string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("pool %s has %s", p.Name, cidr), func() error {
		if err := w.get(p); err != nil {
			return err
		}
		if p.Status.CIDR != cidr || !ready(p.Status.Conditions, metav1.ConditionTrue) {
			return fmt.Errorf("it is %+v", p.Status)
		}

		return nil
	})
}

func childOverQuota(w *world) {
	limit := w.limit(subnetCount, "0")
	child := w.pool("child", "10.0.16.0/20", "root")
	w.create(w.pool("root", "10.0.0.0/16", ""), child)
	w.refused(child, "NotCreated")
	// At first the API server may answer that it does not know yet how many there are.
	w.eventually("the status repeats the error of the API server", func() error {
		if err := w.get(child); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(child.Status.Conditions, v1alpha1.ConditionReady); c == nil || !strings.Contains(c.Message, "exceeded quota") {
			return fmt.Errorf("the condition is %+v", c)
		}

		return nil
	})
	w.patch(limit, func() { limit.Spec.Hard[subnetCount] = resource.MustParse("5") })
	w.opened(child, "10.0.16.0/20")
}

// childMoved edits the range of a child pool that has a block and is not open, because a
// Subnet of a pool that does not exist is there.
func childMoved(w *world) {
	root, child, orphan := w.pool("root", "10.0.0.0/16", ""), w.pool("child", "10.0.16.0/20", "root"), newSubnet(w.ns, "orphan", "10.0.17.0/24")
	orphan.Spec.PoolRef = "nowhere"
	w.create(root)
	w.opened(root, "10.0.0.0/16")
	w.create(orphan)
	pending := orphan.DeepCopy()
	orphan.Status.Phase = v1alpha1.SubnetAllocated
	must(w.t, w.c.Status().Patch(w.t.Context(), orphan, client.MergeFrom(pending)))
	w.create(child)
	w.refused(child, "Orphans")
	must(w.t, w.resize(child.Name, "10.0.32.0/20"))
	w.refused(child, "OutsideBlock")
	w.remove(orphan)
	w.gone(orphan)
	must(w.t, w.resize(child.Name, "10.0.16.0/20"))
	w.opened(child, "10.0.16.0/20")
	list := &v1alpha1.SubnetList{}
	must(w.t, w.c.List(w.t.Context(), list, client.InNamespace(w.ns)))
	for i := range list.Items {
		if s := &list.Items[i]; s.Spec.PoolRef == "root" && s.Spec.CIDR != "10.0.16.0/20" {
			w.t.Errorf("Subnet %s still keeps %s", s.Name, s.Spec.CIDR)
		}
	}
}

func editedLabel(w *world) {
	claim := w.poolClaim("lab", "root", 20)
	w.create(w.pool("root", "10.0.0.0/16", ""), claim)
	w.awaitPoolClaim(claim, metav1.ConditionTrue, "Bound")
	block := w.claim("root", "lab", 20)
	w.patch(block, func() { block.Labels = map[string]string{v1alpha1.PoolClaimLabel: "other"} })
	w.eventually("the label is repaired", func() error {
		if err := w.get(block); err != nil {
			return err
		}
		if label := block.Labels[v1alpha1.PoolClaimLabel]; label != "lab" {
			return fmt.Errorf("it is %q", label)
		}

		return nil
	})
	w.awaitPoolClaim(claim, metav1.ConditionTrue, "Bound")
	// An object of another name does not become the SubnetPoolClaim's.
	solo, other := w.pool("solo", "10.1.0.0/16", ""), w.claim("root", "edge", 24)
	for _, o := range []client.Object{solo, other} {
		o.SetLabels(map[string]string{v1alpha1.PoolClaimLabel: "lab"})
		w.create(o)
	}
	w.bound(other)
	w.opened(solo, "10.1.0.0/16")
	w.remove(claim)
	w.gone(claim, block, w.pool("lab", "", ""))
	must(w.t, w.get(solo))
	must(w.t, w.get(other))
	if solo.DeletionTimestamp != nil || other.DeletionTimestamp != nil {
		w.t.Error("the SubnetPoolClaim has deleted objects that were not made for it")
	}
}

func longName(w *world) {
	name := strings.Repeat("long-", 30) + "name"
	claim := w.poolClaim(name, "root", 20)
	w.create(w.pool("root", "10.0.0.0/16", ""), claim)
	w.awaitPoolClaim(claim, metav1.ConditionTrue, "Bound")
	inner := w.claim(name, "inner", 24)
	w.create(inner)
	w.bound(inner)
	w.remove(inner, claim)
	w.gone(inner, claim, w.pool(name, "", ""), w.claim("root", name, 20))
}

// cools waits until a Subnet is being deleted. Until then, a claim of the same name takes it
// over, like that of a backup.
func (w *world) cools(name string) {
	w.t.Helper()
	s := newSubnet(w.ns, name, "")
	w.eventually("Subnet "+name+" is being deleted", func() error {
		if err := w.get(s); err != nil {
			return err
		}
		if s.DeletionTimestamp == nil {
			return errors.New("it is not")
		}

		return nil
	})
}

func reusedChildBlock(w *world) {
	root := w.pool("root", "10.0.0.0/16", "")
	root.Spec.ReuseAfter = &metav1.Duration{Duration: time.Hour}
	claim := w.poolClaim("lab", "root", 20)
	w.create(root, claim)
	w.awaitPoolClaim(claim, metav1.ConditionTrue, "Bound")
	pool := w.pool("lab", "", "")
	must(w.t, w.get(pool))
	first := pool.Spec.CIDR
	block := w.claim("root", "lab", 20)
	must(w.t, w.get(block))
	w.remove(claim)
	w.gone(claim, pool)
	w.cools(block.Status.SubnetRef)
	again := w.poolClaim("lab", "root", 20)
	w.create(again)
	w.awaitPoolClaim(again, metav1.ConditionTrue, "Bound")
	must(w.t, w.get(pool))
	if pool.Spec.CIDR == first {
		w.t.Errorf("%s was allocated again at once", first)
	}
	// The time does not hold up the deletion of anything.
	w.remove(again)
	w.gone(again)
	w.remove(root)
	w.gone(root)
}

func poolClaimOverQuota(w *world) {
	limit := w.limit(claimCount, "0")
	claim := w.poolClaim("lab", "root", 20)
	w.create(w.pool("root", "10.0.0.0/16", ""), claim)
	w.awaitPoolClaim(claim, metav1.ConditionFalse, "NotCreated")
	if !strings.Contains(claim.Status.Message, "exceeded quota") {
		w.t.Errorf("the status does not repeat the error of the API server: %s", claim.Status.Message)
	}
	w.patch(limit, func() { limit.Spec.Hard[claimCount] = resource.MustParse("5") })
	w.awaitPoolClaim(claim, metav1.ConditionTrue, "Bound")
}

func childOfClosed(w *world) {
	root := w.pool("root", "10.0.0.0/16", "")
	w.create(root)
	w.opened(root, "10.0.0.0/16")
	closed, child := w.pool("closed", "10.0.0.0/15", ""), w.pool("child", "10.1.0.0/20", "closed")
	w.create(closed, child)
	w.refused(closed, "Overlap")
	w.refused(child, "ParentNotReady")
	lost, below := w.pool("lost", "10.9.0.0/16", "nowhere"), w.pool("below", "10.9.0.0/20", "lost")
	w.create(lost, below)
	w.refused(lost, "NoParent")
	w.refused(below, "ParentNotReady")
	w.remove(root)
	w.opened(child, "10.1.0.0/20")
}

// forgedClaimUID creates a Subnet that names a claim which asks for something else.
func forgedClaimUID(w *world) {
	claim := w.claim("p", "c", 26)
	w.create(claim)
	forged := w.forged("p", "forged", "10.0.0.0/25")
	forged.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: claim.Name, UID: claim.UID}
	w.create(forged, w.pool("p", "10.0.0.0/24", ""))
	w.judged(forged, v1alpha1.SubnetAllocated)
	w.bound(claim)
}

func sameClusterReused(w *world) {
	root := w.pool("root", "10.0.0.0/16", "")
	root.Spec.ReuseAfter = &metav1.Duration{Duration: time.Hour}
	claim := w.claim("root", "edge", 24)
	w.create(root, claim)
	first := w.bound(claim)
	w.remove(claim)
	w.gone(claim)
	w.cools(claim.Status.SubnetRef)
	again := w.claim("root", "edge", 24)
	w.create(again)
	if second := w.bound(again); second == first {
		w.t.Errorf("%s was allocated again at once", first)
	}
}
