package main

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
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

// large is how many resources one composition has when memory is measured.
const large = 5000

// deliveryMemory measures the manager's memory with one large composition: first
// with slices that are written by hand, then with a program that makes them.
func deliveryMemory(b *board) error {
	return onControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		d, err := newDepot(ctx, u)
		if err != nil {
			return err
		}
		alone, err := d.memoryAlone(ctx)
		if err != nil {
			return err
		}
		b.show(alone...)
		both, err := d.memoryWithSynthesis(ctx)
		if err != nil {
			return err
		}
		b.show(both...)

		return nil
	}, "--unsafe-no-fsync")
}

// memory reads how much a process holds, and the most that it ever held.
func memory(name string, m *cluster.Manager) ([]result, error) {
	now, err := procField(m.PID(), "VmRSS:")
	if err != nil {
		return nil, err
	}
	most, err := procField(m.PID(), "VmHWM:")

	return []result{{name, now / 1024}, {name + "-peak", most / 1024}}, err
}

// memoryAlone is about delivery alone.
func (d *depot) memoryAlone(ctx context.Context) ([]result, error) {
	m, err := d.manager(ctx, "warm")
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	var all []result
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
func (d *depot) memoryWithSynthesis(ctx context.Context) ([]result, error) {
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
	var all []result
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
func (d *depot) program(ctx context.Context, ns string) (*enov1.Composition, error) {
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
func (d *depot) produce(ctx context.Context, c *enov1.Composition, rev int) error {
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
	err = until(ctx, later, func(ctx context.Context) (bool, error) {
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
func (d *depot) writeResources(ns string, rev int) (string, error) {
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
