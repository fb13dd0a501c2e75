package ownership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// holding is an entry with these fields of the data, and with those items.
func holding(manager, operation string, names ...string) string {
	var all []string
	for _, name := range names {
		if strings.HasPrefix(name, "k:") {
			continue
		}
		all = append(all, fmt.Sprintf(`"f:%s": {}`, name))
	}
	items := ""
	for _, name := range names {
		if key, ok := strings.CutPrefix(name, "k:"); ok {
			items = fmt.Sprintf(`, "f:items": {"k:{\"name\":\"%s\"}": {".": {}, "f:name": {}}}`, key)
		}
	}

	return fmt.Sprintf(`{"manager": %q, "operation": %q, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {%s}%s}}`, manager, operation, strings.Join(all, ","), items)
}

// made is an object with these data and items.
func made(t *testing.T, data, items string, entries ...string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, "x", entries...)
	all := map[string]any{}
	for name := range strings.FieldsSeq(data) {
		all[name] = "x"
	}
	o.Object["data"] = all
	var list []any
	for name := range strings.FieldsSeq(items) {
		list = append(list, map[string]any{"name": name})
	}
	if list != nil {
		o.Object["items"] = list
	}

	return o
}

// TestSettle is about entries that differ from what an apply leaves. Only a webhook that changes
// them could do that.
func TestSettle(t *testing.T) {
	live := made(t, "a b other", "gone", holding("eno", "Apply", "a", "b", "k:gone"), holding("old", "Update", "other"))
	before, err := fields.Read(live.Object)
	if err != nil {
		t.Fatal(err)
	}
	next := fieldpath.NewSet(fieldpath.MakePathOrDie("data", "a"))
	plan := &Plan{Live: live, Before: before, Entries: before, next: next, said: true}
	plan.Then = fields.New(live.Object, before).Removals("eno", nil, next)
	if len(plan.Then) != 2 {
		t.Fatalf("the plan is %v", plan.Then)
	}
	cases := map[string]struct {
		reason string
		after  *unstructured.Unstructured
		says   string
	}{
		"Fine": {
			reason: "All is as it should be.", after: made(t, "a other", "", holding("eno", "Apply", "a"), holding("old", "Update", "other")),
		},
		"Default": {
			reason: "A field that nobody holds may be a default.", after: made(t, "a b other", "", holding("eno", "Apply", "a"), holding("old", "Update", "other")),
		},
		"Held": {
			reason: "A field that somebody holds is none.", after: made(t, "a b other", "", holding("eno", "Apply", "a"), holding("old", "Update", "other", "b")),
			says: "data.b of ConfigMap c should be gone and is there: held by old (Update v1)",
		},
		"Item": {
			reason: "An item of a list is no default, whoever holds it.", after: made(t, "a other", "gone", holding("eno", "Apply", "a"), holding("old", "Update", "other")),
			says: "items[name=gone] of ConfigMap c should be gone and is there: nobody holds it",
		},
		"NotOwned": {
			reason: "What was applied is somebody else's.", after: made(t, "a other", "", holding("thief", "Update", "a"), holding("old", "Update", "other")),
			says: "eno applied data.a of ConfigMap c and does not own it: held by thief (Update v1)",
		},
		"NotThere": {
			reason: "What was applied is not even there.", after: made(t, "other", "", holding("old", "Update", "other")),
			says: "it is not there",
		},
		"OthersGone": {
			reason: "Somebody else's field is gone.", after: made(t, "a", "", holding("eno", "Apply", "a"), holding("old", "Update", "other")),
			says: "data.other of ConfigMap c is gone, which old (Update v1) held",
		},
		"OthersLost": {
			reason: "Somebody else has lost a field.", after: made(t, "a other", "", holding("eno", "Apply", "a"), holding("old", "Update", "unrelated")),
			says: "data.other of ConfigMap c is no longer held by old (Update v1)",
		},
		"Unreadable": {
			reason: "Nobody knows who has what.", after: made(t, "a", "", `{"manager": "x", "fieldsV1": 1}`),
			says: "cannot read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := settle(plan, "eno", tc.after)
			if err == nil {
				err = s.done()
			}
			if tc.says == "" {
				if err != nil {
					t.Errorf("%s\nit says %v", tc.reason, err)
				}

				return
			}
			if ReasonOf(err) != Unsettled || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s\nit says %v", tc.reason, err)
			}
		})
	}
}

func TestIsAnswer(t *testing.T) {
	thing := schema.GroupResource{Resource: "things"}
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Conflict":  {reason: "The server has said no.", err: apierrors.NewConflict(thing, "x", errors.New("stale")), want: true},
		"Forbidden": {reason: "So it has.", err: fmt.Errorf("cannot: %w", apierrors.NewForbidden(thing, "x", errors.New("no"))), want: true},
		"Timeout":   {reason: "What the server waited for may have been done.", err: apierrors.NewTimeoutError("slow", 1)},
		"Internal":  {reason: "So may what it had trouble with.", err: apierrors.NewInternalError(errors.New("lost"))},
		"EOF":       {reason: "The connection ended.", err: io.ErrUnexpectedEOF},
		"Late":      {reason: "Nobody waited any longer.", err: context.DeadlineExceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isAnswer(tc.err); got != tc.want {
				t.Errorf("%s\nisAnswer(%v): %t", tc.reason, tc.err, got)
			}
		})
	}
}
