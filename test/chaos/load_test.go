package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/invariant"
)

// How much there is at most of what comes and goes.
const (
	maxClaims     = 100
	maxPoolClaims = 4
	maxGroups     = 20
	maxGuests     = 2
	compositions  = 3
	// patience is how long a single request of the load may take.
	patience = 10 * time.Second
)

// A load is a client of a cluster that records the results it got.
type load struct {
	client.Client
	testing.TB

	ns   string
	stop context.CancelFunc
	all  sync.WaitGroup
	// always are those that go on between two loads.
	always sync.WaitGroup

	mu      sync.Mutex
	ledger  invariant.Ledger
	unsure  map[invariant.Object]bool
	acked   int
	doubts  int
	names   int
	rounds  map[string]int
	random  *rand.Rand
	refused map[string]int
	// written and replicas are the last values of other writers.
	written, replicas int
	stage             stage
	calm              bool
	counts            map[string]int
}

func newLoad(t testing.TB, c client.Client) *load {
	t.Helper()

	l := &load{
		Client: c, TB: t, ns: cluster.Namespace(t, c), replicas: 1,
		ledger: invariant.Ledger{Held: map[invariant.Object]bool{}, Blocks: map[types.NamespacedName]string{}},
		unsure: map[invariant.Object]bool{}, rounds: map[string]int{}, refused: map[string]int{}, counts: map[string]int{},
		random: rand.New(rand.NewPCG(*seed, 7)),
	}
	l.ledger.History = l.history()

	return l
}

// start runs all clients until stop is called.
func (l *load) start() {
	ctx, cancel := context.WithCancel(l.Context())
	l.stop = cancel
	for _, work := range []struct {
		every time.Duration
		do    func(context.Context)
	}{
		{25 * time.Millisecond, l.claim},
		{150 * time.Millisecond, l.poolClaim},
		{100 * time.Millisecond, l.group},
		{250 * time.Millisecond, l.inputs},
		{400 * time.Millisecond, l.guest},
		{100 * time.Millisecond, l.workload},
		{250 * time.Millisecond, l.leaf},
		{150 * time.Millisecond, l.hook},
		{50 * time.Millisecond, l.scaling},
		{150 * time.Millisecond, l.relic},
	} {
		l.all.Go(func() { every(ctx, work.every, work.do) })
	}
}

// end stops it, finds out what became of requests without an answer, and leaves inputs
// that are known. It may need managers: revive starts those that have ended.
func (l *load) end(revive func()) {
	l.Helper()
	l.stop()
	l.all.Wait()
	cluster.Eventually(l, "the load knows what it has done", func() error {
		revive()

		return errors.Join(l.finish(), l.resolve())
	})
}

// note writes down what came of a request about an object that must be there, or not.
func (l *load) note(o client.Object, kind string, there bool, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := invariant.Object{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	var said apierrors.APIStatus
	switch {
	case err == nil:
		l.acked++
		l.ledger.Held[key] = there
	case errors.As(err, &said) && said.Status().Code < 500 && !apierrors.IsTooManyRequests(err):
		l.refused[err.Error()]++ // and nothing was done
	default:
		l.doubts++
		l.unsure[key] = true
	}

	return err == nil
}

// resolve looks what became of those that were not answered.
func (l *load) resolve() error {
	for key := range maps.Clone(l.unsure) {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kindsOfLoad[key.Kind].GroupVersion().WithKind(key.Kind))
		err := l.Get(l.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, o)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		l.ledger.Held[key] = err == nil && o.GetDeletionTimestamp() == nil
		delete(l.unsure, key)
	}

	return nil
}

// forget leaves out what is gone, and notes which block each claim has.
func (l *load) forget(s invariant.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.ledger.Held, func(_ invariant.Object, held bool) bool { return !held })
	clear(l.ledger.Blocks)
	for _, c := range s.Inventory.Claims {
		l.ledger.Blocks[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c.Status.AllocatedCIDR
	}
}

// held returns the names of a kind that are there, and are known to be.
func (l *load) held(kind string, with func(name string) bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for o, there := range l.ledger.Held {
		if o.Kind == kind && there && !l.unsure[o] && with(o.Name) {
			names = append(names, o.Name)
		}
	}

	return names
}

func (l *load) name(prefix string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names++

	return fmt.Sprintf("%s-%d", prefix, l.names)
}

func (l *load) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.random.IntN(n)
}

// progress is how many requests were acknowledged.
func (l *load) progress() int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.acked
}

func (l *load) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: l.ns, Name: name}
}

// claim makes a claim, or deletes one, or asks one what it has.
func (l *load) claim(ctx context.Context) {
	mine := l.held(v1alpha1.SubnetClaimKind, func(name string) bool { return name[0] == 'c' })
	if n := l.draw(10); len(mine) >= maxClaims || len(mine) > 10 && n < 4 {
		o := &v1alpha1.SubnetClaim{ObjectMeta: l.meta(mine[l.draw(len(mine))])}
		if n == 0 && len(mine) < maxClaims {
			l.ask(ctx, o)

			return
		}
		l.note(o, v1alpha1.SubnetClaimKind, false, l.Delete(ctx, o))

		return
	}
	o := &v1alpha1.SubnetClaim{ObjectMeta: l.meta(l.name("c"))}
	o.Spec = v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: o.Name, BlockSize: new(int32(26 + l.draw(4)))}
	l.note(o, v1alpha1.SubnetClaimKind, true, l.Create(ctx, o))
}

// ask notes the block that a claim reports it has.
func (l *load) ask(ctx context.Context, o *v1alpha1.SubnetClaim) {
	if l.Get(ctx, client.ObjectKeyFromObject(o), o) != nil || o.Status.Phase != v1alpha1.ClaimBound {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(o)
	if told := l.ledger.Blocks[key]; told != "" && told != o.Status.AllocatedCIDR {
		l.Errorf("claim %s had %s, and then %s", o.Name, told, o.Status.AllocatedCIDR)
	}
	l.ledger.Blocks[key] = o.Status.AllocatedCIDR
}

// poolClaim makes a pool with a claim in it, or deletes one: the claim first.
func (l *load) poolClaim(ctx context.Context) {
	all := l.held(v1alpha1.SubnetPoolClaimKind, func(string) bool { return true })
	if len(all) < maxPoolClaims && l.draw(2) == 0 {
		o := &v1alpha1.SubnetPoolClaim{ObjectMeta: l.meta(l.name("pool")), Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "p", DesiredBlockSize: 22}}
		if !l.note(o, v1alpha1.SubnetPoolClaimKind, true, l.Create(ctx, o)) {
			return
		}
		in := &v1alpha1.SubnetClaim{ObjectMeta: l.meta("in-" + o.Name)}
		in.Spec = v1alpha1.SubnetClaimSpec{PoolRef: o.Name, ClusterID: in.Name, BlockSize: new(int32(26))}
		l.note(in, v1alpha1.SubnetClaimKind, true, l.Create(ctx, in))

		return
	}
	if len(all) < 2 {
		return
	}
	name := all[l.draw(len(all))]
	in := &v1alpha1.SubnetClaim{ObjectMeta: l.meta("in-" + name)}
	if err := l.Delete(ctx, in); !l.note(in, v1alpha1.SubnetClaimKind, false, err) && !apierrors.IsNotFound(err) {
		return
	}
	o := &v1alpha1.SubnetPoolClaim{ObjectMeta: l.meta(name)}
	l.note(o, v1alpha1.SubnetPoolClaimKind, false, l.Delete(ctx, o))
}

// group makes a PodGroup, or one that must be rejected, or deletes one.
func (l *load) group(ctx context.Context) {
	mine := l.held(v2alpha2.PodGroupKind, func(string) bool { return true })
	if len(mine) >= maxGroups {
		o := &v2alpha2.PodGroup{ObjectMeta: l.meta(mine[l.draw(len(mine))])}
		l.note(o, v2alpha2.PodGroupKind, false, l.Delete(ctx, o))

		return
	}
	o, good := group(l.ns, l.name("g"), "workers"), true
	if l.draw(3) == 0 {
		o, good = group(l.ns, l.name("bad"), "Workers"), false
	}
	err := l.Create(ctx, o)
	if err == nil && !good {
		l.Errorf("PodGroup %s was let in", o.Name)
	}
	l.note(o, v2alpha2.PodGroupKind, true, err)
}

func group(ns, name, subgroup string) *v2alpha2.PodGroup {
	return &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v2alpha2.PodGroupSpec{MinMember: new(int32(1)), SubGroups: []v2alpha2.SubGroup{{Name: subgroup, MinMember: new(int32(1))}}},
	}
}

// inputs changes those of the compositions that stay.
func (l *load) inputs(ctx context.Context) {
	for i := range compositions {
		_ = l.input(ctx, fmt.Sprintf("app-%d", i), 1)
	}
}

// input writes the next round of an input. One whose writing was not acknowledged is
// written again: it may have been.
func (l *load) input(ctx context.Context, of string, step int) error {
	l.mu.Lock()
	l.rounds[of] += step
	o := &corev1.ConfigMap{ObjectMeta: l.meta("in-" + of), Data: map[string]string{"round": strconv.Itoa(l.rounds[of])}}
	l.mu.Unlock()
	err := l.Update(ctx, o)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.acked++
	} else {
		l.doubts++
	}

	return err
}

// guest makes a composition that goes again.
func (l *load) guest(ctx context.Context) {
	mine := l.held(enov1.CompositionKind, func(name string) bool { return name[0] == 'g' })
	if len(mine) >= maxGuests {
		o := &enov1.Composition{ObjectMeta: l.meta(mine[l.draw(len(mine))])}
		l.note(o, enov1.CompositionKind, false, l.Delete(ctx, o))

		return
	}
	o := l.composition(l.name("guest"), "maps", "guest")
	l.note(o, enov1.CompositionKind, true, l.Create(ctx, o))
}

// finish writes the last inputs, and returns the expected results.
func (l *load) finish() error {
	l.ledger.Made = nil
	for i := range compositions {
		name := fmt.Sprintf("app-%d", i)
		if err := l.input(l.Context(), name, 0); err != nil {
			return err
		}
		l.ledger.Made = append(l.ledger.Made, mapsOf(l.ns, name, l.rounds[name])...)
	}
	if err := l.input(l.Context(), workload, 1-l.rounds[workload]%2); err != nil {
		return err
	}
	l.ledger.Made = append(l.ledger.Made, dropped(l.ns, l.rounds[workload]))
	if err := l.finishDeliveries(); err != nil {
		return err
	}
	l.ledger.Made = append(l.ledger.Made, l.expected()...)

	return nil
}
