package transfer

import (
	"fmt"
	"net/netip"
	"strings"

	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

// Place fills in the pools of blocks and the parents of pools that an input does not name:
// the smallest pool around each, of the rows and of what there is. A pool that there is
// already, of the same range, keeps its name.
func Place(rows []Row, have ipamaudit.Inventory) ([]Row, error) {
	p := &placer{namespaces: map[string]*byLength{}}
	for i := range have.Pools {
		if prefix, err := netip.ParsePrefix(have.Pools[i].Spec.CIDR); err == nil {
			p.in(have.Pools[i].Namespace).add(prefix, have.Pools[i].Name)
		}
	}
	for i := range rows {
		if r := &rows[i]; r.IsPool() {
			if name, ok := p.in(r.Namespace).pools[r.CIDR]; ok && strings.HasSuffix(r.Pool, "-"+slug(r.CIDR.String())) {
				r.Pool = name
			}
			p.in(r.Namespace).add(r.CIDR, r.Pool)
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.IsPool() {
			r.Parent = firstOf(r.Parent, p.in(r.Namespace).around(r.CIDR, r.CIDR.Bits()-1))

			continue
		}
		if r.Pool = firstOf(r.Pool, p.in(r.Namespace).around(r.CIDR, r.CIDR.Bits())); r.Pool == "" {
			return nil, &ParseError{r.CIDR.String(), "", "", fmt.Sprintf("no pool of namespace %s has this block", r.Namespace), "import a pool around it first"}
		}
	}

	return rows, nil
}

// A placer finds the pools of namespaces by their ranges.
type placer struct{ namespaces map[string]*byLength }

func (p *placer) in(namespace string) *byLength {
	if p.namespaces[namespace] == nil {
		p.namespaces[namespace] = &byLength{pools: map[netip.Prefix]string{}}
	}

	return p.namespaces[namespace]
}

// byLength finds ranges by asking for each length.
type byLength struct{ pools map[netip.Prefix]string }

func (b *byLength) add(p netip.Prefix, name string) {
	if _, there := b.pools[p.Masked()]; !there {
		b.pools[p.Masked()] = name
	}
}

// around returns the smallest pool of at most so many bits that a block lies in, "" if
// there is none.
func (b *byLength) around(block netip.Prefix, bits int) string {
	for ; bits >= 0; bits-- {
		if name, ok := b.pools[netip.PrefixFrom(block.Addr(), bits).Masked()]; ok {
			return name
		}
	}

	return ""
}
