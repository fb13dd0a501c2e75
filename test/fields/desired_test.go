package fields_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
)

// A twin knows things, and nothing else, as lists of lines: what there is, and
// who names it. It is slow and shares no code with what it checks.
type twin struct {
	// values are by line: that of each field that can be held alone, and "item"
	// for an item of a list itself.
	values map[string]string
	// named are lines by manager, with the operation.
	named map[string][]string
}

func twinOf(w *world, o *unstructured.Unstructured) twin {
	w.Helper()
	t := twin{values: map[string]string{}, named: map[string][]string{}}
	for name, v := range o.GetLabels() {
		t.values["f:metadata|f:labels|f:"+name] = v
	}
	s, _ := o.Object["spec"].(map[string]any)
	for name, v := range s {
		t.value("f:spec|f:"+name, name, v)
	}
	for _, e := range o.GetManagedFields() {
		var tree map[string]any
		must(w.T, json.Unmarshal(e.FieldsV1.GetRawBytes(), &tree))
		by := e.Manager + " " + string(e.Operation)
		t.named[by] = append(t.named[by], linesOf("", tree)...)
	}

	return t
}

// value writes the lines of a field of the spec.
func (t twin) value(at, name string, v any) {
	text := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err) // it came as JSON
		}

		return string(data)
	}
	if v == nil { // what the server leaves of a map without keys
		return
	}
	switch name {
	case "items", "ports":
		for _, item := range v.([]any) {
			item := item.(map[string]any)
			key := fmt.Sprintf(`%s|k:{"id":%s}`, at, text(item["id"]))
			if name == "ports" {
				key = fmt.Sprintf(`%s|k:{"port":%s,"protocol":%s}`, at, text(item["port"]), text(item["protocol"]))
			}
			t.values[key] = "item"
			for field, v := range item {
				// Keys come and go with the item.
				if !slices.Contains([]string{"id", "port", "protocol"}, field) {
					t.values[key+"|f:"+field] = text(v)
				}
			}
		}
	case "tags":
		for _, v := range v.([]any) {
			t.values[at+"|v:"+text(v)] = "item"
		}
	case "free", "b":
		for field, v := range v.(map[string]any) {
			t.value(at+"|f:"+field, field, v)
		}
	default:
		t.values[at] = text(v)
	}
}

// linesOf are the paths of a set as it is written.
func linesOf(at string, tree map[string]any) []string {
	var all []string
	for name, below := range tree {
		if name == "." {
			all = append(all, at)

			continue
		}
		path := strings.TrimPrefix(at+"|"+name, "|")
		if more := below.(map[string]any); len(more) > 0 {
			all = append(all, linesOf(path, more)...)
		} else {
			all = append(all, path)
		}
	}

	return all
}

// names reports whether a manager names a line, or something below.
func (t twin) names(by, line string) bool {
	return slices.ContainsFunc(t.named[by], func(s string) bool { return s == line || strings.HasPrefix(s, line+"|") })
}

func (t twin) mine(line string) bool {
	return t.names("eno Apply", line) || t.names("eno Update", line)
}

// others are the managers that name a line itself.
func (t twin) others(line string) []string {
	var all []string
	for _, by := range slices.Sorted(maps.Keys(t.named)) {
		if !strings.HasPrefix(by, "eno ") && slices.Contains(t.named[by], line) {
			all = append(all, by)
		}
	}

	return all
}

// expect returns what is not as it should be after what is desired was applied,
// where scope is the beginning of the lines that are in it.
func (t twin) expect(after, desired twin, scope string) []string {
	var wrong []string
	dropped := func(line string) bool {
		return strings.HasPrefix(line, scope) && t.mine(line) && !after.names("eno Apply", line)
	}
	for line, value := range t.values {
		item := line
		if at := strings.LastIndex(line, "}|f:"); at >= 0 {
			item = line[:at+1]
		}
		now, there := after.values[line]
		switch {
		case after.names("eno Apply", line): // see below
		case dropped(line) || dropped(item):
			if there {
				wrong = append(wrong, fmt.Sprintf("%s should be gone: %v name it", line, after.others(line)))
			}
		case t.mine(line) || t.mine(item) && !after.names("eno Apply", item) || len(t.others(line)) == 0: // out of scope, or owned by no manager
		case !there || now != value || !slices.Equal(t.others(line), after.others(line)):
			wrong = append(wrong, fmt.Sprintf("%s of %v was %s, is %s of %v", line, t.others(line), value, now, after.others(line)))
		}
	}
	for line, value := range desired.values {
		if now := after.values[line]; now != value || desired.names("reader Apply", line) && !after.names("eno Apply", line) {
			wrong = append(wrong, fmt.Sprintf("%s should be %s and is %s", line, value, now))
		}
	}

	return wrong
}

// TestRandomDesired migrates to random wishes after random histories.
func TestRandomDesired(t *testing.T) {
	const rounds = 150
	w := newWorld(t)
	w.things()
	count := map[string]int{}
	seeds := []uint64{360, 526, 749, 850} // were wrong once
	for n := range uint64(rounds) {
		seeds = append(seeds, n)
	}
	for _, round := range seeds {
		d := dice{rand.New(rand.NewPCG(round, 77))}
		name := fmt.Sprintf("x%d", round)
		before := d.history(w, name)
		wanted := d.spec()
		for strings.Contains(wanted, "free: {}") { // the server makes it null if a key of it goes
			wanted = d.spec()
		}
		text := strings.Replace(thing(wanted), "{name: x}", fmt.Sprintf("{name: %s, labels: {%s}}", name, d.some("a: x", "b: z", "c: x")), 1)
		desired := w.object(text)
		scope := d.pick("", "", "", "spec", "spec.items", "spec.ports", "spec.tags", "metadata.labels")
		prefix := strings.ReplaceAll("f:"+scope, ".", "|f:")
		request := ownership.Request{Desired: desired, Scopes: []fields.Scope{{}}}
		if scope == "" {
			prefix = ""
		} else {
			request.Scopes = scopes(scope)
		}
		seen := &spy{Client: w.c}
		m := ownership.New(seen, ownership.Options{})
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("round %d, scope %q: %s\n%s\nbefore: %v", round, scope, fmt.Sprintf(format, args...), text, w.held(before))
		}
		result, err := m.Migrate(t.Context(), request)
		after := w.get(before)
		if err != nil {
			// What is in the way may be out of the scope.
			if scope == "" || !apierrors.IsInvalid(err) && !apierrors.IsInternalError(err) {
				fail("%v", err)
			}
			if !fields.Equal(w.entries(before), w.entries(after)) || cmp.Diff(content(before), content(after)) != "" {
				fail("it failed and changed something: %v", err)
			}
			count["failed"]++

			continue
		}
		count["migrated "+strconv.FormatBool(result.Migrated)]++

		// The server adds the keys that are left out.
		wish, _ := w.apply("reader", renamed(desired))
		if wrong := twinOf(w, before).expect(twinOf(w, after), twinOf(w, wish), prefix); len(wrong) > 0 {
			slices.Sort(wrong)
			fail("%s", strings.Join(wrong, "\n"))
		}
		// Empty maps and lists come and go when the server applies the same again, so that the
		// resource version is not useful here.
		seen.calls = nil
		if again := w.migrate(m, request); again.Migrated || slices.Contains(seen.calls, "patch") {
			fail("it was migrated twice: %q", seen.calls)
		}
		if diff := cmp.Diff(twinOf(w, after).values, twinOf(w, w.get(before)).values); diff != "" {
			fail("the second time it changed: -first, +second:\n%s", diff)
		}
		// Undone after that, other managers have again what is left of theirs, and nothing comes or
		// goes.
		for _, record := range slices.Backward(result.Records) {
			if _, err := m.Undo(t.Context(), record); err != nil {
				fail("cannot undo: %v", err)
			}
		}
		undone := twinOf(w, w.get(before))
		if diff := cmp.Diff(twinOf(w, after).values, undone.values); diff != "" {
			fail("undoing it changed the object: -before, +after:\n%s", diff)
		}
		for line := range undone.values {
			for _, by := range twinOf(w, before).others(line) {
				if len(result.Records) > 0 && twinOf(w, before).values[line] == undone.values[line] && !slices.Contains(undone.others(line), by) {
					fail("%s does not have %s again", by, line)
				}
			}
		}
	}
	if count["migrated true"] < rounds/4 || count["migrated false"] < rounds/20 || count["failed"] > rounds/4 {
		t.Errorf("histories are too much alike: %v", count)
	}
}

// renamed is an object under another name.
func renamed(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetName(o.GetName() + "-wish")

	return o
}
