package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/names"
)

// An Editor changes objects of the address API.
type Editor interface {
	// Create creates an object, and fills in what the API server adds.
	Create(ctx context.Context, o client.Object) error
	// UpdateStatus writes the status of an object that did not change since it was read.
	UpdateStatus(ctx context.Context, o client.Object) error
	// Patch changes an object.
	Patch(ctx context.Context, o client.Object, p client.Patch) error
	// Pages visits the metadata of all objects of a kind, page by page.
	Pages(ctx context.Context, kind string, visit func([]metav1.PartialObjectMetadata) error) error
}

// An EditorConnector finds a cluster by kubectl's rules.
type EditorConnector func(flags *genericclioptions.ConfigFlags) (Editor, error)

// ConnectEditor returns an editor of a cluster.
func ConnectEditor(flags *genericclioptions.ConfigFlags) (Editor, error) {
	if err := v1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		return nil, fmt.Errorf("cannot register types: %w", err)
	}

	c, err := ConnectClient(flags)
	if err != nil {
		return nil, err
	}

	return clusterEditor{c}, nil
}

// A clusterEditor is the editor of a cluster.
type clusterEditor struct{ client client.Client }

// Create implements [Editor].
func (e clusterEditor) Create(ctx context.Context, o client.Object) error {
	return e.client.Create(ctx, o, client.FieldOwner(names.Arbor))
}

// UpdateStatus implements [Editor].
func (e clusterEditor) UpdateStatus(ctx context.Context, o client.Object) error {
	return e.client.Status().Update(ctx, o, client.FieldOwner(names.Arbor))
}

// Patch implements [Editor].
func (e clusterEditor) Patch(ctx context.Context, o client.Object, p client.Patch) error {
	return e.client.Patch(ctx, o, p, client.FieldOwner(names.Arbor))
}

// Pages implements [Editor].
func (e clusterEditor) Pages(ctx context.Context, kind string, visit func([]metav1.PartialObjectMetadata) error) error {
	const size = 500

	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))

	for {
		if err := e.client.List(ctx, page, client.Limit(size), client.Continue(page.Continue)); err != nil {
			return fmt.Errorf("cannot list %ss: %w", kind, ShortError(err))
		}

		if err := visit(page.Items); err != nil {
			return err
		}

		if page.Continue == "" {
			return nil
		}
	}
}

// ErrManagerRuns is why a command writes nothing.
var ErrManagerRuns = errors.New("a manager runs")

// NoManager returns an error if a manager leads: its lease is held and was renewed. A
// manager without leader election has no lease.
func NoManager(ctx context.Context, list Lister, now time.Time) error {
	leases, err := list(ctx, Query{Resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Name: names.Lease})
	if err != nil {
		return err
	}

	for _, obj := range leases {
		lease := &coordinationv1.Lease{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, lease); err != nil {
			return fmt.Errorf("cannot decode Lease %s: %w", names.Lease, err)
		}

		if holder, held := heldBy(lease, now); held {
			return fmt.Errorf("%w: %s holds Lease %s/%s; scale its Deployment to 0, wait until the Lease is free, and try again",
				ErrManagerRuns, holder, lease.Namespace, lease.Name)
		}
	}

	return nil
}

// heldBy returns who holds a lease, and whether it was renewed in time.
func heldBy(l *coordinationv1.Lease, now time.Time) (holder string, held bool) {
	s := l.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return "", false
	}

	return *s.HolderIdentity, now.Before(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second))
}

// Explain adds what to do about a webhook of a manager that was stopped.
func Explain(err error) error {
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		return err
	}

	return fmt.Errorf("%w; the webhooks of a manager that does not run refuse everything: delete its ValidatingWebhookConfiguration; helm upgrade creates it again, or the manager if you do not use the chart", err)
}
