package fields_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
)

// writes counts the writes to a deployment since it was read, by having the
// server tell them one by one up to a last write that it makes itself.
func (w *world) writes(since *unstructured.Unstructured) int {
	w.Helper()
	w.merge("counter", since, `{metadata: {labels: {counted: "yes"}}}`)
	d, err := dynamic.NewForConfig(server.Config)
	must(w.T, err)
	events, err := d.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(w.ns).
		Watch(w.Context(), metav1.ListOptions{ResourceVersion: since.GetResourceVersion(), FieldSelector: "metadata.name=" + since.GetName()})
	must(w.T, err)
	defer events.Stop()
	n := 0
	for e := range events.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type != watch.Modified {
			w.Fatalf("the server reports %v", e)
		}
		if o.GetLabels()["counted"] != "" {
			return n
		}
		n++
	}
	w.Fatal("the watch ended")

	return n
}

// TestConcurrent has many migrate the same object. One of them does.
func TestConcurrent(t *testing.T) {
	const many = 50
	cases := map[string]struct {
		reason string
		one    bool
	}{
		"OneMigrator":   {reason: "Workers of one process race.", one: true},
		"ManyMigrators": {reason: "Processes that know nothing of each other race."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.seed()
			m := ownership.New(w.c, ownership.Options{})
			var migrated atomic.Int32
			var all sync.WaitGroup
			start := make(chan struct{})
			for range many {
				m := m
				if !tc.one {
					m = ownership.New(w.c, ownership.Options{})
				}
				all.Go(func() {
					<-start
					result, err := m.MigrateOwnership(t.Context(), before)
					switch {
					case err != nil:
						t.Error(err)
					case result.Migrated:
						migrated.Add(1)
					case result.Skipped != ownership.Done:
						t.Errorf("%s\none was skipped: %s", tc.reason, result.Skipped)
					}
				})
			}
			close(start)
			all.Wait()
			after := w.get(before)
			if n := migrated.Load(); n != 1 {
				t.Errorf("%s\n%d say that they migrated it", tc.reason, n)
			}
			if n := w.writes(before); n != 1 {
				t.Errorf("%s\nit was written %d times", tc.reason, n)
			}
			w.lostOnlyItem(before, after)
			status, err := ownership.CheckOwnership(after, initContainers+"[name=base-os-bash]", eno)
			must(t, err)
			if !status.FullyOwned {
				t.Errorf("%s\nthe item is not owned: %+v", tc.reason, status)
			}
		})
	}
}

// first calls a function before the first call of that name.
func first(call string, do func()) func(string) error {
	var once sync.Once

	return func(c string) error {
		if c == call {
			once.Do(do)
		}

		return nil
	}
}

// TestRaces has another manager write in between.
func TestRaces(t *testing.T) {
	cases := map[string]struct {
		reason string
		before string
	}{
		"BeforeDryRun":  {reason: "It is written between the plan and the dry run.", before: "patch (dry)"},
		"BeforeRewrite": {reason: "It is written between the dry run and the rewrite.", before: "patch"},
		"BeforeApply":   {reason: "It is written between the rewrite and the apply.", before: "apply as eno"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.seed()
			s := &spy{Client: w.c}
			s.before = first(tc.before, func() {
				w.merge("rival", o, `{metadata: {labels: {rival: x}}, spec: {template: {spec: {initContainers: [{name: base-os-bash, workingDir: /}]}}}}`)
			})
			m := ownership.New(s, ownership.Options{})
			result := w.migrate(m, ownership.Request{Desired: w.object(dropped)})
			after := w.get(o)
			if diff := cmp.Diff([]string{"other"}, names(after, initContainers)); diff != "" {
				t.Errorf("%s\ninit containers: -want, +got:\n%s", tc.reason, diff)
			}
			if result.Attempts != 2 || !result.Migrated || !result.Applied {
				t.Errorf("%s\n%d attempts: %q", tc.reason, result.Attempts, s.calls)
			}
			if diff := cmp.Diff([]string{"metadata.labels.rival"}, w.held(after)["rival (Update apps/v1)"]); diff != "" {
				t.Errorf("%s\nthe rival has: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	t.Run("Always", func(t *testing.T) {
		w := newWorld(t)
		o := w.seed()
		s := &spy{Client: w.c}
		n := 0
		s.before = func(call string) error {
			if call == "patch" {
				n++
				w.merge("rival", o, `{metadata: {labels: {rival: "`+strings.Repeat("x", n)+`"}}}`)
			}

			return nil
		}
		_, err := ownership.New(s, ownership.Options{MaxAttempts: 3}).MigrateOwnership(t.Context(), o)
		if !apierrors.IsConflict(err) || n != 3 {
			t.Errorf("after %d attempts it reports %v", n, err)
		}
	})
}

// TestVersion has a desired state that was made for one version of the object, which
// another writer changes. Nothing is applied, and ownership is as it was.
func TestVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		before string
	}{
		"BeforeRead":    {reason: "It is written before the migration reads it.", before: "get"},
		"BeforeDryRun":  {reason: "It is written between the plan and the dry run.", before: "patch (dry)"},
		"BeforeRewrite": {reason: "It is written between the dry run and the rewrite.", before: "patch"},
		"BeforeApply":   {reason: "It is written between the rewrite and the apply.", before: "apply as eno"},
		"Undisturbed":   {reason: "No other client writes.", before: "never"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.seed()
			before := w.get(o)
			s := &spy{Client: w.c}
			s.before = first(tc.before, func() { w.merge("rival", o, `{metadata: {labels: {rival: x}}}`) })
			result, err := ownership.New(s, ownership.Options{}).Migrate(t.Context(), ownership.Request{Desired: w.object(dropped), Version: before.GetResourceVersion()})
			after := w.get(o)
			if tc.before == "never" {
				if err != nil || !result.Applied {
					t.Errorf("%s\nit says %v: %+v", tc.reason, err, result)
				}

				return
			}
			if !ownership.IsStale(err) || !apierrors.IsConflict(err) || result.Applied || result.Migrated {
				t.Errorf("%s\nit says %v: %+v", tc.reason, err, result)
			}
			held := w.held(after)
			delete(held, "rival (Update apps/v1)")
			if diff := cmp.Diff(w.held(before), held); diff != "" {
				t.Errorf("%s\nownership is not as it was: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRestore has the apply fail after the rewrite.
func TestRestore(t *testing.T) {
	w := newWorld(t)
	before := w.seed()
	s := &spy{Client: w.c}
	broken := errors.New("broken")
	s.before = func(call string) error {
		if call == "apply as eno" {
			return broken
		}

		return nil
	}
	m := ownership.New(s, ownership.Options{})
	result, err := m.Migrate(t.Context(), ownership.Request{Desired: w.object(dropped)})
	if !errors.Is(err, broken) || !result.Restored || result.Migrated {
		t.Errorf("it reports %v: %+v", err, result)
	}
	after := w.get(before)
	if !fields.Equal(w.entries(before), w.entries(after)) {
		t.Errorf("ownership is not as it was: -before, +after:\n%s", cmp.Diff(w.held(before), w.held(after)))
	}
	if diff := cmp.Diff(content(before), content(after)); diff != "" {
		t.Errorf("the object is not as it was: -before, +after:\n%s", diff)
	}
	want := []string{
		"get", "apply as eno (dry)", "apply as arbor-probe (dry)", "patch (dry)", "patch", "apply as eno (dry)", "apply as eno", // the migration
		"get", "patch (dry)", "patch", // the way back
	}
	if diff := cmp.Diff(want, s.calls); diff != "" {
		t.Errorf("calls: -want, +got:\n%s", diff)
	}

	// The server itself rejects what is desired, for another reason.
	s.before = nil
	bad := strings.Replace(dropped, "labels: {by: eno}", `labels: {by: "not a label!"}`, 1)
	result, err = m.Migrate(t.Context(), ownership.Request{Desired: w.object(bad)})
	if !apierrors.IsInvalid(err) || !result.Restored {
		t.Errorf("it reports %v: %+v", err, result)
	}
	if now := w.get(before); !fields.Equal(w.entries(before), w.entries(now)) {
		t.Errorf("ownership is not as it was: -before, +after:\n%s", cmp.Diff(w.held(before), w.held(now)))
	}
}

// TestDamping has a manager take back what is moved, again and again.
func TestDamping(t *testing.T) {
	w := newWorld(t)
	o := w.seed()
	m := ownership.New(w.c, ownership.Options{MaxRounds: 3})
	steal := func() {
		w.merge(legacy, o, `{spec: {template: {spec: {initContainers: [{name: base-os-bash, image: "base:1", command: [other]}]}}}}`)
		w.merge(legacy, o, `{spec: {template: {spec: {initContainers: [{name: base-os-bash, image: "base:1", command: [sh]}]}}}}`)
	}
	var got []ownership.Reason
	for range 5 {
		steal()
		result, err := m.MigrateOwnership(t.Context(), o)
		must(t, err)
		got = append(got, result.Skipped)
		if result.Skipped == ownership.Contested && !slices.Equal(result.Plan.Contested, []string{legacy}) {
			t.Errorf("%q are reported as contested", result.Plan.Contested)
		}
	}
	if diff := cmp.Diff([]ownership.Reason{"", "", "", ownership.Contested, ownership.Contested}, got); diff != "" {
		t.Errorf("rounds: -want, +got:\n%s", diff)
	}
	steal()
	before := w.get(o)
	_, err := m.MigrateOwnership(t.Context(), o)
	must(t, err)
	w.unchanged(before)
}
