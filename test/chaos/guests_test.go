package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// add creates a composition of one fault, with the synthesizer of a template and an input that
// never changes.
func (l *load) add(name, template string) {
	l.Helper()
	for _, o := range []client.Object{
		l.program(template),
		&corev1.ConfigMap{ObjectMeta: l.meta("in-" + template), Data: map[string]string{"round": "0"}},
	} {
		if err := l.Create(l.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			l.Fatal(err)
		}
	}
	must(l, l.Create(l.Context(), l.composition(name, template, template)))
}

// awaitReady waits until a composition is delivered.
func (l *load) awaitReady(name string, revive func()) *enov1.Composition {
	l.Helper()
	c := &enov1.Composition{}
	cluster.Eventually(l, "composition "+name+" is ready", func() error {
		revive()
		if err := l.Get(l.Context(), client.ObjectKey{Namespace: l.ns, Name: name}, c); err != nil {
			return err
		}
		if st := c.Status; st.Simplified == nil || st.Simplified.Status != enov1.StatusReady || st.InFlightSynthesis != nil {
			return fmt.Errorf("its status is %+v", st.Simplified)
		}

		return nil
	})

	return c
}

// withdraw deletes a composition, and waits until it is gone.
func (l *load) withdraw(name string, revive func()) {
	l.Helper()
	o := l.composition(name, name, name)
	must(l, client.IgnoreNotFound(l.Delete(l.Context(), o)))
	cluster.Eventually(l, "composition "+name+" is gone", func() error {
		revive()
		err := l.Get(l.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("it is there, with status %+v", o.Status.Simplified)
		}

		return client.IgnoreNotFound(err)
	})
}

// binds waits until a new claim is bound, so that allocation is known to work, and returns how
// long that took.
func (w *world) binds() time.Duration {
	w.Helper()
	l, began := w.load, time.Now()
	o := &v1alpha1.SubnetClaim{ObjectMeta: l.meta(l.name("bound"))}
	o.Spec = v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: o.Name, BlockSize: new(int32(29))}
	cluster.Eventually(w, "a claim is created", func() error {
		w.revive()
		err := l.Create(w.Context(), o.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}

		return err
	})
	l.note(o, v1alpha1.SubnetClaimKind, true, nil)
	cluster.Eventually(w, "the claim is bound", func() error {
		w.revive()
		if err := l.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.Phase != v1alpha1.ClaimBound {
			return errors.Join(fmt.Errorf("it is %+v", o.Status), err)
		}

		return nil
	})
	took := time.Since(began)
	l.note(o, v1alpha1.SubnetClaimKind, false, l.Delete(context.WithoutCancel(w.Context()), o))

	return took
}
