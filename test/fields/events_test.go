package fields_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

// recorder sends events to the server.
func (w *world) recorder() events.EventRecorder {
	w.Helper()
	set, err := kubernetes.NewForConfig(server.Config)
	must(w.T, err)
	b := events.NewBroadcaster(&events.EventSinkImpl{Interface: set.EventsV1()})
	w.Cleanup(b.Shutdown)
	must(w.T, b.StartRecordingToSinkWithContext(w.Context()))

	return b.NewRecorder(clientgoscheme.Scheme, eno)
}

// events are those that eno reports of an object, by reason.
func (w *world) events(uid string) (map[string][]eventsv1.Event, error) {
	list := &eventsv1.EventList{}
	if err := w.c.List(w.Context(), list, client.InNamespace(w.ns)); err != nil {
		return nil, err
	}
	all := map[string][]eventsv1.Event{}
	for _, e := range list.Items {
		if string(e.Regarding.UID) == uid && e.ReportingController == eno {
			all[e.Reason] = append(all[e.Reason], e)
		}
	}

	return all, nil
}

// TestEvents has them arrive at the object, each once however often it happens.
func TestEvents(t *testing.T) {
	const often = 6
	w := newWorld(t)
	o := w.seed()
	recorder := w.recorder()
	m := ownership.New(w.c, ownership.Options{MaxRounds: often, Recorder: recorder})
	steal := func() {
		w.merge(legacy, o, `{spec: {template: {spec: {initContainers: [{name: base-os-bash, image: "base:1", command: [other]}]}}}}`)
		w.merge(legacy, o, `{spec: {template: {spec: {initContainers: [{name: base-os-bash, image: "base:1", command: [sh]}]}}}}`)
	}
	for range often {
		w.migrate(m, ownership.Request{Object: o})
		steal()
	}
	for range often {
		if result := w.migrate(m, ownership.Request{Object: o}); result.Skipped != ownership.Contested {
			t.Fatalf("it reports %+v", result)
		}
		w.merge("other", o, `{metadata: {labels: {team: "`+w.get(o).GetResourceVersion()+`"}}}`)
	}
	bad := w.object(strings.Replace(dropped, "labels: {by: eno}", `labels: {by: "not a label!"}`, 1))
	failing := ownership.New(w.c, ownership.Options{MaxRounds: often, Recorder: recorder})
	for range often {
		if _, err := failing.Migrate(t.Context(), ownership.Request{Desired: bad}); err == nil {
			t.Fatal("it was applied")
		}
	}
	cases := map[string]struct{ reason, kind, says string }{
		"OwnershipMigrated":    {reason: "The event names the previous managers.", kind: "Normal", says: "eno now owns what [" + legacy + "] had"},
		"OwnershipContested":   {reason: "The event names the manager that takes fields back.", kind: "Warning", says: "[" + legacy + "] take back"},
		"OwnershipNotMigrated": {reason: "The event has the reason.", kind: "Warning", says: "not a label!"},
	}
	cluster.Eventually(t, "all events are there, as series", func() error {
		all, err := w.events(string(o.GetUID()))
		if err != nil {
			return err
		}
		for reason := range cases {
			if got := all[reason]; len(got) != 1 || got[0].Series == nil {
				return fmt.Errorf("%s: %v", reason, got)
			}
		}

		return nil
	})
	all, err := w.events(string(o.GetUID()))
	must(t, err)
	if len(all) != len(cases) {
		t.Errorf("there are others: %v", all)
	}
	for reason, tc := range cases {
		e := all[reason][0]
		if e.Type != tc.kind || !strings.Contains(e.Note, tc.says) || e.Regarding.Kind != "Deployment" || e.Regarding.Name != o.GetName() {
			t.Errorf("%s\n%s: %+v", tc.reason, reason, e)
		}
	}
}

// TestQuiet has nothing to do, and reports it only at the detailed log level.
func TestQuiet(t *testing.T) {
	w := newWorld(t)
	o := w.seed()
	var mu sync.Mutex
	var lines []string
	said := func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { lines = nil }()

		return lines
	}
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, args)
	}, funcr.Options{})
	ctx := logr.NewContext(t.Context(), log)
	m := ownership.New(w.c, ownership.Options{})
	migrate := func() {
		t.Helper()
		if _, err := m.Migrate(ctx, ownership.Request{Desired: w.object(dropped)}); err != nil {
			t.Fatal(err)
		}
	}
	migrate()
	if got := said(); len(got) != 1 || !strings.Contains(got[0], "migrated ownership") {
		t.Errorf("when it is done it reports %q", got)
	}
	for range 5 {
		migrate()
	}
	if _, err := m.Migrate(ctx, ownership.Request{Object: o, Scopes: scopes("spec.template.spec.volumes")}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string(nil), said()); diff != "" {
		t.Errorf("with nothing to do it says: -want, +got:\n%s", diff)
	}
}

// TestManyNames has as many managers as anybody may make up. They do not become
// as many series.
func TestManyNames(t *testing.T) {
	const names = 200
	w := newWorld(t)
	o := w.create(legacy, config("a: x"))
	registry := prometheus.NewPedanticRegistry()
	m := ownership.New(w.c, ownership.Options{Mode: fields.Whole, MaxRounds: names, Metrics: ownership.NewMetrics(registry)})
	for i := range names {
		w.merge(fmt.Sprintf("manager-%d", i), o, fmt.Sprintf(`{data: {a: "%d"}}`, i))
		w.migrate(m, ownership.Request{Object: o, Scopes: scopes("data")})
	}
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() != "eno_split_ownership_detected_total" {
			continue
		}
		total := 0.0
		for _, s := range f.GetMetric() {
			total += s.GetCounter().GetValue()
		}
		if n := len(f.GetMetric()); n > 40 || total < names {
			t.Errorf("there are %d series for %v finds", n, total)
		}

		return
	}
	t.Error("nothing was counted")
}
