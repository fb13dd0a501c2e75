package fields_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
)

// nth calls a function with the nth call of that name.
func nth(call string, n int, do func() error) func(string) error {
	return func(c string) error {
		if c == call {
			n--
			if n == 0 {
				return do()
			}
		}

		return nil
	}
}

// A journal is a ledger of the test's own.
type journal struct {
	*ownership.Ledger

	path string
}

func keep(t *testing.T) *journal {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := ownership.CreateLedger(path)
	must(t, err)
	t.Cleanup(func() { l.Close() })

	return &journal{l, path}
}

// records are what another process finds in a journal.
func (w *world) records(kept *journal) []ownership.Record {
	w.Helper()
	if info, err := os.Stat(kept.path); err == nil && info.Size() == 0 {
		return nil
	}
	all, err := ownership.ReadRecords(kept.path)
	must(w.T, err)

	return all
}

// TestLostAnswers has the server do what it is asked, and the answer get lost. Nothing is lost by
// that: ownership is as it was, or was moved, and there is a record of it. A second call completes
// it, and the record can undo it.
func TestLostAnswers(t *testing.T) {
	broken := errors.New("broken")
	steps := map[string]struct {
		reason string
		call   string
		n      int
		// fail is a call that is not even made.
		fail string
		// done reports that the migration was found to be done.
		done bool
	}{
		"Get":          {reason: "It was only read.", call: "get", n: 1},
		"DryApply":     {reason: "The apply was only tried.", call: "apply as eno (dry)", n: 1},
		"DryRewrite":   {reason: "The rewrite was only tried.", call: "patch (dry)", n: 1},
		"Rewrite":      {reason: "Ownership was moved, and is moved back.", call: "patch", n: 1},
		"Rehearsal":    {reason: "Ownership was moved, and is moved back, since the apply was only tried.", call: "apply as eno (dry)", n: 2},
		"Apply":        {reason: "The apply was done, which the object shows.", call: "apply as eno", n: 1, done: true},
		"RestoreGet":   {reason: "The way back begins again.", call: "get", n: 2, fail: "apply as eno"},
		"DryRestore":   {reason: "The way back begins again.", call: "patch (dry)", n: 2, fail: "apply as eno"},
		"Restore":      {reason: "The way back was gone already.", call: "patch", n: 2, fail: "apply as eno"},
		"LateConflict": {reason: "The rewrite got no answer, and another manager wrote since.", call: "patch", n: 1},
	}
	lost := map[string]error{
		"EOF": io.ErrUnexpectedEOF, "Deadline": context.DeadlineExceeded,
		"Timeout": apierrors.NewTimeoutError("etcd took too long", 1), "Internal": apierrors.NewInternalError(errors.New("etcd has lost its leader")),
	}
	kinds := []string{"EOF", "Deadline", "Timeout", "Internal"}
	for name, tc := range steps {
		for i, then := range []string{"Again", "Undo", "Cancelled"} {
			t.Run(name+"/"+then, func(t *testing.T) {
				w := newWorld(t)
				before := w.seed()
				kept := keep(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answer := lost[kinds[(len(name)+i)%len(kinds)]]
				s := &spy{Client: w.c}
				s.after = nth(tc.call, tc.n, func() error {
					if name == "LateConflict" {
						w.merge("rival", before, `{metadata: {annotations: {rival: x}}}`) //nolint:contextcheck // the rival has his own
					}
					if then == "Cancelled" && tc.fail == "" {
						cancel()
						answer = ctx.Err()
					}

					return answer
				})
				if tc.fail != "" {
					s.before = nth(tc.fail, 1, func() error { return broken })
				}
				result, err := ownership.New(s, ownership.Options{Journal: kept}).Migrate(ctx, ownership.Request{Desired: w.object(dropped)})
				if tc.done != (err == nil) || tc.fail == "" && err != nil && !errors.Is(err, answer) {
					t.Errorf("%s\nit says %v: %q", tc.reason, err, s.calls)
				}
				after := w.get(before)
				same := fields.Equal(slices.DeleteFunc(w.entries(after), func(e fields.Entry) bool { return e.Manager == "rival" }), w.entries(before))
				if !tc.done && !same || same != (!result.Applied && !result.Migrated) {
					t.Errorf("%s\nit says %+v; -before, +after:\n%s", tc.reason, result, cmp.Diff(w.held(before), w.held(after)))
				}
				if !same && len(w.records(kept)) == 0 {
					t.Errorf("%s\nthere is no record", tc.reason)
				}
				if then == "Undo" && !tc.done {
					w.undone(before, kept)
				} else {
					w.migrate(ownership.New(w.c, ownership.Options{}), ownership.Request{Desired: w.object(dropped)})
					w.completed(before)
				}
			})
		}
	}
}

// undone undoes all that there are records of, as a process that knows nothing
// else, and expects what was there before.
func (w *world) undone(before *unstructured.Unstructured, kept *journal) {
	w.Helper()
	m := ownership.New(w.c, ownership.Options{})
	for _, record := range slices.Backward(w.records(kept)) {
		if _, err := m.Undo(w.Context(), record); err != nil {
			w.Error(err)
		}
	}
	after := w.get(before)
	entries := slices.DeleteFunc(w.entries(after), func(e fields.Entry) bool { return e.Manager == "rival" })
	if !fields.Equal(entries, w.entries(before)) {
		w.Errorf("ownership is not as it was: -before, +after:\n%s", cmp.Diff(w.held(before), w.held(after)))
	}
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		w.Errorf("the object is not as it was: -before, +after:\n%s", diff)
	}
}

// completed expects the init container to be gone, and nothing else.
func (w *world) completed(before *unstructured.Unstructured) {
	w.Helper()
	after := w.get(before)
	want := before.DeepCopy()
	list, _, _ := unstructured.NestedSlice(want.Object, "spec", "template", "spec", "initContainers")
	must(w.T, unstructured.SetNestedSlice(want.Object, list[1:], "spec", "template", "spec", "initContainers"))
	if diff := cmp.Diff(want.Object["spec"], after.Object["spec"]); diff != "" {
		w.Errorf("spec: -want, +got:\n%s", diff)
	}
	if after.GetLabels()["by"] != eno {
		w.Errorf("what is desired was not applied: labels are %v", after.GetLabels())
	}
	w.lostOnlyItem(before, after)
}

// TestCrash ends the process between the rewrite and the apply.
func TestCrash(t *testing.T) {
	cases := map[string]struct {
		reason string
		before string
		next   func(w *world, before *unstructured.Unstructured, kept *journal)
	}{
		"Finished": {
			reason: "The next process finishes the work, and one that undoes it later puts back what is left to put back.", before: "apply as eno",
			next: func(w *world, before *unstructured.Unstructured, kept *journal) {
				result := w.migrate(ownership.New(w.c, ownership.Options{}), ownership.Request{Desired: w.object(dropped)})
				if result.Skipped != ownership.Done || !result.Applied {
					w.Errorf("it reports %+v", result)
				}
				w.completed(before)
				all := w.records(kept)
				if len(all) != 1 {
					w.Fatalf("there are %d records", len(all))
				}
				undone, err := ownership.New(w.c, ownership.Options{}).Undo(w.Context(), all[0])
				if err != nil || !slices.ContainsFunc(undone.Notes, func(n fields.Note) bool { return n.Reason == fields.Gone }) {
					w.Errorf("it reports %+v, %v", undone, err)
				}
				w.completed(before)
			},
		},
		"Undone": {
			reason: "Somebody has the record and undoes it.", before: "apply as eno",
			next: func(w *world, before *unstructured.Unstructured, kept *journal) { w.undone(before, kept) },
		},
		"BeforeRehearsal": {
			reason: "It does not matter when exactly it ended.", before: "apply as eno (dry)",
			next: func(w *world, before *unstructured.Unstructured, kept *journal) { w.undone(before, kept) },
		},
		"BeforeRewrite": {
			reason: "There is a record of what was never done, which does no harm.", before: "patch",
			next: func(w *world, before *unstructured.Unstructured, kept *journal) {
				w.undone(before, kept)
				w.unchanged(before)
				w.migrate(ownership.New(w.c, ownership.Options{Journal: kept}), ownership.Request{Desired: w.object(dropped)})
				w.completed(before)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.seed()
			kept := keep(t)
			s := &spy{Client: w.c}
			n := 1
			if tc.before == "apply as eno (dry)" {
				n = 2
			}
			s.before = nth(tc.before, n, func() error { panic("the process ends") })
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s\nit did not end: %q", tc.reason, s.calls)
					}
				}()
				_, err := ownership.New(s, ownership.Options{Journal: kept}).Migrate(t.Context(), ownership.Request{Desired: w.object(dropped)})
				t.Errorf("%s\nit says %v", tc.reason, err)
			}()
			tc.next(w, before, kept)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

// TestRestoreFails has the server be gone from the apply on. What was moved stays moved, which is
// reported, and the record can undo it.
func TestRestoreFails(t *testing.T) {
	w := newWorld(t)
	before := w.seed()
	kept := keep(t)
	gone := false
	s := &spy{Client: w.c}
	s.before = func(call string) error {
		if gone = gone || call == "apply as eno"; gone {
			return io.ErrUnexpectedEOF
		}

		return nil
	}
	result, err := ownership.New(s, ownership.Options{Journal: kept, MaxAttempts: 3}).Migrate(t.Context(), ownership.Request{Desired: w.object(dropped)})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "cannot put ownership back") || result.Restored || !result.Migrated || len(result.Records) != 1 {
		t.Errorf("it reports %v: %+v", err, result)
	}
	if fields.Equal(w.entries(before), w.entries(w.get(before))) {
		t.Error("nothing was moved")
	}
	w.undone(before, kept)
}
