package subnetclaim

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

const notReady = metav1.ConditionFalse

// pending is the status of a claim that waits.
func pending(reason, message string) *outcome {
	return &outcome{v1alpha1.ClaimPending, notReady, reason, message}
}

// unavailable returns why a pool allocates nothing at all, nil if it does. It leaves out
// the message of the pool: each change of it would be a write for each waiting claim.
func unavailable(name string, p *v1alpha1.SubnetPool) *outcome {
	switch {
	case p == nil:
		return pending(ipamrules.ReasonPoolNotFound, fmt.Sprintf("pool %s does not exist", name))
	case p.DeletionTimestamp != nil:
		return pending(ipamrules.ReasonPoolInvalid, fmt.Sprintf("pool %s is being deleted and allocates nothing", name))
	}
	if prefix, open := poolblocks.RangeOf(p); open && prefix.IsValid() {
		return nil
	}
	why := "it has not been checked yet"
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionFalse {
		why = ready.Reason + "; see its status"
	}

	return pending(ipamrules.ReasonPoolNotReady, fmt.Sprintf("pool %s is not ready: %s", name, why))
}

// coolingOr returns an error with the time until which a block stays unused, if that is why another
// one overlaps it, and the error itself otherwise.
func (r *round) coolingOr(err error) error {
	overlap, ok := errors.AsType[*cidr.Overlap](err)
	if !ok {
		return err
	}
	holder, ok := r.view.Holder(r.key, overlap.With)
	if until := ipamrules.ReservedUntil(holder, r.pool); ok && until.After(r.now) {
		return &coolingError{overlap, until}
	}

	return err
}

// A coolingError is an Overlap with a block that was released.
type coolingError struct {
	overlap *cidr.Overlap
	until   time.Time
}

func (e *coolingError) Error() string {
	return fmt.Sprintf("cannot allocate %s from %s: %s was released and stays unused until %s; wait, or use another block",
		e.overlap.Block, e.overlap.Pool, e.overlap.With, e.until.UTC().Format(time.RFC3339))
}

func (e *coolingError) Unwrap() error { return e.overlap }

// why returns why no block was reserved. The text stays the same as long as nothing
// changes for the claim: it is not about what else is free.
func why(pool string, wish ipamrules.Request, err error) *outcome {
	if _, ok := errors.AsType[*ledger.OwnerHasBlockError](err); ok {
		return pending(ipamrules.ReasonClusterIDInUse, err.Error())
	}
	if _, ok := errors.AsType[*cidr.Exhausted](err); ok {
		return pending(ipamrules.ReasonExhausted, fmt.Sprintf("pool %s has no free block of /%d: release blocks, ask for a smaller block, or use another pool", pool, wish.Length))
	}
	if _, ok := errors.AsType[*cidr.Overlap](err); ok && wish.Recorded {
		return pending(ipamrules.ReasonRecordTaken, fmt.Sprintf("%s; the claim had this block before; remove its annotation %s to get any free block", err, v1alpha1.BlockAnnotation))
	} else if ok {
		return pending(ipamrules.ReasonTaken, err.Error())
	}

	return pending(ipamrules.ReasonPoolInvalid, err.Error())
}
