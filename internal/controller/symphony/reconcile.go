// Package symphony makes the Compositions of Symphonies.
//
// A round gathers, decides and applies. It reads the cache first. If there is something to do, it
// reads again from the API server: with a cache that does not have the last writes yet, they would
// be done twice. The rest is done when the writes of this round come back as events.
package symphony

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/symphony"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	workers = 4

	// byOwner is the index of compositions by the uid of their Symphony.
	byOwner = "symphony.owner"
)

// A Reconciler reconciles the compositions of a Symphony.
type Reconciler struct {
	client client.Client
	reader client.Reader
	now    func() time.Time
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager) error {
	if err := indexOwners(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("cannot index by %s: %w", byOwner, err)
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("symphony").
		For(&enov1.Symphony{}).
		Owns(&enov1.Composition{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(kube.Patient(&Reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), now: time.Now}))
}

// indexOwners indexes compositions by their Symphony.
func indexOwners(ctx context.Context, i client.FieldIndexer) error {
	return i.IndexField(ctx, &enov1.Composition{}, byOwner, func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == enov1.SymphonyKind {
			return []string{string(owner.UID)}
		}

		return nil
	})
}

// Reconcile reconciles one Symphony.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	v, err := r.cached(ctx, request.NamespacedName)
	if err != nil || v.Symphony == nil {
		return reconcile.Result{}, err
	}
	d := decide.Decide(v, r.now())
	if !d.Idle() {
		if v, err = r.live(ctx, request.NamespacedName); err != nil || v.Symphony == nil {
			return reconcile.Result{}, err
		}
		d = decide.Decide(v, r.now())
	}

	return reconcile.Result{}, client.IgnoreNotFound(r.apply(ctx, v.Symphony, &d))
}

// cached reads a Symphony and its compositions from the cache; it is empty if the
// Symphony does not exist.
func (r *Reconciler) cached(ctx context.Context, key types.NamespacedName) (decide.View, error) {
	s := &enov1.Symphony{}
	if err := r.client.Get(ctx, key, s); err != nil {
		return decide.View{}, ignoreGone(err, key)
	}
	list := &enov1.CompositionList{}
	if err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{byOwner: string(s.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return decide.View{}, fmt.Errorf("cannot list Compositions: %w", err)
	}

	return view(s, list), nil
}

// live reads the same from the API server, which knows no index.
func (r *Reconciler) live(ctx context.Context, key types.NamespacedName) (decide.View, error) {
	s := &enov1.Symphony{}
	if err := r.reader.Get(ctx, key, s); err != nil {
		return decide.View{}, ignoreGone(err, key)
	}
	list := &enov1.CompositionList{}
	if err := r.reader.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return decide.View{}, fmt.Errorf("cannot list Compositions: %w", err)
	}

	return view(s, list), nil
}

func ignoreGone(err error, key types.NamespacedName) error {
	if apierrors.IsNotFound(err) {
		return nil
	}

	return fmt.Errorf("cannot read Symphony %s: %w", key, err)
}

func view(s *enov1.Symphony, list *enov1.CompositionList) decide.View {
	v := decide.View{Symphony: s}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], s) {
			v.Compositions = append(v.Compositions, &list.Items[i])
		}
	}

	return v
}
