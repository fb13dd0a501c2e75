package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// fixRecount asks those who count to do it again.
func fixRecount(o Object) string {
	return fmt.Sprintf("have it counted anew: POST /recalculate?namespace=%s&pool=%s to the manager", o.Namespace, o.Name)
}

// status checks that a pool's status matches a recount.
func (x *inspector) status(o Object, p *v1alpha1.SubnetPool) {
	if p.Generation == 0 {
		return // it was never stored
	}
	if p.Status.ObservedGeneration != p.Generation {
		message := "its status was never written"
		if p.Status.ObservedGeneration > 0 {
			message = fmt.Sprintf("its status is behind: it speaks of generation %d, and this is %d", p.Status.ObservedGeneration, p.Generation)
		}
		x.add(SeverityWarning, o, verdict.Problem{
			Reason: ReasonStatusBehind, Field: fieldObserved, Value: strconv.FormatInt(p.Status.ObservedGeneration, 10), Message: message, Fix: fixManager,
		})

		return
	}
	figures, ok := x.recount(p)
	if !ok {
		return
	}
	want := ipamrules.PoolStatus(p, figures, metav1.Time{})
	if all := differences(&p.Status, &want); len(all) > 0 {
		told := make([]string, len(all))
		for i, d := range all {
			told[i] = fmt.Sprintf("%s is %s, not %s", d.field, d.is, d.says)
		}
		x.add(SeverityError, o, verdict.Problem{
			Reason: ReasonStatusDiffers, Field: "status." + all[0].field, Value: all[0].says,
			Message: "a recount finds that " + strings.Join(told, ", "), Fix: fixRecount(o),
		})
	}
	x.conditions(o, p, &want)
}

// conditions checks that the conditions of a pool follow from the blocks that are taken from it.
func (x *inspector) conditions(o Object, p *v1alpha1.SubnetPool, want *v1alpha1.SubnetPoolStatus) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionExhausted} {
		says, is := meta.FindStatusCondition(p.Status.Conditions, kind), meta.FindStatusCondition(want.Conditions, kind)
		if is == nil || says != nil && says.Status == is.Status {
			continue
		}
		value, message := "", fmt.Sprintf("there is no condition %s, which should be %s: %s", kind, is.Status, is.Message)
		if says != nil {
			value, message = string(says.Status), fmt.Sprintf("%s is %s, but should be %s: %s", kind, says.Status, is.Status, is.Message)
		}
		x.add(SeverityError, o, verdict.Problem{Reason: ReasonConditionDiffers, Field: "status.conditions[" + kind + "]", Value: value, Message: message, Fix: fixRecount(o)})
	}
}

// recount returns what is taken from a pool, counted as the controllers do. It is
// false where blocks overlap: there the figures depend on which was seen first, and
// the overlap is the problem.
func (x *inspector) recount(p *v1alpha1.SubnetPool) (ipamrules.PoolFigures, bool) {
	counted := ledger.New()
	size, _ := poolblocks.RangeOf(p)
	counted.SetRange(size)
	in := x.in(p.Namespace, p.Name)
	for _, c := range in.children.of {
		if b, ok := poolblocks.DelegationOf(c); ok {
			counted.Put(b)
		}
	}
	for _, s := range in.subnets.of {
		if b, ok := poolblocks.BlockOf(s); ok {
			counted.Put(b)
		}
	}
	f := counted.Figures(ipamrules.MaxListedBlocks)
	for _, b := range f.Waiting {
		if size.Bits() <= b.Prefix.Bits() && size.Contains(b.Prefix.Addr()) {
			return ipamrules.PoolFigures{}, false
		}
	}
	listed := map[string]string{}
	for _, b := range f.First {
		listed[b.Prefix.String()] = b.Owner
	}

	return ipamrules.PoolFigures{All: f.All, Own: f.Own, Delegated: f.Delegated, Listed: listed}, true
}

// A difference is a field whose value differs from the recount.
type difference struct{ field, says, is string }

// differences are those in the figures of two statuses. Of a map, the first
// entry that differs stands for all.
func differences(says, is *v1alpha1.SubnetPoolStatus) []difference {
	number := strconv.FormatInt
	all := []difference{
		{"allocatedCount", number(says.AllocatedCount, 10), number(is.AllocatedCount, 10)},
		{"delegatedCount", number(says.DelegatedCount, 10), number(is.DelegatedCount, 10)},
		inMaps("freeCountBySize", says.FreeCountBySize, is.FreeCountBySize),
		inMaps("allocatableCountBySize", says.AllocatableCountBySize, is.AllocatableCountBySize),
		{"utilizationPercent", number(int64(says.UtilizationPercent), 10), number(int64(is.UtilizationPercent), 10)},
		{"fragmentationPercent", number(int64(says.FragmentationPercent), 10), number(int64(is.FragmentationPercent), 10)},
		inMaps("allocatedCIDRs", says.AllocatedCIDRs, is.AllocatedCIDRs),
	}

	return slices.DeleteFunc(all, func(d difference) bool { return d.says == d.is })
}

func inMaps[V comparable](field string, says, is map[string]V) difference {
	if maps.Equal(says, is) {
		return difference{}
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(says)), maps.Keys(is))
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, k := range keys {
		if d := (difference{field + "[" + k + "]", entry(says, k), entry(is, k)}); d.says != d.is {
			return d
		}
	}

	return difference{}
}

func entry[V comparable](m map[string]V, key string) string {
	v, ok := m[key]
	if !ok {
		return "absent"
	}

	return fmt.Sprint(v)
}
