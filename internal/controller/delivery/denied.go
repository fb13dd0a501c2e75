package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// With --delivery-scope=namespace, everything that is sent for an object of a composition is
// sent as the ServiceAccount of that composition. What it may not do is reported, and never
// done with the permissions of the manager.

// tenantClient returns a client that sends nothing except as the account in the context.
func tenantClient(config *rest.Config, mapper meta.RESTMapper) (client.Client, error) {
	if config.Impersonate.UserName != "" {
		return nil, fmt.Errorf("--delivery-scope=%s: the manager's kubeconfig impersonates %s, and a request can be sent as one user only: use a kubeconfig without \"as\"",
			tenancy.Namespace, config.Impersonate.UserName)
	}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(kube.Impersonate)
	hc, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}
	c, err := client.New(config, client.Options{HTTPClient: hc, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}

	return c, nil
}

// noAccount is the error of a composition that has no account.
const noAccount = "there is no ServiceAccount to deliver as: set spec.serviceAccountName, or start the manager with --default-service-account"

// as returns a context whose requests are sent as the account of a composition.
func (d *Deliverer) as(ctx context.Context, v *view) context.Context {
	if v == nil || v.account == (tenancy.Account{}) {
		return ctx // the client of tenants sends nothing
	}

	return kube.AsUser(ctx, v.account.Username())
}

// denials are the objects of a composition that its account has no permission for. They have
// their own lock: successive views share them.
type denials struct {
	mu  sync.Mutex
	all map[decide.Identity]tenancy.Denial
	// unsureUntil is until when there may be denials that an earlier manager has reported, zero if it
	// has not.
	unsureUntil time.Time
}

// firstAttempts is how long after its start a manager has attempted everything at least once.
const firstAttempts = 90 * time.Second

func newDenials() *denials { return &denials{all: map[decide.Identity]tenancy.Denial{}} }

// note records a denial, and reports whether it is another one than before. The zero value
// removes it.
func (d *denials) note(id decide.Identity, denial tenancy.Denial) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all[id] == denial {
		return false
	}
	if denial == (tenancy.Denial{}) {
		delete(d.all, id)
	} else {
		d.all[id] = denial
	}

	return true
}

// keep removes the denials of all other objects.
func (d *denials) keep(byID map[decide.Identity]*item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.all {
		if byID[id] == nil {
			delete(d.all, id)
		}
	}
}

// list returns all denials.
func (d *denials) list() []tenancy.Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]tenancy.Denial, 0, len(d.all))
	for _, one := range d.all {
		all = append(all, one)
	}

	return all
}

// fail settles an item that was not delivered because of an error. An object that must be
// deleted and that the account may not delete may be left as it is.
func (d *Deliverer) fail(ctx context.Context, k key, v *view, it *item, live *unstructured.Unstructured, err error) (time.Duration, error) {
	deletes := v.deleting || it.Tombstone
	denied := d.deny(v, it, it.discreet(err, live))
	if denied && deletes && d.leaves(ctx, v, it) {
		d.permitted(v, it)
		d.health.forget(k)
		d.removed(k, v, it, outcome{})

		return 0, nil
	}
	err = it.discreet(err, live)
	if errors.Is(err, kube.ErrNoUser) {
		err = kube.WithText(err, noAccount)
	}
	d.failed(v, it, err, deletes)

	return 0, err
}

// deny records that the account of a composition has no permission for an object, and reports
// whether that is what an error is about.
func (d *Deliverer) deny(v *view, it *item, err error) bool {
	if !d.scope.Restricts() {
		return false
	}
	denial, denied := tenancy.Attempt{
		Account: v.account, Namespace: it.Namespace, Deletes: v.deleting || it.Tombstone, Prunes: !v.deleting && it.Tombstone, Unsent: errors.Is(err, kube.ErrNoUser),
	}.Deny(err)
	if denied && v.denials.note(it.Identity, denial) {
		d.requeue(v.name)
	}

	return denied
}

// permitted records that an object was written, deleted or left alone.
func (d *Deliverer) permitted(v *view, it *item) {
	if d.scope.Restricts() && v.denials.note(it.Identity, tenancy.Denial{}) {
		d.requeue(v.name)
	}
}

// leaves reports whether an object that may not be deleted is left as it is.
func (d *Deliverer) leaves(ctx context.Context, v *view, it *item) bool {
	r := d.remainder(ctx, v, it)
	why := r.Leave()
	if why == "" || !r.Recorded {
		return why != ""
	}
	log.FromContext(ctx).WithName("delivery").Info("an object is not deleted", "composition", v.name.String(), "object", it.String(), "account", v.account.String(), "reason", why)
	if !r.Ending && d.courtesy.Allow() {
		d.recorder.Eventf(v.owner, it.Object, corev1.EventTypeWarning, "LeftBehind", action, "%s", clip(fmt.Sprintf("%s is not deleted: %s", it.Identity, why)))
	}

	return true
}

// remainder finds out what is necessary to decide about an object that may not be deleted.
func (d *Deliverer) remainder(ctx context.Context, v *view, it *item) tenancy.Remainder {
	about := v.asked()
	r := tenancy.Remainder{
		Recorded: it.memory.ours && !it.IsPatch() || it.IsPatch() && (it.Removes || it.Overridden()), Grace: d.forbiddenGrace,
		Orphan: v.deleting && enov1.IsOrphan(about.Annotations[enov1.AnnotationDeletionStrategy]),
	}
	if r.Leave() == "" && it.Namespace != "" {
		namespace, err := d.watches.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, it.Namespace, metav1.GetOptions{})
		r.Ending = isEnding(namespace, err)
	}
	if r.Leave() == "" && v.deleting && about.DeletionTimestamp != nil {
		r.HomeEnding, r.Waited = d.holdsUp(ctx, v, about.DeletionTimestamp.Time)
	}

	return r
}

// holdsUp reports whether a composition, which is being deleted since some time, holds up its namespace,
// and for how long.
func (d *Deliverer) holdsUp(ctx context.Context, v *view, since time.Time) (bool, time.Duration) {
	home := &metav1.PartialObjectMetadata{}
	home.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := d.reader.Get(ctx, types.NamespacedName{Name: v.name.Namespace}, home)
	if end := home.DeletionTimestamp; err == nil && end != nil && end.After(since) {
		since = end.Time
	}

	return isEnding(home, err), d.now().Sub(since)
}

// isEnding reports whether a namespace is terminating or does not exist.
func isEnding(namespace *metav1.PartialObjectMetadata, err error) bool {
	return apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil
}

// recallDenials keeps the condition about permissions that an earlier manager has written until this
// one has attempted everything.
func (d *Deliverer) recallDenials(v *view, c *enov1.Composition) {
	if d.scope.Restricts() && meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionAccessDenied) {
		v.denials.unsureUntil = d.now().Add(firstAttempts)
		d.requeueAfter(v.name, firstAttempts+gather)
	}
}

// unsure reports whether there may be denials that are not known yet.
func (d *denials) unsure(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	return len(d.all) == 0 && now.Before(d.unsureUntil)
}

// deniedCondition is the condition about permissions that are missing.
func (v *view) deniedCondition() metav1.Condition {
	worst := tenancy.Summarize(v.denials.list())

	return metav1.Condition{Type: enov1.ConditionAccessDenied, Reason: worst.Reason, Message: clip(worst.Message)}
}

// countForbidden counts the compositions with objects that must be deleted and may not be.
func (d *Deliverer) countForbidden() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, v := range d.views {
		if slices.ContainsFunc(v.denials.list(), func(one tenancy.Denial) bool { return one.Reason == enov1.ReasonDeletionForbidden }) {
			n++
		}
	}

	return n
}
