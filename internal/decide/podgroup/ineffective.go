package podgroup

import (
	"fmt"
	"slices"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Why a field has no effect.
const (
	noQueues   = "this release has no queues, and groups are ordered by priority and age"
	noTopology = "this release has no topology constraints"
	unread     = "the scheduler does not read this field"
)

// ineffective returns a warning for each field that a change sets and that has no effect in this
// release. before is nil for a group that is checked as it is.
func ineffective(before, after *v2alpha2.PodGroup) []verdict.Warning {
	if before == nil {
		before = &v2alpha2.PodGroup{}
	}
	was, is := &before.Spec, &after.Spec

	return slices.Concat(
		ineffectiveText("spec.queue", was.Queue, is.Queue, noQueues),
		preferredLevels(was, is),
		ineffectiveValue("spec.markUnschedulable", was.MarkUnschedulable, is.MarkUnschedulable),
		ineffectiveValue("spec.schedulingBackoff", was.SchedulingBackoff, is.SchedulingBackoff),
		ineffectiveValue("spec.parallelism", number(was.Parallelism), number(is.Parallelism)),
		ineffectiveValue("spec.completions", number(was.Completions), number(is.Completions)),
		ineffectiveValue("spec.backoffLimit", number(was.BackoffLimit), number(is.BackoffLimit)),
	)
}

// preferredLevels covers the group and its subgroups. A subgroup of the same
// name is the same one.
func preferredLevels(was, is *v2alpha2.PodGroupSpec) []verdict.Warning {
	const level = ".topologyConstraint.preferredTopologyLevel"
	found := ineffectiveText("spec"+level, was.TopologyConstraint.PreferredTopologyLevel, is.TopologyConstraint.PreferredTopologyLevel, noTopology)
	before := map[string]string{}
	for i := range was.SubGroups {
		if c := was.SubGroups[i].TopologyConstraint; c != nil {
			before[was.SubGroups[i].Name] = c.PreferredTopologyLevel
		}
	}
	for i := range is.SubGroups {
		if c := is.SubGroups[i].TopologyConstraint; c != nil {
			found = append(found, ineffectiveText(entry(i)+level, before[is.SubGroups[i].Name], c.PreferredTopologyLevel, noTopology)...)
		}
	}

	return found
}

func ineffectiveText(field, was, is, why string) []verdict.Warning {
	if is == "" || is == was {
		return nil
	}

	return []verdict.Warning{{Field: field, Message: fmt.Sprintf("%q has no effect: %s", verdict.Shorten(is, shownName), why)}}
}

func ineffectiveValue[T comparable](field string, was, is *T) []verdict.Warning {
	if is == nil || same(was, is) {
		return nil
	}

	return []verdict.Warning{{Field: field, Message: fmt.Sprintf("%v has no effect: %s", *is, unread)}}
}

// number is nil for a field that is not set.
func number(n int32) *int32 {
	if n == 0 {
		return nil
	}

	return &n
}
