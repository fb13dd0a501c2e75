// Package claim decides what a SubnetClaim is given.
package claim

import (
	"crypto/sha1" //nolint:gosec // a name, not a secret; existing names are made so
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Reasons of a claim's condition Ready.
const (
	ReasonBound          = "Allocated"
	ReasonPoolNotFound   = "PoolNotFound"
	ReasonPoolInvalid    = "PoolInvalid"
	ReasonExhausted      = "PoolExhausted"
	ReasonTaken          = "RequestedCIDRTaken"
	ReasonClusterIDTaken = "ClusterIDInUse"
	ReasonOutsidePool    = "OutsidePool"
	ReasonSizeRefused    = "BlockSizeRefused"
	ReasonSubnetLost     = "SubnetLost"
)

// Holds says whether a Subnet is the one that a bound claim has. Claims that were
// bound before their status could name the Subnet only say its block.
func Holds(c *v1alpha1.SubnetClaim, s *v1alpha1.Subnet) bool {
	if c.Status.SubnetRef != "" {
		return c.Status.SubnetRef == s.Name
	}

	return c.Status.AllocatedCIDR == s.Spec.CIDR
}

// A Wish is what a claim asks its pool for: a block of a length, or a very one.
type Wish struct {
	Length int
	Exact  netip.Prefix
}

// A Refusal is why a claim cannot be served as it is written.
type Refusal struct {
	Reason, Message string
}

// Read says what a claim wishes from a pool, or why it can never have it.
func Read(c *v1alpha1.SubnetClaim, p *v1alpha1.SubnetPool, pool netip.Prefix) (Wish, *Refusal) {
	var w Wish
	if c.Spec.BlockSize != nil {
		w.Length = int(*c.Spec.BlockSize)
	} else {
		exact, err := netip.ParsePrefix(c.Spec.RequestedCIDR)
		if err != nil {
			return w, &Refusal{ReasonOutsidePool, fmt.Sprintf("requestedCIDR %q is not a CIDR", c.Spec.RequestedCIDR)}
		}
		w.Exact = exact.Masked()
		w.Length = exact.Bits()
		if w.Length < pool.Bits() || !pool.Contains(w.Exact.Addr()) {
			return w, &Refusal{ReasonOutsidePool, fmt.Sprintf("%s is not inside of pool %s, %s: ask for a block of that, or of another pool", w.Exact, p.Name, pool)}
		}
	}

	return w, size(p, pool, w.Length)
}

// size checks a length against the pool's and the family's limits.
func size(p *v1alpha1.SubnetPool, pool netip.Prefix, length int) *Refusal {
	least, most := pool.Bits(), pool.Addr().BitLen()
	if p.Spec.MinBlockSize != nil {
		least = max(least, int(*p.Spec.MinBlockSize))
	}
	if p.Spec.MaxBlockSize != nil {
		most = min(most, int(*p.Spec.MaxBlockSize))
	}
	if length < least || length > most {
		return &Refusal{ReasonSizeRefused, fmt.Sprintf("pool %s hands out blocks from /%d to /%d, not /%d", p.Name, least, most, length)}
	}

	return nil
}

// maxName is what a label value may have, and so what names keep to.
const maxName = 63

// SubnetName is the name of a block's Subnet. It decides nothing: it is for
// people, and for tools that look a block up by it.
func SubnetName(pool string, block netip.Prefix) string {
	name := pool + "-" + strings.NewReplacer(".", "-", "/", "-", ":", "-").Replace(block.String())
	if len(name) <= maxName {
		return name
	}
	const kept, digits = 40, 16
	sum := sha1.Sum([]byte(name)) //nolint:gosec // as above

	return name[:min(kept, len(pool))] + "-" + hex.EncodeToString(sum[:])[:digits]
}
