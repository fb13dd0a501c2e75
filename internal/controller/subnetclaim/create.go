package subnetclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

// create creates the Subnet of a reserved block. If another object has the name of
// the block, it takes a name that has the claim in it.
func (r *round) create(ctx context.Context, c *choice) {
	var err error
	for _, name := range ipamrules.SubnetNames(r.key.Name, c.block, c.claim.UID) {
		s := ipamrules.NewSubnet(c.claim, r.pool, c.block, name, r.Allocator.now())
		if err = r.api.Create(ctx, s); err == nil {
			r.created(c, s)

			return
		}
		if !apierrors.IsAlreadyExists(err) {
			break
		}
		if r.resolve(ctx, c, name) {
			return
		}
	}
	r.failed(ctx, c, err)
}

// resolve reads the object that has the name for a Subnet, and reports whether that ends this
// choice. If it does not, another name will do.
func (r *round) resolve(ctx context.Context, c *choice, name string) bool {
	s, err := r.api.Subnet(ctx, r.named(name))
	switch {
	case apierrors.IsNotFound(err): // and gone again
		return false
	case err != nil:
		r.failed(ctx, c, err)
	case ipamrules.OwnsBlock(c.claim.UID, r.key.Name, c.block, s):
		r.created(c, s)
	case ipamrules.TakesBlock(r.key.Name, c.block, s):
		// Another manager was faster, and the watch has not brought it yet.
		r.view.Cancel(r.key, string(c.claim.UID))
		if b, ok := poolblocks.BlockOf(s); ok {
			r.view.Put(r.key, b)
		}
		r.others.collided(r.key, r.now)
		r.again(shortest)
	default:
		return false
	}

	return true
}

func (r *round) created(c *choice, s *v1alpha1.Subnet) {
	if b, ok := poolblocks.BlockOf(s); ok {
		r.view.Created(r.key, string(c.claim.UID), b)
	}
}

func (r *round) named(subnet string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.key.Namespace, Name: subnet}
}

// failed reports in the status of a claim that its Subnet was not created. If it is
// not known whether it was, the reservation stays, and the next round settles it.
func (r *round) failed(ctx context.Context, c *choice, err error) {
	if ctx.Err() != nil {
		return
	}
	if isRejected(err) {
		r.view.Cancel(r.key, string(c.claim.UID))
	}
	delay := r.backoff.failed(r.key, c.claim.UID, r.now)
	r.again(delay)
	logr.FromContextOrDiscard(ctx).Info("Cannot create a Subnet; retrying", "claim", c.claim.Name, "block", c.block.String(), "after", delay.String(), "error", err.Error())
	r.report(ctx, c.claim, *pending(ipamrules.ReasonNotCreated, fmt.Sprintf("cannot create the Subnet for %s: %s", c.block, err)))
}

// isRejected reports whether an error means that the API server has not carried out
// the request. After any other error, such as a timeout, it may have.
func isRejected(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := status.ErrStatus.Code

	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}
