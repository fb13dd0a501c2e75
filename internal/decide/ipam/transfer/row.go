package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
)

// A Row is a pool, or a block of one.
type Row struct {
	Namespace, Pool string
	CIDR            netip.Prefix
	// Parent of a pool. A row is a pool if it has no ClusterID.
	Parent string
	// ClusterID and, if a claim has the block, that claim.
	ClusterID, Claim string
}

// IsPool is true for a pool, and false for a block of one.
func (r *Row) IsPool() bool { return r.ClusterID == "" }

// A ParseError is the first thing that is wrong with an input.
type ParseError struct {
	// Where it is: a line, or a path in JSON.
	Where        string
	Field, Value string
	Message, Fix string
}

// Error names the place, the field, its value, what is wrong and how to fix it.
func (e *ParseError) Error() string {
	text := e.Message
	if e.Field != "" {
		text = fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Message)
	}
	if e.Fix != "" {
		text += "; " + e.Fix
	}

	return e.Where + ": " + text
}

var clusterID = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// parsePrefix reads the block of a row.
func parsePrefix(where, field, value string) (netip.Prefix, error) {
	fail := func(message, fix string) (netip.Prefix, error) {
		return netip.Prefix{}, &ParseError{where, field, value, message, fix}
	}
	p, err := netip.ParsePrefix(value)
	switch {
	case err != nil:
		return fail("it is not a CIDR", "write an address and a length, such as 10.0.0.0/24 or fd00::/64")
	case p != p.Masked():
		return fail("it has bits set behind its length", "write "+p.Masked().String())
	case p.Addr().Is4In6():
		return fail("it is IPv4 written as IPv6", "write it as IPv4")
	}

	return p, nil
}

// check asks that the names of a row can be those of objects.
func (r *Row) check(where string) error {
	for _, name := range []struct{ field, value string }{{"namespace", r.Namespace}, {"pool", r.Pool}, {"parent", r.Parent}, {"claim", r.Claim}} {
		if wrong := validation.IsDNS1123Subdomain(name.value); name.value != "" && len(wrong) > 0 {
			return &ParseError{where, name.field, name.value, "it is not the name of an object", "use lower case letters, digits, - and . only"}
		}
	}
	switch {
	case r.Pool == "":
		return &ParseError{where, "pool", "", "it is missing", "name the pool of the row"}
	case r.ClusterID != "" && !clusterID.MatchString(r.ClusterID):
		return &ParseError{where, "clusterID", r.ClusterID, "it is not a clusterID", "use at most 63 lower case letters, digits, - and ., with a letter or digit at both ends"}
	case r.Claim != "" && r.IsPool():
		return &ParseError{where, "clusterID", "", "it is missing, but there is a claim", "name the cluster that the block of the claim is for"}
	case r.Parent != "" && !r.IsPool():
		return &ParseError{where, "parent", r.Parent, "a block has a pool, and no parent", "leave it empty"}
	}

	return nil
}

// slug makes a part of a name out of any text, "" if there is nothing to make it of.
func slug(text string) string {
	const most = 50
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}

		return '-'
	}, strings.ToLower(text))
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '-' }), "-")

	return strings.Trim(s[:min(len(s), most)], "-")
}

// Rows returns the pools of an inventory, parents before their children, and the blocks of
// each. Subnets that hold the block of a child pool are left out: the child is there.
func Rows(e ipamaudit.Inventory) []Row {
	pools := slices.Clone(e.Pools)
	slices.SortStableFunc(pools, func(a, b v1alpha1.SubnetPool) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), netipCompare(a.Spec.CIDR, b.Spec.CIDR), cmp.Compare(a.Name, b.Name))
	})
	var rows []Row
	delegated := map[Row]bool{}
	for i := range pools {
		if prefix, err := netip.ParsePrefix(pools[i].Spec.CIDR); err == nil && pools[i].DeletionTimestamp == nil {
			rows = append(rows, Row{Namespace: pools[i].Namespace, Pool: pools[i].Name, CIDR: prefix, Parent: pools[i].ParentName()})
			delegated[Row{Namespace: pools[i].Namespace, Pool: pools[i].ParentName(), CIDR: prefix}] = true
		}
	}

	return append(rows, blockRows(e, delegated)...)
}

// blockRows returns the blocks of pools, by pool and address, without those that child
// pools are made of.
func blockRows(e ipamaudit.Inventory, delegated map[Row]bool) []Row {
	var blocks []Row
	for i := range e.Subnets {
		s := &e.Subnets[i]
		prefix, err := netip.ParsePrefix(s.Spec.CIDR)
		if err != nil || s.Status.Phase == v1alpha1.SubnetFailed || s.DeletionTimestamp != nil || s.Spec.Backs != nil ||
			delegated[Row{Namespace: s.Namespace, Pool: s.Spec.PoolRef, CIDR: prefix}] {
			continue
		}
		row := Row{Namespace: s.Namespace, Pool: s.Spec.PoolRef, CIDR: prefix, ClusterID: s.Spec.ClusterID}
		if s.Spec.ClaimRef != nil {
			row.Claim = s.Spec.ClaimRef.Name
		}
		blocks = append(blocks, row)
	}
	slices.SortStableFunc(blocks, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pool, b.Pool), a.CIDR.Compare(b.CIDR))
	})

	return blocks
}

// netipCompare puts larger blocks first, so that parents come before their children.
func netipCompare(a, b string) int {
	one, err := netip.ParsePrefix(a)
	two, bad := netip.ParsePrefix(b)
	if errors.Join(err, bad) != nil {
		return cmp.Compare(a, b)
	}

	return one.Compare(two)
}
