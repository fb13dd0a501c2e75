package ipam

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A Request is what a claim asks its pool for: any block of a length, or one exact
// block.
type Request struct {
	Length int
	Exact  netip.Prefix
	// Recorded is true if Exact is the block that the claim had before a restore.
	Recorded bool
}

// A Rejection is why a claim cannot be served as it is written.
type Rejection struct {
	Reason, Message string
}

// ReadClaim returns what a claim asks for, or why a pool with this range can never
// serve it. A claim with a record asks for the recorded block.
func ReadClaim(c *v1alpha1.SubnetClaim, p *v1alpha1.SubnetPool, pool netip.Prefix) (Request, *Rejection) {
	w, rejection := specified(c)
	if rejection == nil {
		w, rejection = recorded(c, w)
	}
	if rejection != nil {
		return w, rejection
	}
	if w.Exact.IsValid() && (w.Length < pool.Bits() || !pool.Contains(w.Exact.Addr())) {
		return w, &Rejection{ReasonOutsidePool, fmt.Sprintf("%s is not inside of pool %s, %s: ask for a block of that, or of another pool", w.Exact, p.Name, pool)}
	}

	return w, size(p, pool, w.Length)
}

// specified reads the spec of a claim.
func specified(c *v1alpha1.SubnetClaim) (Request, *Rejection) {
	if c.Spec.BlockSize != nil {
		return Request{Length: int(*c.Spec.BlockSize)}, nil
	}
	exact, err := netip.ParsePrefix(c.Spec.RequestedCIDR)
	if err != nil {
		return Request{}, &Rejection{ReasonOutsidePool, fmt.Sprintf("requestedCIDR %q is not a CIDR", c.Spec.RequestedCIDR)}
	}

	return Request{Length: exact.Bits(), Exact: exact.Masked()}, nil
}

// recorded narrows a request to the recorded block of a claim, if there is one.
func recorded(c *v1alpha1.SubnetClaim, w Request) (Request, *Rejection) {
	block, ok := RecordedBlock(c)
	if !ok {
		return w, nil
	}
	refuse := func(why string) (Request, *Rejection) {
		return w, &Rejection{ReasonInvalidRecord, fmt.Sprintf("annotation %s is %q: %s; correct the annotation, or remove it to get any free block",
			v1alpha1.BlockAnnotation, c.Annotations[v1alpha1.BlockAnnotation], why)}
	}
	switch {
	case !block.IsValid():
		return refuse("it must be POOL/CIDR, such as " + c.Spec.PoolRef + "/10.0.0.0/24")
	case w.Exact.IsValid() && w.Exact != block:
		return refuse("the claim asks for " + w.Exact.String())
	case w.Length != block.Bits():
		return refuse(fmt.Sprintf("the claim asks for a /%d", w.Length))
	}
	w.Exact, w.Recorded = block, true

	return w, nil
}

// RecordedBlock returns the block that the record of a claim names, and whether the
// claim has a record. The block is not valid if the record cannot be read. A
// record of another pool than the claim's does not count.
func RecordedBlock(c *v1alpha1.SubnetClaim) (netip.Prefix, bool) {
	record, ok := c.Annotations[v1alpha1.BlockAnnotation]
	if !ok {
		return netip.Prefix{}, false
	}
	pool, block, complete := strings.Cut(record, "/")
	if complete && pool != c.Spec.PoolRef {
		return netip.Prefix{}, false
	}
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		return netip.Prefix{}, true
	}

	return prefix.Masked(), true
}

// ExactBlock returns the only block that a claim can be given, that of its record or of
// its spec, and whether there is one.
func ExactBlock(c *v1alpha1.SubnetClaim) (netip.Prefix, bool) {
	if block, ok := RecordedBlock(c); ok {
		return block, block.IsValid()
	}
	w, rejection := specified(c)

	return w.Exact, rejection == nil && w.Exact.IsValid()
}

// size checks a length against the pool's and the family's limits.
func size(p *v1alpha1.SubnetPool, pool netip.Prefix, length int) *Rejection {
	least, most := pool.Bits(), pool.Addr().BitLen()
	if p.Spec.MinBlockSize != nil {
		least = max(least, int(*p.Spec.MinBlockSize))
	}
	if p.Spec.MaxBlockSize != nil {
		most = min(most, int(*p.Spec.MaxBlockSize))
	}
	if length < least || length > most {
		return &Rejection{ReasonSizeRefused, fmt.Sprintf("pool %s allocates blocks from /%d to /%d, not /%d", p.Name, least, most, length)}
	}

	return nil
}
