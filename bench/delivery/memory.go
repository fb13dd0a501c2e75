package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

// large is how many resources one composition has when memory is measured.
const large = 5000

// Memory measures the manager's memory with one large composition: first
// with slices that are written by hand, then with a program that makes them.
func Memory(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		d, err := newControlPlane(ctx, u)
		if err != nil {
			return err
		}
		alone, err := d.memoryAlone(ctx)
		if err != nil {
			return err
		}
		b.Show(alone...)
		both, err := d.memoryWithSynthesis(ctx)
		if err != nil {
			return err
		}
		b.Show(both...)

		return nil
	}, "--unsafe-no-fsync")
}

// memory reads how much a process holds, and the most that it ever held.
func memory(name string, m *cluster.Manager) ([]harness.Result, error) {
	now, err := harness.ProcessKilobytes(m.PID(), "VmRSS:")
	if err != nil {
		return nil, err
	}
	most, err := harness.ProcessKilobytes(m.PID(), "VmHWM:")

	return []harness.Result{{Name: name, Value: now / 1024}, {Name: name + "-peak", Value: most / 1024}}, err
}

// memoryAlone is about delivery alone.
func (d *controlPlane) memoryAlone(ctx context.Context) ([]harness.Result, error) {
	m, err := d.manager(ctx, "warm")
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	var all []harness.Result
	for rev, name := range []string{"delivery-memory/made", "delivery-memory/changed"} {
		if _, _, err := d.deliver(ctx, m, "large", large, rev); err != nil {
			return nil, err
		}
		if err := d.settled(ctx, "large", large); err != nil {
			return nil, err
		}
		one, err := memory(name, m)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	err = d.DeleteAllOf(ctx, &enov1.Composition{}, client.InNamespace("large"))

	return all, err
}

// memoryWithSynthesis is about both components. The program writes the content of a file, which the
// composition names.
func (d *controlPlane) memoryWithSynthesis(ctx context.Context) ([]harness.Result, error) {
	if err := cluster.Define(ctx, d, enov1.GroupVersion, enov1.SynthesizerKind, enov1.SymphonyKind); err != nil {
		return nil, err
	}
	m, err := d.up.Manager(d.up.Administrator(), "--controllers=synthesis,delivery", "--local-synthesizers", "--webhooks=false", "--log-level=error") //nolint:contextcheck // it ends when it is stopped
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	if err := m.Await(); err != nil {
		return nil, err
	}
	c, err := d.program(ctx, "both")
	if err != nil {
		return nil, err
	}
	var all []harness.Result
	for rev, name := range []string{"delivery-memory/with-synthesis-made", "delivery-memory/with-synthesis-changed"} {
		if err := d.produce(ctx, c, rev); err != nil {
			return nil, err
		}
		one, err := memory(name, m)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}

	return all, nil
}

// program makes a Synthesizer and a composition that is not there yet.
func (d *controlPlane) program(ctx context.Context, ns string) (*enov1.Composition, error) {
	s := &enov1.Synthesizer{
		ObjectMeta: metav1.ObjectMeta{Name: "files"},
		Spec:       enov1.SynthesizerSpec{Command: []string{"sh", "-c", `cat "$FILE"`}},
	}
	if err := d.Create(ctx, s); err != nil {
		return nil, err
	}
	if err := d.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return nil, err
	}

	return &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"},
		Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: s.Name}},
	}, nil
}

// produce has the program make a revision, and waits until it is delivered.
func (d *controlPlane) produce(ctx context.Context, c *enov1.Composition, rev int) error {
	file, err := d.writeResources(c.Namespace, rev)
	if err != nil {
		return err
	}
	env := []enov1.EnvVar{{Name: "FILE", Value: file}}
	if c.UID == "" {
		c.Spec.SynthesisEnv = env
		err = d.Create(ctx, c)
	} else {
		err = kube.RetryOnConflict(ctx, func(ctx context.Context) error {
			if err := d.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
				return err
			}
			c.Spec.SynthesisEnv = env

			return d.Update(ctx, c)
		})
	}
	if err != nil {
		return err
	}
	generation := c.Generation
	err = harness.Until(ctx, harness.LongPoll, func(ctx context.Context) (bool, error) {
		err := d.Get(ctx, client.ObjectKeyFromObject(c), c)
		now := c.Status.CurrentSynthesis

		return now != nil && now.ObservedCompositionGeneration == generation && now.Reconciled != nil, err
	})
	if err != nil {
		return err
	}
	if err := d.settled(ctx, c.Namespace, large); err != nil {
		return err
	}

	return d.check(ctx, c.Namespace, large, rev)
}

// writeResources writes what the program prints.
func (d *controlPlane) writeResources(ns string, rev int) (string, error) {
	all, err := resources(ns, large, rev)
	if err != nil {
		return "", err
	}
	list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList"}}
	items := make([]any, 0, len(all))
	for _, o := range all {
		items = append(items, o.Object)
	}
	list.Object["items"] = items
	data, err := json.Marshal(list.Object)
	if err != nil {
		return "", err
	}
	file := filepath.Join(d.up.Dir, fmt.Sprintf("resources-%d.json", rev))

	return file, os.WriteFile(file, data, 0o600)
}
