package poolstatus

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// patchOf returns the JSON merge patch that turns one status of a pool into another, nil
// if they are the same. It applies to one version of the pool only. It is what
// client.MergeFrom makes, but its cost does not grow with the blocks that a status
// lists: neither pool is copied or encoded.
func patchOf(version string, before, after *v1alpha1.SubnetPoolStatus) ([]byte, error) {
	d := diff{}
	d.number("observedGeneration", before.ObservedGeneration, after.ObservedGeneration)
	d.text("cidr", before.CIDR, after.CIDR)
	d.text("uid", string(before.UID), string(after.UID))
	d.text("parent", before.Parent, after.Parent)
	d.number("lost", before.Lost, after.Lost)
	d.number("delegatedCount", before.DelegatedCount, after.DelegatedCount)
	entries(d, "freeCountBySize", before.FreeCountBySize, after.FreeCountBySize)
	entries(d, "allocatableCountBySize", before.AllocatableCountBySize, after.AllocatableCountBySize)
	entries(d, "allocatedCIDRs", before.AllocatedCIDRs, after.AllocatedCIDRs)
	if !sameConditions(before.Conditions, after.Conditions) {
		d.set("conditions", after.Conditions, len(after.Conditions) == 0)
	}
	counts := map[string][2]int64{
		"allocatedCount":       {before.AllocatedCount, after.AllocatedCount},
		"utilizationPercent":   {int64(before.UtilizationPercent), int64(after.UtilizationPercent)},
		"fragmentationPercent": {int64(before.FragmentationPercent), int64(after.FragmentationPercent)},
	}
	for field, n := range counts {
		if n[0] != n[1] {
			d[field] = n[1]
		}
	}
	if len(d) == 0 {
		return nil, nil
	}
	if before.ObservedGeneration == 0 {
		// The first status has all counts, also those that are 0.
		for field, n := range counts {
			d[field] = n[1]
		}
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": version}, "status": d})
	if err != nil {
		return nil, fmt.Errorf("cannot encode a status: %w", err)
	}

	return data, nil
}

// A diff has the fields that differ. The value of a field that is removed is nil.
type diff map[string]any

// set records the new value of a field, which is removed if it is empty.
func (d diff) set(field string, value any, empty bool) {
	if empty {
		value = nil
	}
	d[field] = value
}

func (d diff) number(field string, before, after int64) {
	if before != after {
		d.set(field, after, after == 0)
	}
}

func (d diff) text(field, before, after string) {
	if before != after {
		d.set(field, after, after == "")
	}
}

// entries records the entries of a map that differ.
func entries[V comparable](d diff, field string, before, after map[string]V) {
	if len(after) == 0 {
		if len(before) > 0 {
			d.set(field, nil, true)
		}

		return
	}
	changed := diff{}
	for key, value := range after {
		if had, ok := before[key]; !ok || had != value {
			changed[key] = value
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			changed[key] = nil
		}
	}
	if len(changed) > 0 {
		d[field] = changed
	}
}

// sameConditions reports whether conditions are encoded alike. Their times have
// seconds.
func sameConditions(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.Condition) bool {
		same := a.LastTransitionTime.Unix() == b.LastTransitionTime.Unix()
		a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}

		return same && a == b
	})
}
