package subnetpool

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

// A collector reads the pools that a pool is compared with, each once.
type collector struct {
	cache     client.Reader
	namespace string
	found     map[string]v1alpha1.SubnetPool
}

// near collects the pools that overlap what a pool has or asks for, and the ancestors
// of all of them.
func (c *collector) near(ctx context.Context, p *v1alpha1.SubnetPool) error {
	all := []v1alpha1.SubnetPool{}
	for _, cidr := range []string{p.Spec.CIDR, p.Open()} {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue
		}
		near, err := kube.PoolsNear(ctx, c.cache, c.namespace, prefix.Masked())
		if err != nil {
			return err
		}
		all = append(all, near...)
	}
	c.add(all)
	if err := c.above(ctx, p.ParentName()); err != nil {
		return err
	}
	for i := range all {
		if err := c.above(ctx, all[i].ParentName()); err != nil {
			return err
		}
	}

	return nil
}

// above collects the pool of a name and its ancestors.
func (c *collector) above(ctx context.Context, name string) error {
	_, _, err := ipamrules.Ancestors(name, func(name string) (*v1alpha1.SubnetPool, error) {
		if p, known := c.found[name]; known {
			return &p, nil
		}
		p, err := kube.Find(ctx, c.cache, &v1alpha1.SubnetPool{}, c.namespace, name)
		if p != nil {
			c.found[name] = *p
		}

		return p, err
	})

	return err
}

func (c *collector) add(pools []v1alpha1.SubnetPool) {
	for i := range pools {
		c.found[pools[i].Name] = pools[i]
	}
}

func (c *collector) all() []v1alpha1.SubnetPool {
	return slices.SortedFunc(maps.Values(c.found), func(a, b v1alpha1.SubnetPool) int { return cmp.Compare(a.Name, b.Name) })
}
