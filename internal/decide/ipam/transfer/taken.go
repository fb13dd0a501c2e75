package transfer

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// A place is a block of a pool.
type place struct {
	pool  types.NamespacedName
	block netip.Prefix
}

// taken are the blocks of pools that objects have.
type taken struct {
	objects map[place]string       // objects by their block
	inside  map[place]netip.Prefix // for every block that contains taken ones, one of these
}

func newTaken() *taken {
	return &taken{objects: map[place]string{}, inside: map[place]netip.Prefix{}}
}

// add records the object that has a block. Of several with the same block, the first counts.
func (t *taken) add(pool types.NamespacedName, block netip.Prefix, object string) {
	if _, ok := t.objects[place{pool, block}]; ok {
		return
	}
	t.objects[place{pool, block}] = object
	for bits := block.Bits(); bits >= 0; bits-- {
		around := place{pool, netip.PrefixFrom(block.Addr(), bits).Masked()}
		if _, ok := t.inside[around]; ok {
			return // and so are the larger ones
		}
		t.inside[around] = block
	}
}

// overlapping returns a taken block that overlaps a block, with its object, "" if there is none.
func (t *taken) overlapping(pool types.NamespacedName, block netip.Prefix) (netip.Prefix, string) {
	if other, ok := t.inside[place{pool, block}]; ok {
		return other, t.objects[place{pool, other}]
	}
	for bits := block.Bits() - 1; bits >= 0; bits-- {
		other := netip.PrefixFrom(block.Addr(), bits).Masked()
		if object, ok := t.objects[place{pool, other}]; ok {
			return other, object
		}
	}

	return netip.Prefix{}, ""
}
