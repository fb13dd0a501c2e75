package podgroup

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
)

// GroupKind is the kind of PodGroups, of any version.
var GroupKind = schema.GroupKind{Group: v2alpha2.GroupVersion.Group, Kind: v2alpha2.PodGroupKind}

// Decode makes a PodGroup of an untyped object. Fields of the wrong
// type are left out and become problems, so that one of them does not hide
// what is wrong with the tree.
func Decode(obj map[string]any) (*v2alpha2.PodGroup, []verdict.Problem) {
	pg := &v2alpha2.PodGroup{}
	if convertPodGroup(obj, pg) == nil {
		return pg, nil
	}

	pg = &v2alpha2.PodGroup{}
	ref := identity.RefOf(obj)
	pg.Namespace, pg.Name = ref.Namespace, ref.Name

	spec, ok := obj["spec"].(map[string]any)
	if !ok {
		return pg, nil
	}

	pg.Spec.Queue, _ = spec["queue"].(string)
	pg.Spec.MinMember, pg.Spec.MinSubGroup = int32At(spec, "minMember"), int32At(spec, "minSubGroup")
	pg.Spec.PreemptionDelay, pg.Spec.StalenessGracePeriod = durationAt(spec, "preemptionDelay"), durationAt(spec, "stalenessGracePeriod")
	pg.Spec.SubGroups = decodeSubGroups(spec["subGroups"])

	return pg, undecodable(spec)
}

// convertPodGroup decodes through JSON, because runtime.DefaultUnstructuredConverter truncates
// numbers that are too large for their field.
func convertPodGroup(obj map[string]any, into *v2alpha2.PodGroup) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}

	return utiljson.Unmarshal(data, into)
}

// undecodable names the fields of a spec that no PodGroup can hold.
func undecodable(spec map[string]any) []verdict.Problem {
	var out []verdict.Problem

	for _, key := range slices.Sorted(maps.Keys(spec)) {
		one := map[string]any{"spec": map[string]any{key: spec[key]}}
		if err := convertPodGroup(one, &v2alpha2.PodGroup{}); err != nil {
			out = append(out, verdict.Problem{
				Reason: verdict.ReasonUndecodable, Field: "spec." + key, Value: verdict.ScalarText(spec[key]), Message: "cannot decode: " + err.Error(),
			})
		}
	}

	return out
}

// decodeSubGroups keeps what the tree is made of. An entry that is no object
// keeps its place, because findings speak of indexes.
func decodeSubGroups(list any) []v2alpha2.SubGroup {
	items, _ := list.([]any)
	out := make([]v2alpha2.SubGroup, len(items))

	for i, item := range items {
		fields, _ := item.(map[string]any)
		out[i].Name = verdict.ScalarText(fields["name"])
		out[i].MinMember, out[i].MinSubGroup = int32At(fields, "minMember"), int32At(fields, "minSubGroup")

		if fields["parent"] != nil {
			parent := verdict.ScalarText(fields["parent"])
			out[i].Parent = &parent
		}
	}

	return out
}

func int32At(fields map[string]any, key string) *int32 {
	n, ok := fields[key].(int64)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return nil
	}

	v := int32(n)

	return &v
}

func durationAt(fields map[string]any, key string) *v2alpha2.Duration {
	var d *v2alpha2.Duration

	data, err := json.Marshal(fields[key])
	if err != nil || json.Unmarshal(data, &d) != nil {
		return nil
	}

	return d
}

// IsPodGroup is true for PodGroups of any version: an older one is drawn
// rather than passed over.
func IsPodGroup(ref identity.Ref) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")

	return group == GroupKind.Group && ref.Kind == GroupKind.Kind
}
