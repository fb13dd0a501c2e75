package podgroup_test

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// firstWrong is the simplest form of the rule: the text of the first violation, "" for a valid
// list. Of a cycle it only reports that there is one.
func firstWrong(groups []v2alpha2.SubGroup) string {
	seen := map[string]v2alpha2.SubGroup{}
	for _, g := range groups {
		_, twice := seen[g.Name]
		switch {
		case g.Name == "":
			return "subgroup name must not be empty"
		case strings.ToLower(g.Name) != g.Name:
			return `subgroup name ` + strconv.Quote(g.Name) + ` must be lowercase`
		case g.Parent != nil && strings.ToLower(*g.Parent) != *g.Parent:
			return `parent of subgroup ` + strconv.Quote(g.Name) +
				`: subgroup name ` + strconv.Quote(*g.Parent) + ` must be lowercase`
		case twice:
			return "duplicate subgroup name " + g.Name
		}
		seen[g.Name] = g
	}

	return firstWrongParent(groups, seen)
}

func firstWrongParent(groups []v2alpha2.SubGroup, seen map[string]v2alpha2.SubGroup) string {
	for _, g := range groups {
		if g.Parent == nil {
			continue
		}
		if _, ok := seen[*g.Parent]; !ok {
			return "parent " + *g.Parent + " of " + g.Name + " was not found"
		}
	}
	for _, g := range groups {
		at := g
		for steps := 0; at.Parent != nil; steps++ {
			if steps > len(groups) {
				return "cycle detected in subgroups"
			}
			at = seen[*at.Parent]
		}
	}

	return ""
}

func FuzzAdmit(f *testing.F) {
	lists := []string{
		`[]`, `null`,
		`[{"name":"master"},{"name":"workers","parent":"master","minMember":4}]`,
		`[{"name":"Master"},{"name":"workers","parent":"master"}]`,
		`[{"name":"master"},{"name":"workers","parent":"Master"}]`,
		`[{"name":"a","parent":"b"},{"name":"b","parent":"a"}]`,
		`[{"name":"a"},{"name":"a","parent":""},{"name":""}]`,
		`[{"name":"mas ter","minSubGroup":3},{"name":"x","parent":"maste","topologyConstraint":{"topology":"t"}}]`,
	}
	object := func(list string) []byte {
		return []byte(`{"metadata":{"name":"g","namespace":"n"},"spec":{"minSubGroup":1,"subGroups":` + list + `}}`)
	}
	for i, l := range lists {
		f.Add([]byte(nil), object(l))
		f.Add(object(lists[(i+1)%len(lists)]), object(l))
		f.Add(object(l), object(l))
	}
	timed := func(delay string) []byte {
		return []byte(`{"spec":{"preemptionDelay":` + delay + `,"stalenessGracePeriod":"1s"}}`)
	}
	f.Add(timed(`"1s"`), timed(`"x"`))
	f.Add(timed(`"x"`), timed(`5`))
	f.Add([]byte(`{}`), []byte(`{"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z"}}`))

	f.Fuzz(func(t *testing.T, old, updated []byte) {
		before, after := decode(old), decode(updated)
		if after == nil {
			t.Skip("no object")
		}
		first, second := toText(t, podgroup.Admit(before, after)), toText(t, podgroup.Admit(before, after))
		if first != second {
			t.Fatalf("Admit twice: %s, then %s", first, second)
		}
		checkAdmit(t, before, after)
	})
}

// checkAdmit compares the results for a change with the plain rule.
func checkAdmit(t *testing.T, before, after *v2alpha2.PodGroup) {
	t.Helper()
	want := firstWrong(after.Spec.SubGroups)
	lint, admitted := podgroup.Lint(after), podgroup.Admit(before, after)
	if every := cmp.Or(want, firstWrongDuration(nil, after)); !agrees(lint.Message(), every) {
		t.Fatalf("Lint(...) = %q, want %q", lint.Message(), every)
	}

	unchanged := before != nil && sameList(before.Spec.SubGroups, after.Spec.SubGroups)
	if unchanged {
		want = ""
	}
	if want = cmp.Or(want, firstWrongDuration(before, after)); !agrees(admitted.Message(), want) {
		t.Fatalf("Admit(...) = %q, want %q", admitted.Message(), want)
	}

	if _, err := podgroup.Tree(after); err != nil && lint.Allowed() {
		t.Fatalf("Tree(...): %v, but Check allows it", err)
	}
	if c := podgroup.Valid(after, metav1.Time{}); (c.Status == metav1.ConditionTrue) != lint.Allowed() {
		t.Fatalf("Valid(...) = %s %s, but Check says %q", c.Status, c.Reason, lint.Message())
	}
	checkWords(t, lint)
}

// checkWords wants every problem whole and every warning short.
func checkWords(t *testing.T, lint verdict.Verdict) {
	t.Helper()
	for _, p := range lint.Problems {
		if p.Reason == "" || p.Field == "" || p.Message == "" || p.Fix == "" {
			t.Fatalf("Check(...) has an incomplete problem: %+v", p)
		}
	}
	for _, w := range lint.WarningStrings() {
		if len(w) > 256 {
			t.Fatalf("WarningStrings() has one of %d bytes: %s", len(w), w)
		}
	}
}

// notADuration ends the message about an invalid duration.
const notADuration = " is not a duration such as 30s or 1h30m"

// firstWrongDuration returns the end of the message about the first invalid
// duration that a change sets, "" if there is none.
func firstWrongDuration(before, after *v2alpha2.PodGroup) string {
	had := &v2alpha2.PodGroupSpec{}
	if before != nil {
		had = &before.Spec
	}
	for _, d := range [][2]*v2alpha2.Duration{
		{had.PreemptionDelay, after.Spec.PreemptionDelay}, {had.StalenessGracePeriod, after.Spec.StalenessGracePeriod},
	} {
		stored := d[0] != nil && d[0].Invalid != "" && d[0].String() == d[1].String()
		if d[1] != nil && d[1].Invalid != "" && !stored {
			return notADuration
		}
	}

	return ""
}

func agrees(got, want string) bool {
	switch want {
	case "cycle detected in subgroups":
		return strings.HasPrefix(got, want)
	case notADuration:
		return strings.HasSuffix(got, want)
	}

	return got == want
}

func sameList(a, b []v2alpha2.SubGroup) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func decode(data []byte) *v2alpha2.PodGroup {
	pg := &v2alpha2.PodGroup{}
	if json.Unmarshal(data, pg) != nil {
		return nil
	}

	return pg
}

func toText(t *testing.T, v verdict.Verdict) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
