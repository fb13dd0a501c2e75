package subnetclaim

import (
	"context"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

// settle finds out whether the Subnets of reserved blocks exist: at once if the
// request to create it had no clear answer, and after a while if the watch does not
// bring it. No round runs for this pool at the same time, so no request is under way.
func (r *round) settle(ctx context.Context) {
	var open []ledger.Reservation
	for _, v := range r.view.Overdue(r.key, r.now) {
		r.again(safetyNet)
		if v.ID == "" || v.Since.Before(r.now.Add(-overdue)) {
			open = append(open, v)
		}
	}
	each(ctx, open, func(v *ledger.Reservation) { r.check(ctx, *v) })
}

// check reads the Subnet of a reservation from the API server, and cancels the
// reservation if there is none.
func (r *round) check(ctx context.Context, v ledger.Reservation) {
	names := []string{v.Name}
	if v.ID == "" {
		names = ipamrules.SubnetNames(r.key.Name, v.Prefix, types.UID(v.Claim))
	}
	for _, name := range names {
		s, err := r.api.Subnet(ctx, r.named(name))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			r.again(firstDelay)
			logr.FromContextOrDiscard(ctx).Info("Cannot read a Subnet that may have been created; retrying", "subnet", name, "error", err.Error())

			return
		}
		if b, ok := poolblocks.BlockOf(s); ok && ipamrules.OwnsBlock(types.UID(v.Claim), r.key.Name, v.Prefix, s) {
			r.view.Created(r.key, v.Claim, b)

			return
		}
	}
	r.view.Cancel(r.key, v.Claim)
}
