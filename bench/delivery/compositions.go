package delivery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	// crowd is how many small compositions there are, each with one ConfigMap.
	crowd = 10000
	// crowdNamespace has all of them.
	crowdNamespace = "crowd"
	// writtenObjects is the metric that counts what delivery did.
	writtenObjects = "eno_reconciliation_actions_total"
)

// Compositions measures many small compositions: how fast they are synthesized and
// delivered, and what a restart of the manager costs then.
func Compositions(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		d, err := newControlPlane(ctx, u)
		if err != nil {
			return err
		}
		if err := cluster.Define(ctx, d, enov1.GroupVersion, enov1.SynthesizerKind, enov1.SymphonyKind); err != nil {
			return err
		}
		n := crowd / b.Scale
		made, err := d.makeCrowd(ctx, n)
		if err != nil {
			return err
		}
		b.Show(harness.Result{Name: "compositions/made", Value: made})
		before, err := d.versions(ctx)
		if err != nil {
			return err
		}
		took, memory, err := d.restart(ctx, n)
		if err != nil {
			return err
		}
		after, err := d.versions(ctx)
		if err != nil {
			return err
		}
		b.Show(
			harness.Result{Name: "compositions/restart", Value: took.Seconds()},
			harness.Result{Name: "compositions/restart-writes", Value: float64(changed(before, after))},
			harness.Result{Name: "compositions/memory-peak", Value: memory},
		)

		return nil
	}, "--unsafe-no-fsync")
}

// bothComponents starts a manager that synthesizes and delivers.
func (d *controlPlane) bothComponents() (*cluster.Manager, error) {
	m, err := d.up.Manager(d.up.Administrator(), "--controllers=synthesis,delivery", "--local-synthesizers", "--webhooks=false", "--log-level=error")
	if err != nil {
		return nil, err
	}
	if err := m.Await(); err != nil {
		m.Stop()

		return nil, err
	}

	return m, nil
}

// makeCrowd creates compositions and waits until all are ready. It returns how many per
// second that were.
func (d *controlPlane) makeCrowd(ctx context.Context, n int) (float64, error) {
	m, err := d.bothComponents() //nolint:contextcheck // it ends when it is stopped
	if err != nil {
		return 0, err
	}
	defer m.Stop()
	program := `printf '{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"%s"},"data":{"a":"b"}}]}' "$COMPOSITION_NAME" "$COMPOSITION_NAMESPACE"`
	if err := d.Create(ctx, &enov1.Synthesizer{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: enov1.SynthesizerSpec{Command: []string{"sh", "-c", program}},
	}); err != nil {
		return 0, err
	}
	if err := d.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crowdNamespace}}); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := harness.PerSecond(n, func(i int) error {
		return d.Create(ctx, &enov1.Composition{
			ObjectMeta: metav1.ObjectMeta{Namespace: crowdNamespace, Name: fmt.Sprintf("c-%05d", i)},
			Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: "one"}},
		})
	}); err != nil {
		return 0, err
	}
	err = harness.Until(ctx, 5*harness.LongPoll, func(ctx context.Context) (bool, error) {
		if now, err := m.Value(writtenObjects); err != nil || now < float64(n) {
			return false, err
		}

		return d.allReady(ctx, n)
	})

	return float64(n) / time.Since(began).Seconds(), err
}

// allReady reports whether every composition is ready.
func (d *controlPlane) allReady(ctx context.Context, n int) (bool, error) {
	all := &enov1.CompositionList{}
	if err := d.List(ctx, all, client.InNamespace(crowdNamespace)); err != nil {
		return false, err
	}
	for i := range all.Items {
		if now := all.Items[i].Status.CurrentSynthesis; now == nil || now.Ready == nil {
			return false, nil
		}
	}

	return len(all.Items) == n, nil
}

// restart measures from the start of a manager until it has seen to every object once,
// and the most memory that it held.
func (d *controlPlane) restart(ctx context.Context, n int) (time.Duration, float64, error) {
	began := time.Now()
	m, err := d.bothComponents() //nolint:contextcheck // it ends when it is stopped
	if err != nil {
		return 0, 0, err
	}
	defer m.Stop()
	err = harness.Until(ctx, harness.LongPoll, func(context.Context) (bool, error) {
		now, err := m.Value(writtenObjects)

		return now >= float64(n), err
	})
	took := time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	<-time.After(5 * time.Second) // a write that is wrong may come later
	most, err := harness.ProcessKilobytes(m.PID(), "VmHWM:")

	return took, most / 1024, err
}

// versions are those of all objects that belong to compositions.
func (d *controlPlane) versions(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		enov1.GroupVersion.WithKind(enov1.CompositionKind), enov1.GroupVersion.WithKind(enov1.ResourceSliceKind), kinds[0],
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := d.List(ctx, list, client.InNamespace(crowdNamespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			all[kind.Kind+"/"+list.Items[i].Name] = list.Items[i].ResourceVersion
		}
	}

	return all, nil
}

// changed counts the objects that are not as they were.
func changed(before, after map[string]string) int {
	n := 0
	for name, version := range after {
		if before[name] != version {
			n++
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			n++
		}
	}

	return n
}
