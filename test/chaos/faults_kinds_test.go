package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/crds"
	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// dead is an API that another server should serve.
var dead = schema.GroupVersion{Group: "dead.example.com", Version: "v1beta1"}

// aggregated has an API whose server is down, so that discovery is not complete. Compositions go
// on with all other kinds, also if the manager starts then, and if they bring kinds of their own.
func aggregated(w *world) {
	w.Helper()
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": dead.Group, "version": dead.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "dead"},
	}}}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	service.SetName(dead.Version + "." + dead.Group)
	must(w, w.c.Create(w.Context(), service))
	w.Cleanup(func() { _ = w.c.Delete(context.WithoutCancel(w.Context()), service) })
	d, err := discovery.NewDiscoveryClientForConfig(server.Config)
	must(w, err)
	cluster.Eventually(w, "the API is down", func() error {
		if _, err := d.ServerResourcesForGroupVersion(dead.String()); !apierrors.IsServiceUnavailable(err) {
			return fmt.Errorf("it answers %w", err)
		}

		return nil
	})
	w.replace(0)
	w.load.add(ghost, ghost)
	w.load.add(fresh, fresh)
	cluster.Eventually(w, "the object of the API that is there is delivered", func() error {
		w.revive()

		return w.c.Get(w.Context(), client.ObjectKey{Namespace: w.load.ns, Name: ghost}, &corev1.ConfigMap{})
	})
	w.load.awaitReady(fresh, w.revive)
	w.load.withdraw(fresh, w.revive)
	w.underLoad(100)
	must(w, w.c.Delete(w.Context(), service))
	w.load.withdraw(ghost, w.revive)
}

// redefined deletes CRDs of Arbor's, with all their objects, and creates them again. Kinds that
// have nothing to do with it go on.
func redefined(w *world) {
	w.Helper()
	for _, kind := range []schema.GroupVersionKind{
		v2alpha2.GroupVersion.WithKind(v2alpha2.PodGroupKind),
		enov1.GroupVersion.WithKind(enov1.SymphonyKind),
	} {
		crd := w.undefine(kind)
		w.gone(crd)
		w.Logf("without %s: a claim is bound after %s", crd.Name, w.binds().Round(10*time.Millisecond))
		w.load.lose(kind.Kind)
		must(w, cluster.Define(w.Context(), w.c, kind.GroupVersion(), kind.Kind))
		w.underLoad(50)
	}
}

// withoutSlices deletes the CRD of ResourceSlices. It stays, since each slice has a finalizer for as long
// as a Composition needs it. An administrator who removes the finalizers gets rid of it. Then it is
// created again. Whatever happens, what was delivered stays, and is known again in the end.
func withoutSlices(w *world) {
	w.Helper()
	w.load.end(w.revive) // what a synthesis drops cannot be known without slices
	if _, err := w.settle(); err != nil {
		w.Fatal(err)
	}
	kind := enov1.GroupVersion.WithKind(enov1.ResourceSliceKind)
	crd := w.undefine(kind)
	w.Logf("a claim is bound after %s while the CRD is being deleted", w.binds().Round(10*time.Millisecond))
	if *rounds > 1 {
		w.lasts(20 * time.Second)
	}
	must(w, w.c.Get(w.Context(), client.ObjectKeyFromObject(crd), crd))
	cluster.Eventually(w, "the finalizers are removed", func() error {
		list := &enov1.ResourceSliceList{}
		if err := w.c.List(w.Context(), list); err != nil {
			if apierrors.IsNotFound(err) { // the last one is gone
				return nil
			}

			return err
		}
		for i := range list.Items {
			err := w.c.Patch(w.Context(), &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("there were %d slices", len(list.Items))
		}

		return nil
	})
	w.gone(crd)
	w.binds()
	must(w, cluster.Define(w.Context(), w.c, kind.GroupVersion(), kind.Kind))
	began := time.Now()
	if _, err := w.settle(); err != nil {
		w.Fatal(err)
	}
	w.Logf("everything is right %s after the CRD is there again", time.Since(began).Round(100*time.Millisecond))
	w.load.start()
	w.underLoad(50)
}

// undefine deletes a CRD of Arbor's.
func (w *world) undefine(kind schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	w.Helper()
	crd, ok := crds.ByKind(kind.Group, kind.Kind)
	if !ok {
		w.Fatalf("there is no CRD of %s", kind)
	}
	must(w, w.c.Delete(w.Context(), crd.DeepCopy()))

	return crd
}

// gone waits until a CRD is.
func (w *world) gone(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	cluster.Eventually(w, crd.Name+" is gone", func() error {
		w.revive()
		err := w.c.Get(w.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy())
		if err == nil {
			return errors.New("it is there")
		}

		return client.IgnoreNotFound(err)
	})
}

// lose notes that all objects of a kind were deleted with their CRD.
func (l *load) lose(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for o, held := range l.ledger.Held {
		if o.Kind == kind && held {
			l.ledger.Held[o] = false
		}
	}
}
