package watch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

func entry(manager, fields string, second int64) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Unix(second, 0))

	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestOwnOf(t *testing.T) {
	const fields = `{"f:a":{},"f:b":{".":{},"f:c":{}}}`
	of := func(all ...metav1.ManagedFieldsEntry) string { return OwnedFields(all, decide.Manager) }
	status := entry(decide.Manager, fields, 9)
	status.Subresource = "status"
	mine := of(entry(decide.Manager, fields, 1))
	cases := map[string]struct {
		reason string
		got    string
		same   bool
	}{
		"Order":   {reason: "The server and Go do not order keys alike.", got: of(entry(decide.Manager, `{"f:b":{"f:c":{},".":{}},"f:a":{}}`, 1)), same: true},
		"Others":  {reason: "What others hold does not matter.", got: of(entry("x", `{"f:d":{}}`, 2), entry(decide.Manager, fields, 1)), same: true},
		"Status":  {reason: "Nor what anybody writes through a subresource.", got: of(entry(decide.Manager, fields, 1), status), same: true},
		"Taken":   {reason: "A field was taken away.", got: of(entry(decide.Manager, `{"f:a":{},"f:b":{".":{}}}`, 1))},
		"Another": {reason: "Another of us wrote.", got: of(entry(decide.Manager, fields, 2))},
		"None":    {reason: "All was taken away.", got: of(entry("x", fields, 1))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if (tc.got == mine) != tc.same {
				t.Errorf("%s\nownOf(...): %s, had %s", tc.reason, tc.got, mine)
			}
		})
	}
}

// TestSlim keeps what drift is seen by, and may be asked twice, as informers do.
func TestSlim(t *testing.T) {
	full := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"x": "y"}, Annotations: map[string]string{"large": "text"},
		ManagedFields: []metav1.ManagedFieldsEntry{entry(decide.Manager, `{"f:a":{}}`, 3), entry("old", `{}`, 1), entry("new", `{}`, 2)},
	}}
	once, err := slim(full, decide.Manager)
	if err != nil {
		t.Fatal(err)
	}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "a", UID: "u", ResourceVersion: "7", Annotations: map[string]string{keptOwn: OwnedFields(full.ManagedFields, decide.Manager), keptWriter: "new"},
	}}
	if diff := cmp.Diff(want, once); diff != "" {
		t.Errorf("slim(...): -want, +got:\n%s", diff)
	}
	if twice, err := slim(once, decide.Manager); err != nil || twice != once {
		t.Errorf("slim(slim(...)): %v, %v", twice, err)
	}
}

// TestSharedObject has two compositions that want one object, and write it within a second.
func TestSharedObject(t *testing.T) {
	at := Location{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "o"}}
	a, b := queue.Key{Composition: types.NamespacedName{Name: "a"}}, queue.Key{Composition: types.NamespacedName{Name: "b"}}
	var queued []string
	w := New(nil, decide.Manager, func(k queue.Key) { queued = append(queued, k.Composition.Name) })
	k := &kindWatch{stop: make(chan struct{}), interest: map[types.NamespacedName]map[queue.Key]bool{}, lastWrites: map[types.NamespacedName]*lastWrite{}}
	w.kinds[at.GroupVersionResource] = k
	look := func(step string, wantQueued []string, disputedByA, disputedByB bool) {
		t.Helper()
		if diff := cmp.Diff(wantQueued, queued); diff != "" {
			t.Errorf("%s: queued are (-want +got):\n%s", step, diff)
		}
		if w.IsContested(at, a) != disputedByA || w.IsContested(at, b) != disputedByB {
			t.Errorf("%s: disputed is %t and %t", step, w.IsContested(at, a), w.IsContested(at, b))
		}
		queued = nil
	}

	w.Track(at, a)
	w.Written(at, "1", a)
	look("no other composition wants it", nil, false, false)
	w.Track(at, b)
	w.Written(at, "2", b)
	look("the other wants something else", []string{"a"}, true, false)
	w.Written(at, "3", a)
	look("which is put right", []string{"b"}, false, true)
	w.Written(at, "2", b)
	look("an old answer comes late", nil, false, true)
	w.Written(at, "3", b)
	look("the other has nothing to change", nil, false, false)
	w.Written(at, "4", a)
	w.Untrack(at, a)
	look("it goes with the last word", []string{"b"}, false, true)
	w.Written(at, "5", b)
	look("which is not the last", nil, true, false)
	w.Untrack(at, b)
	look("no composition wants it any more", nil, false, false)
}
