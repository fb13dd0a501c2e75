package manager

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// DeliveryOptions are those of the component delivery.
type DeliveryOptions struct {
	// Migration is how fields that belong to other field managers are handled.
	Migration string
	// RemoteKubeconfig is of the cluster that is delivered to, "" for the same.
	RemoteKubeconfig string
	// PruneGuard is what keeps a synthesis from deleting objects until it is confirmed.
	PruneGuard string
	// UnreadableGrace is how long deletions wait for a composition that cannot be read.
	UnreadableGrace time.Duration
	// Drift is what is done about objects that other clients change.
	Drift string
	// FieldManager is what objects are applied as.
	FieldManager string
	// FailOpen is that of manifests without the annotation.
	FailOpen bool
	// Readiness is what makes objects count as ready for the order of groups.
	Readiness string
	// HealthTimeout is how long an object may progress before it counts as degraded.
	HealthTimeout time.Duration
	// Workers are how many resources are delivered at a time.
	Workers int
	// Namespace of the compositions, "" for all. LabelSelector and ResourceFilter are
	// which of them, and which of their resources, are delivered, "" for all.
	Namespace, LabelSelector, ResourceFilter string
}

// DefaultDeliveryOptions put ownership right in the cluster of the compositions.
func DefaultDeliveryOptions() DeliveryOptions {
	return DeliveryOptions{
		Migration: delivery.MigrationOn, PruneGuard: delivery.PruneGuardEmpty, UnreadableGrace: 5 * time.Minute, Drift: delivery.DriftCorrect,
		FieldManager: delivery.DefaultManager, Readiness: enov1.ReadinessEno, HealthTimeout: 10 * time.Minute, Workers: 16,
	}
}

// AddFlags binds the options to flags, with the current values as defaults.
func (o *DeliveryOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Migration, "ownership-migration", o.Migration, "How to handle fields that must be removed but belong to another field manager: off, report (on the composition) or on (take them over first).")
	fs.StringVar(&o.RemoteKubeconfig, "remote-kubeconfig", o.RemoteKubeconfig, "Kubeconfig of the target cluster. Defaults to the cluster of the compositions.")
	fs.StringVar(&o.Namespace, "composition-namespace", o.Namespace, "Namespace of the Compositions, ResourceSlices and Symphonies to reconcile. Defaults to all namespaces.")
	fs.StringVar(&o.LabelSelector, "composition-label-selector", o.LabelSelector, "Label selector of the compositions to deliver. Defaults to all.")
	fs.StringVar(&o.ResourceFilter, "resource-filter", o.ResourceFilter, "CEL filter with the variables self (a manifest) and composition. Only manifests for which it is true are delivered. Defaults to all.")
	fs.StringVar(&o.PruneGuard, "prune-guard", o.PruneGuard, "Which syntheses must not delete objects before a user confirms it: empty (without manifests, and two objects or more to delete), a percentage such as 50 (those, and any that would delete more than this share of the objects) or off.")
	fs.DurationVar(&o.UnreadableGrace, "unreadable-grace", o.UnreadableGrace, "How long deletions wait for a composition whose slices cannot be read, which may want the objects.")
	fs.StringVar(&o.Drift, "drift", o.Drift, "How to handle objects that other clients change or delete: correct (at once), report (on the Composition, until the next synthesis) or interval (correct at the reconcile interval of the manifest, if it has one).")
	fs.StringVar(&o.FieldManager, "field-manager", o.FieldManager, "Field manager that objects are applied as: eno, or a name that begins with eno-. Control planes that deliver to one cluster need different names, and do not delete objects that another one has applied.")
	fs.BoolVar(&o.FailOpen, "fail-open", o.FailOpen, "Report objects as reconciled although they could not be delivered. The annotation eno.azure.io/fail-open of a manifest takes precedence.")
	fs.StringVar(&o.Readiness, "readiness", o.Readiness, "When objects count as ready for the readiness groups after them: eno (once applied, unless the manifest has expressions) or kstatus (once healthy). The annotation arbor-control.dev/readiness of a manifest or Composition takes precedence.")
	fs.DurationVar(&o.HealthTimeout, "health-timeout", o.HealthTimeout, "How long an object may progress before the condition Healthy of its Composition reports it as Degraded. 0: no limit.")
	fs.IntVar(&o.Workers, "delivery-workers", o.Workers, "Maximum number of objects that are delivered concurrently.")
}

// Args are the flags that make another manager have these options.
func (o *DeliveryOptions) Args() []string { return flagArgs(o.AddFlags) }

// Validate returns the first thing that is wrong, in words.
func (o *DeliveryOptions) Validate() error {
	if !slices.Contains([]string{delivery.MigrationOff, delivery.MigrationReport, delivery.MigrationOn}, o.Migration) {
		return fmt.Errorf("--ownership-migration %q: it must be %s, %s or %s", o.Migration, delivery.MigrationOff, delivery.MigrationReport, delivery.MigrationOn)
	}
	if _, err := delivery.ParsePruneGuard(o.PruneGuard); err != nil {
		return fmt.Errorf("--prune-guard %q: %w", o.PruneGuard, err)
	}
	if !slices.Contains([]string{delivery.DriftCorrect, delivery.DriftReport, delivery.DriftInterval}, o.Drift) {
		return fmt.Errorf("--drift %q: it must be %s, %s or %s", o.Drift, delivery.DriftCorrect, delivery.DriftReport, delivery.DriftInterval)
	}
	if err := delivery.ValidateManager(o.FieldManager); err != nil {
		return fmt.Errorf("--field-manager %q: %w", o.FieldManager, err)
	}
	if !slices.Contains([]string{enov1.ReadinessEno, enov1.ReadinessKstatus}, o.Readiness) {
		return fmt.Errorf("--readiness %q: it must be %s or %s", o.Readiness, enov1.ReadinessEno, enov1.ReadinessKstatus)
	}
	if o.HealthTimeout < 0 {
		return fmt.Errorf("--health-timeout %s: it must not be negative; 0 means no limit", o.HealthTimeout)
	}
	if o.UnreadableGrace < 0 {
		return fmt.Errorf("--unreadable-grace %s: it must not be negative", o.UnreadableGrace)
	}
	if o.Workers < 1 {
		return fmt.Errorf("--delivery-workers %d: it must be at least 1", o.Workers)
	}
	_, _, err := o.filters()

	return err
}

// filters are what is delivered.
func (o *DeliveryOptions) filters() (labels.Selector, *delivery.Filter, error) {
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, nil, fmt.Errorf("--composition-label-selector %q: write one such as team=a,tier!=test: %w", o.LabelSelector, err)
	}
	if o.ResourceFilter == "" {
		return selector, nil, nil
	}
	filter, err := delivery.ParseFilter(o.ResourceFilter)
	if err != nil {
		return nil, nil, fmt.Errorf("--resource-filter %q: %w", o.ResourceFilter, err)
	}

	return selector, filter, nil
}

// setupDelivery starts what makes a cluster agree with compositions.
func setupDelivery(mgr ctrl.Manager, o Options) ([]endpoint, error) {
	selector, filter, err := o.Delivery.filters()
	if err != nil {
		return nil, err
	}
	guard, err := delivery.ParsePruneGuard(o.Delivery.PruneGuard)
	if err != nil {
		return nil, err
	}
	d := delivery.Options{
		Workers: o.Delivery.Workers, Migration: o.Delivery.Migration, Selector: selector, Filter: filter, PruneGuard: guard, UnreadableGrace: o.Delivery.UnreadableGrace,
		Drift: o.Delivery.Drift, Manager: o.Delivery.FieldManager, FailOpen: o.Delivery.FailOpen, Readiness: o.Delivery.Readiness, HealthTimeout: o.Delivery.HealthTimeout,
		Scope: tenancy.Scope(o.Scope), DefaultAccount: o.Tenancy.DefaultAccount, ForbiddenGrace: o.Tenancy.ForbiddenGrace,
	}
	if o.Delivery.RemoteKubeconfig != "" {
		remote, err := restConfig(o.Delivery.RemoteKubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--remote-kubeconfig %s: %w", o.Delivery.RemoteKubeconfig, err)
		}
		d.Remote = o.fence.Around(remote)
	}

	return nil, delivery.SetupWithManager(mgr, d)
}
