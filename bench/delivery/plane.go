package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/bench/harness"
)

// composition of a namespace, which are both made if they are not there.
func (d *controlPlane) composition(ctx context.Context, ns string) (*enov1.Composition, error) {
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}}
	if err := d.Get(ctx, client.ObjectKeyFromObject(c), c); client.IgnoreNotFound(err) != nil {
		return nil, err
	} else if err == nil {
		return c, nil
	}
	if err := d.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return nil, err
	}

	return c, d.Create(ctx, c)
}

// synthesis writes slices as synthesis does.
func (d *controlPlane) synthesis(ctx context.Context, c *enov1.Composition, all []*unstructured.Unstructured) (*enov1.Synthesis, error) {
	next := &enov1.Synthesis{UUID: string(uuid.NewUUID()), Synthesized: new(metav1.Now())}
	var cut []enov1.Manifest
	size := 0
	flush := func() error {
		s := &enov1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: c.Namespace, GenerateName: "app-",
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, enov1.GroupVersion.WithKind(enov1.CompositionKind))},
			},
			Spec: enov1.ResourceSliceSpec{SynthesisUUID: next.UUID, Resources: cut},
		}
		err := d.Create(ctx, s)
		next.ResourceSlices = append(next.ResourceSlices, &enov1.ResourceSliceRef{Name: s.Name})
		cut, size = nil, 0

		return err
	}
	for _, o := range all {
		data, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		if size+len(data) > sliceSize {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		cut, size = append(cut, enov1.Manifest{Manifest: string(data)}), size+len(data)
	}

	return next, flush()
}

// reconciled reports whether all of a synthesis is.
func (d *controlPlane) reconciled(ctx context.Context, ns string, s *enov1.Synthesis) (bool, error) {
	for _, ref := range s.ResourceSlices {
		slice := &enov1.ResourceSlice{}
		if err := d.Get(ctx, client.ObjectKey{Namespace: ns, Name: ref.Name}, slice); err != nil {
			return false, err
		}
		if len(slice.Status.Resources) != len(slice.Spec.Resources) {
			return false, nil
		}
		for i, r := range slice.Status.Resources {
			if r.ReconciliationError != nil {
				return false, fmt.Errorf("resource %d of %s/%s: %s", i, ns, ref.Name, *r.ReconciliationError)
			}
			if !r.Reconciled {
				return false, nil
			}
		}
	}

	return true, nil
}

// kinds that are delivered.
var kinds = []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}}

// check looks whether the cluster really has what was delivered: a figure of
// something that did not happen would look good.
func (d *controlPlane) check(ctx context.Context, ns string, n, rev int) error {
	have := 0
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := d.List(ctx, list, client.InNamespace(ns)); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Annotations[revision] == strconv.Itoa(rev) {
				have++
			}
		}
	}
	if have != n {
		return fmt.Errorf("%d of %d resources in %s are of revision %d", have, n, ns, rev)
	}

	return nil
}

// settled waits until the controller of the Deployments has seen them all.
func (d *controlPlane) settled(ctx context.Context, ns string, n int) error {
	return harness.Until(ctx, harness.LongPoll, func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kinds[1])
		if err := d.List(ctx, list, client.InNamespace(ns)); err != nil {
			return false, err
		}
		for i := range list.Items {
			seen, _, _ := unstructured.NestedInt64(list.Items[i].Object, "status", "observedGeneration")
			if seen != list.Items[i].GetGeneration() {
				return false, nil
			}
		}

		return len(list.Items) == n*2/5, nil
	})
}
