package delivery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	delivered = 1000 // resources in a round
	drifting  = 50
	// deliveryRounds is how often both ways are measured: laps differ by a tenth.
	deliveryRounds = 5

	// sliceSize is how many bytes of manifests synthesis puts into a slice.
	sliceSize = 512 << 10
	// applier is the field manager of the delivery.
	applier = "eno"
)

// A controlPlane is a control plane that has compositions.
type controlPlane struct {
	client.WithWatch

	up *cluster.Up
}

func newControlPlane(ctx context.Context, u *cluster.Up) (*controlPlane, error) {
	plain, err := u.NewClient(nil)
	if err != nil {
		return nil, err
	}
	if err := cluster.Define(ctx, plain, enov1.GroupVersion, enov1.CompositionKind, enov1.ResourceSliceKind); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(u.Config)
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.NewWithWatch(config, client.Options{Scheme: plain.Scheme()})

	return &controlPlane{c, u}, err
}

// Speed measures how fast resources are delivered, and how fast a plain loop
// would apply them; then what they cost at rest, and how fast drift is corrected.
func Speed(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		d, err := newControlPlane(ctx, u)
		if err != nil {
			return err
		}
		all, err := d.speed(ctx)
		if err != nil {
			return err
		}
		b.Show(all...)
		m, err := d.manager(ctx, "warm-last")
		if err != nil {
			return err
		}
		defer m.Stop()
		if _, _, err := d.deliver(ctx, m, "settled", delivered, 1); err != nil {
			return err
		}
		if err := d.settled(ctx, "settled", delivered); err != nil {
			return err
		}
		idle, err := d.idle(ctx)
		if err != nil {
			return err
		}
		b.Show(idle...)
		drift, err := d.drift(ctx, "settled")
		if err != nil {
			return err
		}
		b.Show(drift...)

		return nil
	})
}

// manager starts one that delivers and nothing else, and has it deliver something,
// so that everything is warm.
func (d *controlPlane) manager(ctx context.Context, warm string) (*cluster.Manager, error) {
	m, err := d.up.Manager(d.up.Administrator(), "--controllers=delivery", "--webhooks=false", "--log-level=error") //nolint:contextcheck // it ends when it is stopped
	if err != nil {
		return nil, err
	}
	if err = m.Await(); err == nil {
		_, _, err = d.deliver(ctx, m, warm, 2*harness.Clients, 1)
	}
	if err != nil {
		m.Stop()

		return nil, err
	}

	return m, nil
}

// A lap is one way to bring resources to a cluster: first when there are none, and
// then when all of them change.
type lap struct{ made, changed, requests, cpu float64 }

// speed compares both ways, in turns and in both orders, so that whatever else the machine does
// is to the disadvantage of both.
func (d *controlPlane) speed(ctx context.Context) ([]harness.Result, error) {
	var plain, ours []lap
	for i := range deliveryRounds + 1 {
		var p, o lap
		err := harness.InTurns(i, func() (err error) {
			p, err = d.plainRound(ctx, fmt.Sprintf("plain-%d", i))

			return err
		}, func() (err error) {
			o, err = d.deliveredRound(ctx, fmt.Sprintf("delivered-%d", i))

			return err
		})
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first round warms everything up
			plain, ours = append(plain, p), append(ours, o)
		}
	}
	of := func(all []lap, figure func(lap) float64) float64 {
		var values []float64
		for _, r := range all {
			values = append(values, figure(r))
		}

		return harness.Median(values)
	}
	made := func(r lap) float64 { return r.made }
	changed := func(r lap) float64 { return r.changed }
	ratio := func(figure func(lap) float64) float64 {
		var values []float64
		for i := range ours {
			values = append(values, figure(ours[i])/figure(plain[i]))
		}

		return harness.Median(values)
	}

	return []harness.Result{
		{Name: "delivery/plain", Value: of(plain, made)},
		{Name: "delivery/delivered", Value: of(ours, made)},
		{Name: "delivery/ratio", Value: ratio(made)},
		{Name: "delivery/plain-changes", Value: of(plain, changed)},
		{Name: "delivery/delivered-changes", Value: of(ours, changed)},
		{Name: "delivery/ratio-changes", Value: ratio(changed)},
		{Name: "delivery/requests", Value: of(ours, func(r lap) float64 { return r.requests })},
		{Name: "delivery/cpu", Value: of(ours, func(r lap) float64 { return r.cpu })},
	}, nil
}

// plainRound applies each resource and does nothing else, while no manager runs.
func (d *controlPlane) plainRound(ctx context.Context, ns string) (r lap, err error) {
	if err := d.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return r, err
	}
	for rev, speed := range []*float64{&r.made, &r.changed} {
		all, err := resources(ns, delivered, rev)
		if err != nil {
			return r, err
		}
		*speed, err = harness.PerSecond(delivered, func(i int) error {
			return d.Apply(ctx, client.ApplyConfigurationFromUnstructured(all[i-1]), client.ForceOwnership, client.FieldOwner(applier))
		})
		if err != nil {
			return r, err
		}
		fmt.Fprintf(os.Stderr, "  plain loop: %s %.2f s\n", [...]string{"made", "changed"}[rev], delivered / *speed)
		if err := d.settled(ctx, ns, delivered); err != nil {
			return r, err
		}
	}

	return r, nil
}

// deliveredRound has a manager of its own.
func (d *controlPlane) deliveredRound(ctx context.Context, ns string) (r lap, err error) {
	m, err := d.manager(ctx, "warm-"+ns)
	if err != nil {
		return r, err
	}
	defer m.Stop()
	asked, err := m.Value("rest_client_requests_total")
	if err != nil {
		return r, err
	}
	spent, err := harness.CPU(m.PID())
	if err != nil {
		return r, err
	}
	for rev, speed := range []*float64{&r.made, &r.changed} {
		took, requests, err := d.deliver(ctx, m, ns, delivered, rev)
		if err != nil {
			return r, err
		}
		*speed = delivered / took.Seconds()
		fmt.Fprintf(os.Stderr, "  arbor-manager: %s %.2f s\n", [...]string{"made", "changed"}[rev], took.Seconds())
		if rev == 0 {
			now, err := harness.CPU(m.PID())
			if err != nil {
				return r, err
			}
			r.requests, r.cpu = (requests-asked)/delivered, (now-spent)/delivered
		}
		if err := d.settled(ctx, ns, delivered); err != nil {
			return r, err
		}
	}
	// The next manager has nothing to do with these.
	err = d.DeleteAllOf(ctx, &enov1.Composition{}, client.InNamespace(ns))

	return r, err
}

// deliver makes a composition deliver a revision. It measures the time from the moment when the
// slices exist and are in the status of the composition to the moment when all are reconciled, and
// returns the requests of the manager up to then.
func (d *controlPlane) deliver(ctx context.Context, m *cluster.Manager, ns string, n, rev int) (time.Duration, float64, error) {
	c, err := d.composition(ctx, ns)
	if err != nil {
		return 0, 0, err
	}
	all, err := resources(ns, n, rev)
	if err != nil {
		return 0, 0, err
	}
	next, err := d.synthesis(ctx, c, all)
	if err != nil {
		return 0, 0, err
	}
	const actions = `eno_reconciliation_actions_total`
	before, err := m.Value(actions)
	if err != nil {
		return 0, 0, err
	}
	slices := &metav1.PartialObjectMetadataList{}
	slices.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))
	written, err := d.Watch(ctx, slices, client.InNamespace(ns))
	if err != nil {
		return 0, 0, err
	}
	defer written.Stop()
	began := time.Now()
	c.Status.PreviousSynthesis, c.Status.CurrentSynthesis = c.Status.CurrentSynthesis, next
	if err := d.Status().Update(ctx, c); err != nil {
		return 0, 0, err
	}
	ended, err := onEvents(ctx, written, func() (bool, error) {
		now, err := m.Value(actions)
		if err != nil || now < before+float64(n) {
			return false, err
		}

		return d.reconciled(ctx, ns, next)
	})
	took := ended.Sub(began)
	if err != nil {
		return 0, 0, err
	}
	requests, err := m.Value("rest_client_requests_total")
	if err != nil {
		return 0, 0, err
	}

	return took, requests, d.check(ctx, ns, n, rev)
}

// onEvents asks again after each event of a watch, and returns when the event came after which
// the answer was yes. Asking every now and then would cost the manager a tenth of its processor
// time: the answer is all its metrics.
func onEvents(ctx context.Context, events watch.Interface, met func() (bool, error)) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case _, open := <-events.ResultChan():
			if !open {
				return time.Time{}, errors.New("the watch of the slices ended")
			}
		}
		at := time.Now()
		if ok, err := met(); ok || err != nil {
			return at, err
		}
	}
}
