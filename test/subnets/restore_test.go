package subnets_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

var restoreOrders = flag.Int("orders", 3, "in how many random orders a backup is restored")

// The forms in which a backup comes back. Both drop status and UIDs, and keep
// annotations and finalizers.
const (
	kubectl = "kubectl" // any order; ownerReferences with UIDs of the past
	velero  = "velero"  // one kind after the other, in the order of the alphabet; no ownerReferences
)

// A backup is restored with new UIDs, in any order, while the manager and the garbage
// collector run: every claim has the block that it had, and a new claim has another one.
func TestRestoredWithNewUIDs(t *testing.T) {
	cases := map[string]*restore{
		"Velero":         {form: velero, seed: 100},
		"NoSubnets":      {form: kubectl, seed: 101, without: v1alpha1.SubnetKind},
		"NoClaims":       {form: velero, seed: 102, without: v1alpha1.SubnetClaimKind},
		"NoPools":        {form: kubectl, seed: 103, without: v1alpha1.SubnetPoolKind},
		"NoPoolClaims":   {form: velero, seed: 104, without: v1alpha1.SubnetPoolClaimKind},
		"VeleroNoSubnet": {form: velero, seed: 105, without: v1alpha1.SubnetKind},
	}
	for i := range *restoreOrders {
		cases[fmt.Sprintf("Order%d", i)] = &restore{form: kubectl, seed: uint64(i)}
	}
	c := newClient(t)
	m := server.StartManager(t, only, noWebhooks)
	each := func(step string, do func(*restore)) {
		t.Run(step, func(t *testing.T) {
			for name, r := range cases {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					r.t = t
					do(r)
				})
			}
		})
	}
	for _, r := range cases {
		r.world = newWorld(t, c)
	}
	newWorld(t, c).awaitCollector()
	each("Export", (*restore).export)
	m.Stop()
	each("Wipe", (*restore).wipe)
	if t.Failed() {
		t.FailNow()
	}
	server.StartManager(t, only, noWebhooks)
	each("Restore", func(r *restore) {
		r.restore()
		r.compare()
	})
}

// awaitCollector waits until the garbage collector handles the address API. It looks for
// new kinds every 30 seconds.
func (w *world) awaitCollector() {
	w.t.Helper()
	orphan := w.poolClaim("orphan", "nowhere", 24)
	orphan.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "absent", UID: "of-the-past"}}
	w.create(orphan)
	w.gone(orphan)
}

// A restore is a namespace that is exported, emptied and created again.
type restore struct {
	*world

	form    string
	without string // a kind that the backup does not have
	seed    uint64
	backup  []*unstructured.Unstructured
	had     map[string]string // blocks by claim
}

// poolsOfRestore are all pools; lab is the one of the SubnetPoolClaim.
var poolsOfRestore = []string{"p", "q", "lab"}

// fill creates two pools, a SubnetPoolClaim, and claims with blocks that are not the
// first free ones, so that a claim that is served again has another block.
func (r *restore) fill() {
	r.t.Helper()
	q := r.pool("q", "10.1.0.0/16", "")
	q.Spec.Strategy = v1alpha1.StrategyBuddy
	r.create(r.pool("p", "10.0.0.0/16", ""), q)
	early := []*v1alpha1.SubnetClaim{r.claim("p", "early-p", 24), r.claim("q", "early-q", 24), r.claim("lab", "early-lab", 24)}
	for _, claim := range early[:2] {
		r.create(claim)
		r.bound(claim)
	}
	r.create(r.poolClaim("lab", "p", 20), early[2])
	r.bound(early[2])
	r.had = map[string]string{}
	for _, claim := range []*v1alpha1.SubnetClaim{r.claim("p", "a", 24), r.claim("q", "b", 24), r.claim("lab", "c", 24)} {
		r.create(claim)
		r.had[claim.Name] = r.bound(claim)
	}
	r.had["lab"] = r.bound(r.claim("", "lab", 0)) // the block of the SubnetPoolClaim
	for _, claim := range early {
		r.remove(claim)
		r.gone(claim, newSubnet(r.ns, claim.Status.SubnetRef, ""))
	}
}

// export fills the namespace and reads all objects, when the claims have their blocks on
// record, in the form in which they come back.
func (r *restore) export() {
	r.t.Helper()
	r.fill()
	for name, cidr := range r.had {
		claim := r.claim("", name, 0)
		r.eventually("the block of claim "+name+" is on record", func() error {
			if err := r.get(claim); err != nil {
				return err
			}
			if got := claim.Annotations[v1alpha1.BlockAnnotation]; got != claim.Spec.PoolRef+"/"+cidr {
				return fmt.Errorf("the annotation is %q", got)
			}

			return nil
		})
	}
	objects, err := r.list()
	must(r.t, err)
	for _, o := range objects {
		kind, err := r.c.GroupVersionKindFor(o)
		must(r.t, err)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		must(r.t, err)
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(kind)
		delete(u.Object, "status")
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		if r.form == velero {
			u.SetOwnerReferences(nil)
		}
		r.backup = append(r.backup, u)
	}
}

// wipe deletes everything while no manager runs.
func (r *restore) wipe() {
	r.t.Helper()
	objects, err := r.list()
	must(r.t, err)
	for _, o := range objects {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		must(r.t, client.IgnoreNotFound(r.c.Patch(r.t.Context(), o, patch)))
		r.remove(o)
	}
	cluster.Eventually(r.t, "the namespace is empty", func() error {
		left, err := r.list()
		if len(left) > 0 {
			return fmt.Errorf("%d objects are left", len(left))
		}

		return err
	})
}

// restore creates the objects of the backup again, and a new claim among them. Now and
// then it waits until the manager has acted. What was left out comes at the end, except
// Subnets, which are not needed.
func (r *restore) restore() {
	r.t.Helper()
	random := rand.New(rand.NewPCG(r.seed, 1))
	fresh, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.claim("p", "new", 24))
	must(r.t, err)
	extra := &unstructured.Unstructured{Object: fresh}
	extra.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetClaimKind))
	delete(extra.Object, "status")

	var now, late []*unstructured.Unstructured
	for _, o := range append(slices.Clone(r.backup), extra) {
		if o.GetKind() == r.without {
			late = append(late, o)
		} else {
			now = append(now, o)
		}
	}
	random.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
	if r.form == velero {
		slices.SortStableFunc(now, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetKind(), b.GetKind()) })
	}
	r.recreate(random, now)
	if r.without == v1alpha1.SubnetKind {
		return
	}
	r.barrier()
	r.recreate(random, late)
}

func (r *restore) recreate(random *rand.Rand, objects []*unstructured.Unstructured) {
	r.t.Helper()
	for _, o := range objects {
		// The manager may have created it by now, such as the pool of a SubnetPoolClaim.
		if err := r.c.Create(r.t.Context(), o.DeepCopy()); apierrors.IsAlreadyExists(err) {
			r.merge(o)
		} else if err != nil {
			r.t.Fatal(err)
		}
		if random.IntN(3) == 0 {
			r.barrier()
		}
	}
}

// merge does with an object that exists what the form does: kubectl apply adds the
// annotations, labels and finalizers of the backup, Velero leaves it as it is.
func (r *restore) merge(backup *unstructured.Unstructured) {
	r.t.Helper()
	if r.form == velero {
		return
	}
	metadata := map[string]any{}
	for _, field := range []string{"annotations", "labels", "finalizers"} {
		if value, found, _ := unstructured.NestedFieldNoCopy(backup.Object, "metadata", field); found {
			metadata[field] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	must(r.t, err)
	must(r.t, r.c.Patch(r.t.Context(), backup.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// compare waits until every claim has what it had, then ends the restore, and checks the new claim.
func (r *restore) compare() {
	r.t.Helper()
	r.unchanged()
	fresh := r.claim("p", "new", 24)
	if must(r.t, r.get(fresh)); fresh.Status.Phase != v1alpha1.ClaimBound {
		r.waits(fresh, "PoolRestoring")
	}
	for _, name := range poolsOfRestore {
		p := r.pool(name, "", "")
		r.patch(p, func() {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[v1alpha1.PoolUIDAnnotation] = string(p.UID)
		})
	}
	r.bound(fresh)
	r.unchanged()
	must(r.t, r.exclusive())
	r.eventually("every Subnet belongs to one claim", r.owned)

	// It can be used as before: pools and claims can be deleted.
	r.removeAll()
}

// unchanged waits until every claim has the block that it had. One with another block
// fails the test at once.
func (r *restore) unchanged() {
	r.t.Helper()
	for name, cidr := range r.had {
		claim := r.claim("", name, 0)
		r.eventually(fmt.Sprintf("claim %s has %s", name, cidr), func() error {
			if err := r.get(claim); err != nil {
				return err
			}
			if got := claim.Status.AllocatedCIDR; got != "" && got != cidr {
				r.t.Fatalf("claim %s had %s and has %s now", name, cidr, got)
			}
			if claim.Status.Phase != v1alpha1.ClaimBound {
				return fmt.Errorf("it is %+v", claim.Status)
			}

			return nil
		})
	}
}

// childRestored deletes a child pool that was created by hand, and restores it: first the
// Subnet that backs it, and the pool when the manager has acted on that.
func childRestored(w *world) {
	w.create(w.pool("p", "10.0.0.0/16", ""), w.pool("lab", "10.0.16.0/20", "p"))
	claim := w.claim("lab", "c", 24)
	w.create(claim)
	w.bound(claim)
	backup := newSubnet(w.ns, "pool.lab", "")
	must(w.t, w.get(backup))
	w.remove(claim)
	w.gone(claim)
	pool := w.pool("lab", "10.0.16.0/20", "p")
	w.remove(pool)
	w.gone(pool, backup)

	restored := &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: backup.Name, Labels: backup.Labels, Finalizers: backup.Finalizers},
		Spec:       backup.Spec,
	}
	w.create(restored)
	uid := restored.UID
	w.judged(restored, v1alpha1.SubnetAllocated)
	w.barrier()
	pool, claim = w.pool("lab", "10.0.16.0/20", "p"), w.claim("lab", "c", 24)
	w.create(pool, claim)
	w.bound(claim)
	must(w.t, w.get(restored))
	must(w.t, w.get(pool))
	if restored.UID != uid || restored.Status.PoolUID != pool.UID {
		w.t.Errorf("the pool %s was restored with Subnet %s, and has Subnet %s of pool %s", pool.UID, uid, restored.UID, restored.Status.PoolUID)
	}
}
