package subnets_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// Two managers without leader election and without webhooks, while clients create and
// delete claims, SubnetPoolClaims and child pools and resize pools, and either manager is
// killed again and again. No address ever has two owners, everything is served that can
// be, and everything can be deleted at the end.
func TestManagersKilled(t *testing.T) {
	const clients, kills, seed = 6, 8, 1
	c := newClient(t)
	w := newWorld(t, c)
	buddy := w.pool("buddy", "10.16.0.0/12", "")
	buddy.Spec.Strategy = v1alpha1.StrategyBuddy
	w.create(w.pool("linear", "10.0.0.0/12", ""), buddy, w.pool("low", rangesOf["low"][0], ""), w.pool("high", rangesOf["high"][0], ""))
	managers := []*cluster.Manager{server.StartManager(t, only, noWebhooks, "--restore-grace=10s"), server.StartManager(t, only, noWebhooks, "--restore-grace=10s")}

	var done atomic.Int64
	wait := inParallel(clients, clients, func(i int) error {
		u := &user{world: w, name: fmt.Sprintf("u%d", i), random: rand.New(rand.NewPCG(seed, uint64(i)))}
		for range stepsOfUser {
			if err := u.step(); err != nil {
				return err
			}
			done.Add(1)
		}

		return nil
	})
	random := rand.New(rand.NewPCG(seed, clients))
	for i := range kills {
		w.eventually("there is something to be interrupted", func() error {
			if n := done.Load(); n < int64((i+1)*clients*stepsOfUser/(kills+1)) {
				return fmt.Errorf("%d steps", n)
			}

			return nil
		})
		victim := random.IntN(len(managers))
		managers[victim].Kill()
		managers[victim] = server.LaunchManager(t, only, noWebhooks, "--restore-grace=10s")
	}
	must(t, wait())
	w.eventually("every claim is bound, or reports why not", w.answered)
	w.eventually("every Subnet belongs to one claim or pool", w.owned)
	must(t, w.exclusive())
	w.removeAll()
}

// stepsOfUser is how often each client does something.
const stepsOfUser = 60

// rangesOf are what two pools are resized to. Both cannot have their large one.
var rangesOf = map[string][2]string{
	"low":  {"10.64.0.0/17", "10.64.0.0/16"},
	"high": {"10.64.128.0/17", "10.64.0.0/16"},
}

// A user creates and deletes objects at random.
type user struct {
	*world

	name   string
	random *rand.Rand
	count  int
	mine   []client.Object
	pools  []string // its own child pools, some of which may be deleted
}

// step does one thing.
func (u *user) step() error {
	u.count++
	name := fmt.Sprintf("%s-%d", u.name, u.count)
	parent := []string{"linear", "buddy"}[u.random.IntN(2)]
	switch n := u.random.IntN(12); {
	case n < 6:
		pools := append([]string{"linear", "buddy", "low", "high"}, u.pools...)

		return u.make(u.claim(pools[u.random.IntN(len(pools))], name, int32(24+u.random.IntN(4))))
	case n < 8:
		return u.drop()
	case n == 8:
		u.pools = append(u.pools, name)

		return u.make(u.poolClaim(name, parent, 22))
	case n == 9:
		u.pools = append(u.pools, name)
		cidr := fmt.Sprintf("10.%d.%d.0/22", map[string]int{"linear": 0, "buddy": 16}[parent], 4*u.random.IntN(64))

		return u.make(u.pool(name, cidr, parent))
	case n == 10:
		pool := []string{"low", "high"}[u.random.IntN(2)]

		return u.resize(pool, rangesOf[pool][u.random.IntN(2)])
	default: // a Subnet by hand, of addresses that may be taken
		s := newSubnet(u.ns, name, fmt.Sprintf("10.0.%d.0/25", u.random.IntN(64)))
		s.Spec.PoolRef = "linear"

		return u.make(s)
	}
}

func (u *user) make(o client.Object) error {
	u.mine = append(u.mine, o)

	return u.c.Create(u.t.Context(), o)
}

// drop deletes an object of the user's.
func (u *user) drop() error {
	if len(u.mine) == 0 {
		return nil
	}
	i := u.random.IntN(len(u.mine))
	o := u.mine[i]
	u.mine = append(u.mine[:i], u.mine[i+1:]...)

	return client.IgnoreNotFound(u.c.Delete(u.t.Context(), o))
}

// answered returns an error while a claim has no block and reports no reason. Large pools have room
// for all.
func (w *world) answered() error {
	claims, poolClaims := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolClaimList{}
	for _, list := range []client.ObjectList{claims, poolClaims} {
		must(w.t, w.c.List(w.t.Context(), list, client.InNamespace(w.ns)))
	}
	var open []error
	for _, claim := range claims.Items {
		roomy := claim.Spec.PoolRef == "linear" || claim.Spec.PoolRef == "buddy"
		if claim.Status.Phase != v1alpha1.ClaimBound && (roomy || !ready(claim.Status.Conditions, metav1.ConditionFalse)) {
			open = append(open, fmt.Errorf("claim %s of pool %s is %+v", claim.Name, claim.Spec.PoolRef, claim.Status))
		}
	}
	for _, claim := range poolClaims.Items {
		if claim.DeletionTimestamp == nil && claim.Status.Phase != v1alpha1.ClaimBound {
			open = append(open, fmt.Errorf("pool claim %s is %+v", claim.Name, claim.Status))
		}
	}

	return errors.Join(open...)
}

// owned returns an error while a Subnet was taken for a claim that has another block or
// does not exist, or a Bound claim has no Allocated Subnet.
func (w *world) owned() error {
	claims, subnets := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetList{}
	for _, list := range []client.ObjectList{claims, subnets} {
		must(w.t, w.c.List(w.t.Context(), list, client.InNamespace(w.ns)))
	}
	holds := map[string]string{}
	for _, claim := range claims.Items {
		if claim.Status.Phase == v1alpha1.ClaimBound {
			holds[claim.Name] = claim.Status.SubnetRef
		}
	}
	var wrong []error
	for _, s := range subnets.Items {
		if s.Spec.ClaimRef == nil {
			continue
		}
		if holds[s.Spec.ClaimRef.Name] != s.Name || s.Status.Phase != v1alpha1.SubnetAllocated {
			wrong = append(wrong, fmt.Errorf("Subnet %s of claim %s is %q", s.Name, s.Spec.ClaimRef.Name, s.Status.Phase))
		}
		delete(holds, s.Spec.ClaimRef.Name)
	}
	if len(holds) > 0 {
		wrong = append(wrong, fmt.Errorf("claims without a Subnet: %v", holds))
	}

	return errors.Join(wrong...)
}

// removeAll deletes everything at once, and waits until it is gone.
func (w *world) removeAll() {
	w.t.Helper()
	for _, kind := range []client.Object{&v1alpha1.SubnetPoolClaim{}, &v1alpha1.SubnetPool{}, &v1alpha1.SubnetClaim{}} {
		must(w.t, w.c.DeleteAllOf(w.t.Context(), kind, client.InNamespace(w.ns)))
	}
	// Subnets that were made by hand stay until they are deleted.
	subnets := &v1alpha1.SubnetList{}
	must(w.t, w.c.List(w.t.Context(), subnets, client.InNamespace(w.ns)))
	for i := range subnets.Items {
		if s := &subnets.Items[i]; s.Spec.ClaimRef == nil && s.Spec.Backs == nil {
			w.remove(s)
		}
	}
	w.eventually("everything is deleted", func() error {
		left, err := w.list()
		if len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("%d objects are left, such as %T %s with the finalizers %v", len(left), left[0], left[0].GetName(), left[0].GetFinalizers()))
		}

		return err
	})
}

// list returns all objects of the address API in a namespace.
func (w *world) list() ([]client.Object, error) {
	pools, subnets := &v1alpha1.SubnetPoolList{}, &v1alpha1.SubnetList{}
	claims, poolClaims := &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolClaimList{}
	var err error
	for _, list := range []client.ObjectList{pools, subnets, claims, poolClaims} {
		err = errors.Join(err, w.c.List(w.t.Context(), list, client.InNamespace(w.ns)))
	}
	var all []client.Object
	for i := range claims.Items {
		all = append(all, &claims.Items[i])
	}
	for i := range poolClaims.Items {
		all = append(all, &poolClaims.Items[i])
	}
	for i := range pools.Items {
		all = append(all, &pools.Items[i])
	}
	for i := range subnets.Items {
		all = append(all, &subnets.Items[i])
	}

	return all, err
}
