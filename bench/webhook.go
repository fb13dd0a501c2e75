package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	creates = 1500 // per round
	rounds  = 3    // of each kind
)

// webhook measures creations per second with and without admission, in turns
// on one control plane. The controller that writes the condition runs in both,
// so the difference is the webhook and nothing else.
func webhook(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error { return webhookRates(b, u) })
}

func webhookRates(b *harness.Board, u *cluster.Up) error {
	c, err := u.NewClient(nil)
	if err != nil {
		return err
	}

	rate := map[bool][]float64{}
	// The first round warms everything up and does not count.
	for i := range 2*rounds + 1 {
		with := i%2 == 0
		r, err := round(u, c, i, with)
		if err != nil {
			return err
		}
		if i > 0 {
			rate[with] = append(rate[with], r)
		}
	}
	with, without := harness.Median(rate[true]), harness.Median(rate[false])

	b.Show(harness.Result{Name: "webhook/creates-with", Value: with}, harness.Result{Name: "webhook/creates-without", Value: without}, harness.Result{Name: "webhook/ratio", Value: with / without})

	return nil
}

// round returns creations per second under a manager of its own.
func round(u *cluster.Up, c client.Client, i int, with bool) (rate float64, err error) {
	m, err := u.Manager(u.Administrator(), fmt.Sprintf("--webhooks=%t", with))
	if err != nil {
		return 0, err
	}
	defer m.Stop()
	if err := m.Await(); err != nil {
		return 0, err
	}
	ctx := context.Background()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("round-%d", i)}}
	if err := c.Create(ctx, ns); err != nil {
		return 0, err
	}
	if !with {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "arbor"}}
		if err := client.IgnoreNotFound(c.Delete(ctx, config)); err != nil {
			return 0, err
		}
	}
	if err := awaitAdmission(ctx, c, ns.Name, with); err != nil {
		return 0, err
	}

	return createAll(ctx, c, ns.Name)
}

// awaitAdmission waits until the API server asks the webhook, or no longer
// does.
func awaitAdmission(ctx context.Context, c client.Client, ns string, with bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := c.Create(ctx, group(ns, "probe", "Refused"), client.DryRunAll)
		if denied := err != nil && strings.Contains(err.Error(), "denied the request"); denied == with && (with || err == nil) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("admission does not settle"), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func createAll(ctx context.Context, c client.Client, ns string) (float64, error) {
	return harness.PerSecond(creates, func(i int) error { return c.Create(ctx, group(ns, fmt.Sprintf("g-%d", i), "workers")) })
}

func group(ns, name, sub string) *v2alpha2.PodGroup {
	return &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "master"}, {Name: sub, Parent: new("master")}}},
	}
}
