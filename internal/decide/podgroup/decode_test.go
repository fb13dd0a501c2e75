package podgroup_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
)

func TestDecode(t *testing.T) {
	group := func(spec v2alpha2.PodGroupSpec) *v2alpha2.PodGroup {
		pg := &v2alpha2.PodGroup{Spec: spec}
		pg.Namespace, pg.Name = "team-a", "trainer"

		return pg
	}
	number := func(n int32) *int32 { return &n }
	parent := "workers"
	cases := map[string]struct {
		reason string
		object string
		want   *v2alpha2.PodGroup
		fields map[string]string // of the problems, with their values
	}{
		"Whole": {
			reason: "an object without mistakes is decoded as Kubernetes does it",
			object: `{metadata: {namespace: team-a, name: trainer}, spec: {minMember: 3, queue: research}}`,
			want:   group(v2alpha2.PodGroupSpec{MinMember: number(3), Queue: "research"}),
		},
		"OneWrongField": {
			reason: "a field of the wrong type is reported, and all others are kept",
			object: `{metadata: {namespace: team-a, name: trainer}, spec: {minMember: three, minSubGroup: 2, queue: research,
				preemptionDelay: 5m, subGroups: [{name: workers}, {name: a, parent: workers, minMember: 1}]}}`,
			want: group(v2alpha2.PodGroupSpec{
				MinSubGroup: number(2), Queue: "research",
				PreemptionDelay: &v2alpha2.Duration{Duration: 5 * time.Minute},
				SubGroups:       []v2alpha2.SubGroup{{Name: "workers"}, {Name: "a", Parent: &parent, MinMember: number(1)}},
			}),
			fields: map[string]string{"spec.minMember": "three"},
		},
		"SeveralWrongFields": {
			reason: "each field gets its own problem",
			object: `{metadata: {namespace: team-a, name: trainer}, spec: {minMember: three, schedulingBackoff: [1], stalenessGracePeriod: 1m, queue: {a: b}}}`,
			want:   group(v2alpha2.PodGroupSpec{StalenessGracePeriod: &v2alpha2.Duration{Duration: time.Minute}}),
			fields: map[string]string{"spec.minMember": "three", "spec.schedulingBackoff": "", "spec.queue": ""},
		},
		"SubGroupIsNotAnObject": {
			reason: "the entry keeps its place, because findings name subgroups by index",
			object: `{metadata: {namespace: team-a, name: trainer}, spec: {subGroups: [7, {name: 12, parent: workers}]}}`,
			want:   group(v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{}, {Name: "12", Parent: &parent}}}),
			fields: map[string]string{"spec.subGroups": ""},
		},
		"NumberTooLarge": {
			reason: "a number above 32 bits is left out, never truncated",
			object: `{metadata: {namespace: team-a, name: trainer}, spec: {minMember: 4294967297, minSubGroup: -4294967295, queue: research}}`,
			want:   group(v2alpha2.PodGroupSpec{Queue: "research"}),
			fields: map[string]string{"spec.minMember": "4294967297", "spec.minSubGroup": "-4294967295"},
		},
		"SpecIsNotAnObject": {
			reason: "the schema reports that; there is no tree to check",
			object: `{metadata: {namespace: team-a, name: trainer}, spec: research}`,
			want:   group(v2alpha2.PodGroupSpec{}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, problems := podgroup.Decode(object(t, tc.object))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			fields := map[string]string{}
			for _, p := range problems {
				if p.Reason != verdict.ReasonUndecodable || p.Message == "" {
					t.Errorf("problem %+v needs reason %s and a message", p, verdict.ReasonUndecodable)
				}
				fields[p.Field] = p.Value
			}
			if diff := cmp.Diff(tc.fields, fields, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: fields with problems (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsPodGroup(t *testing.T) {
	cases := map[string]struct {
		reason string
		ref    identity.Ref
		want   bool
	}{
		"Served":     {"the version that Arbor serves", identity.Ref{APIVersion: "scheduling.run.ai/v2alpha2", Kind: "PodGroup"}, true},
		"Older":      {"an older version is checked too", identity.Ref{APIVersion: "scheduling.run.ai/v2alpha1", Kind: "PodGroup"}, true},
		"OtherKind":  {"another kind of the same API group", identity.Ref{APIVersion: "scheduling.run.ai/v2", Kind: "Queue"}, false},
		"OtherGroup": {"another project's PodGroup", identity.Ref{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := podgroup.IsPodGroup(tc.ref); got != tc.want {
				t.Errorf("IsPodGroup(%+v) = %t: %s", tc.ref, got, tc.reason)
			}
		})
	}
}

// FuzzDecode decodes any JSON object: Decode never panics, and an object with an invalid spec field
// always gets a problem.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"spec":{"minMember":3,"subGroups":[{"name":"a","parent":"b"}]}}`))
	f.Add([]byte(`{"spec":{"minMember":"3","subGroups":[null,1,{"name":{}}],"preemptionDelay":"x"}}`))
	f.Add([]byte(`{"metadata":7,"spec":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var obj map[string]any
		if json.Unmarshal(data, &obj) != nil {
			return
		}
		if pg, _ := podgroup.Decode(obj); pg == nil {
			t.Errorf("Decode(%s) returned no group", data)
		}
	})
}

// object parses YAML as the API machinery does: whole numbers are int64.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := map[string]any{}
	if err := utiljson.Unmarshal(data, &obj); err != nil {
		t.Fatal(err)
	}

	return obj
}
