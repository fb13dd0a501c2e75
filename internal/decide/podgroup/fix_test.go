package podgroup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
)

func TestFix(t *testing.T) {
	type groups = []v2alpha2.SubGroup
	cases := map[string]struct {
		reason string
		groups groups
		want   []string
	}{
		"Name": {
			reason: "the lower-case name is free",
			groups: groups{top("Master")},
			want:   []string{`rename it to "master"`},
		},
		"NameTaken": {
			reason: "the lower-case name is another subgroup's, also if that comes later",
			groups: groups{top("Master"), top("master")},
			want:   []string{`choose another name, because "master" belongs to spec.subGroups[1]`},
		},
		"NameClaimed": {
			reason: "only the first of two can become master",
			groups: groups{top("Master"), top("MASTER")},
			want: []string{
				`rename it to "master"`,
				`choose another name, because "master" belongs to spec.subGroups[0]`,
			},
		},
		"Parent": {
			reason: "the parent exists in lower case",
			groups: groups{top("master"), under("Master", "a")},
			want:   []string{`write "master"`},
		},
		"ParentMoves": {
			reason: "name and parent are mended to the same word",
			groups: groups{top("Master"), under("Master", "a")},
			want:   []string{`rename it to "master"`, `write "master"`},
		},
		"ParentAmbiguous": {
			reason: "the lower-case parent is another subgroup than the one that is written",
			groups: groups{top("master"), top("Master"), under("Master", "a")},
			want: []string{
				`choose another name, because "master" belongs to spec.subGroups[0]`,
				`write "master" if spec.subGroups[0] is meant, or the new name of spec.subGroups[1]`,
			},
		},
		"ParentNowhere": {
			reason: "the advice about a missing parent does not repeat its upper case",
			groups: groups{top("x"), under("Zebra", "a")},
			want:   []string{`write "zebra"`, `add a subgroup named "zebra" or remove the parent`},
		},
		"Duplicate": {
			reason: "both holders are named",
			groups: groups{top("x"), top("a"), top("a")},
			want:   []string{`rename spec.subGroups[1] or spec.subGroups[2]`},
		},
		"Typo": {
			reason: "the nearest name wins over an earlier one that is further away",
			groups: groups{top("masters"), top("master"), under("mastre", "a")},
			want:   []string{`did you mean "master"? otherwise add a subgroup named "mastre" or remove the parent`},
		},
		"TwoSlips": {
			reason: "long names may have two slips",
			groups: groups{top("prefill-workers"), under("prefil-worker", "a")},
			want: []string{
				`did you mean "prefill-workers"? otherwise add a subgroup named "prefil-worker" or remove the parent`,
			},
		},
		"ThreeSlips": {
			reason: "but not three",
			groups: groups{top("prefill-workers"), under("prfil-worker", "a")},
			want:   []string{`add a subgroup named "prfil-worker" or remove the parent`},
		},
		"ShortTypo": {
			reason: "short names may have one slip",
			groups: groups{top("head"), under("haed", "a")},
			want:   []string{`did you mean "head"? otherwise add a subgroup named "haed" or remove the parent`},
		},
		"OtherWord": {
			reason: "two slips make another short word",
			groups: groups{top("head"), under("hdad", "a"), under("hxxd", "b")},
			want: []string{
				`did you mean "head"? otherwise add a subgroup named "hdad" or remove the parent`,
				`add a subgroup named "hxxd" or remove the parent`,
			},
		},
		"OtherLetter": {
			reason: "one slip makes another name of two letters",
			groups: groups{top("w1"), under("w2", "a")},
			want:   []string{`add a subgroup named "w2" or remove the parent`},
		},
		"Space": {
			reason: "spaces around a name are easy to miss",
			groups: groups{top("w1"), under(" w1", "a")},
			want:   []string{`did you mean "w1"? otherwise add a subgroup named " w1" or remove the parent`},
		},
		"NotItself": {
			reason: "a subgroup is never advised to be its own parent, nor to have a parent without a name",
			groups: groups{under("workers", "worker"), top("")},
			want:   []string{`give it a name`, `add a subgroup named "workers" or remove the parent`},
		},
		"NearUpper": {
			reason: "a name with upper case is advised as it will be",
			groups: groups{top("Master"), under("mastr", "a")},
			want: []string{
				`rename it to "master"`,
				`did you mean "master"? otherwise add a subgroup named "mastr" or remove the parent`,
			},
		},
		"EmptyParent": {
			reason: "an empty parent is meant as none",
			groups: groups{under("", "a")},
			want:   []string{`remove the empty parent to put it under the group itself`},
		},
		"BlankParent": {
			reason: "so is one of spaces",
			groups: groups{under("  ", "a")},
			want:   []string{`remove the empty parent to put it under the group itself`},
		},
		"Cycle": {
			reason: "any member can leave",
			groups: groups{under("b", "a"), under("a", "b")},
			want:   []string{`remove the parent of one of them`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range podgroup.Check(group(tc.groups...)).Problems {
				got = append(got, p.Fix)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nFix: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
