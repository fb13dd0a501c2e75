package health

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

// A healthWorld is a server with one kind of objects, and a tracker with a clock that the
// test moves.
type healthWorld struct {
	*Tracker

	t     *testing.T
	clock time.Time
	kind  schema.GroupVersionKind
	// versions and ready are those of the objects, and stateless those without status.
	versions  map[string]int
	ready     map[string]bool
	stateless bool
	reads     map[string][]time.Time
	admitted  int
	fails     error
}

func newHealthWorld(t *testing.T, kind schema.GroupVersionKind) *healthWorld {
	t.Helper()
	w := &healthWorld{t: t, clock: time.Unix(1_000_000, 0), kind: kind, versions: map[string]int{}, ready: map[string]bool{}, reads: map[string][]time.Time{}}
	w.Tracker = NewTracker(watch.New(nil, decide.Manager, func(queue.Key) {}), nil, func() int { return 0 })
	w.Now = func() time.Time { return w.clock }
	w.get = func(_ context.Context, target Target) (*unstructured.Unstructured, error) {
		w.reads[target.At.Name] = append(w.reads[target.At.Name], w.clock)

		return w.live(target.At.Name), w.fails
	}
	w.watched = func(at watch.Location, _ string) observed.Object {
		n := w.versions[at.Name]

		return observed.Object{Known: true, Present: n > 0, Version: strconv.Itoa(n), NoStatus: w.stateless}
	}
	w.admit = func(context.Context) error {
		w.admitted++

		return nil
	}

	return w
}

var (
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	customKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "T"}
)

func (w *healthWorld) live(name string) *unstructured.Unstructured {
	if w.versions[name] == 0 {
		return nil
	}
	status := "False"
	if w.ready[name] {
		status = "True"
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Reconciling", "status": map[string]string{"True": "False", "False": "True"}[status], "reason": "Busy"},
		map[string]any{"type": "Ready", "status": status},
	}}}}
	o.SetGroupVersionKind(w.kind)
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetResourceVersion(strconv.Itoa(w.versions[name]))

	return o
}

func (w *healthWorld) key(name string) queue.Key {
	return queue.Key{Composition: types.NamespacedName{Namespace: "n", Name: "c"}, Object: decide.Identity{Group: w.kind.Group, Kind: w.kind.Kind, Name: name}}
}

// worker has a worker of the delivery finish with an object, which it has in hand or not.
func (w *healthWorld) worker(name string, inHand bool) {
	m := &model.Memory{Location: watch.Location{NamespacedName: types.NamespacedName{Name: name}}, Watched: true}
	var live *unstructured.Unstructured
	if inHand {
		live = w.live(name)
	}
	w.Observe(w.key(name), &decide.Resource{Identity: w.key(name).Object, GVK: w.kind}, m, live)
}

// serve takes the object from the queue of reads, as often as that has it.
func (w *healthWorld) serve(name string) {
	w.t.Helper()
	if err := w.one(w.t.Context(), w.key(name)); err != nil && w.fails == nil {
		w.t.Fatal(err)
	}
}

// state is that of the object a.
func (w *healthWorld) state() objecthealth.State {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.of(w.key("a").Composition).objects[w.key("a").Object].record.State
}

// TestHealthReads has a status change ten times in a second for a minute.
func TestHealthReads(t *testing.T) {
	w := newHealthWorld(t, customKind)
	w.versions["a"] = 1
	w.worker("a", true)
	w.serve("a")
	if len(w.reads["a"]) != 0 {
		t.Fatal("an object that was just applied is read")
	}
	begin := w.clock
	for i := range 600 {
		w.clock = begin.Add(time.Duration(i) * 100 * time.Millisecond)
		w.versions["a"]++
		w.worker("a", false)
		w.serve("a")
	}
	for i, at := range w.reads["a"] {
		if i > 0 && at.Sub(w.reads["a"][i-1]) < Pause {
			t.Errorf("read %d comes %s after the one before", i, at.Sub(w.reads["a"][i-1]))
		}
	}
	if n := len(w.reads["a"]); n != 12 || w.admitted != n {
		t.Errorf("%d reads, and %d were admitted; want 12 in a minute", n, w.admitted)
	}
	w.clock = w.clock.Add(Pause)
	w.serve("a")
	before := len(w.reads["a"])
	for range 10 {
		w.clock = w.clock.Add(time.Minute)
		w.worker("a", false)
		w.serve("a")
	}
	if n := len(w.reads["a"]) - before; n != 0 {
		t.Errorf("at rest there were %d reads", n)
	}
}

// TestHealthUnwatched has an object of a kind that the manager may not watch: no event shows when
// it is ready, so it is read again, more often until it is.
func TestHealthUnwatched(t *testing.T) {
	w := newHealthWorld(t, customKind)
	watched := false
	w.watched = func(watch.Location, string) observed.Object {
		return observed.Object{Known: watched, Present: true, Version: "1"}
	}
	w.versions["a"] = 1
	w.worker("a", true)
	k := queue.Key{Object: decide.Identity{Name: "none"}}
	for _, c := range w.compositions {
		for id := range c.objects {
			k.Object = id
		}
	}
	for name := range w.compositions {
		k.Composition = name
	}
	reads := func() bool {
		w.clock = w.clock.Add(unhealthyPause)
		_, _, ok := w.next(k)

		return ok
	}
	if !reads() {
		t.Error("it is not read again")
	}
	watched = true
	if reads() {
		t.Error("it is read although its watch has seen nothing new")
	}
	watched = false
	w.versions["a"], w.ready["a"] = 2, true
	if err := w.one(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if len(w.reads["a"]) != 1 {
		t.Fatalf("it was read %d times", len(w.reads["a"]))
	}
	w.versions["a"] = 0 // it is deleted
	w.clock = w.clock.Add(unwatchedPause)
	if err := w.one(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if got := w.compositions[k.Composition].objects[k.Object].record.State; got == objecthealth.Current || !reads() {
		t.Errorf("its deletion is not noticed: %v", got)
	}
}

// TestHealthReadsBurst has an object change many times at once.
func TestHealthReadsBurst(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for name, tc := range map[string]struct {
		reason  string
		kind    schema.GroupVersionKind
		changes int
		want    []time.Duration
	}{
		"ConfigMap":  {"It works once it is applied.", configMap, 20, nil},
		"OneChange":  {"One change is one read.", deploymentKind, 1, []time.Duration{0}},
		"Deployment": {"The first change is read at once, and all others later.", deploymentKind, 20, []time.Duration{0, Pause}},
		"Custom":     {"Custom resources are no exception.", customKind, 20, []time.Duration{0, Pause}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHealthWorld(t, tc.kind)
			w.versions["a"], w.ready["a"] = 1, true
			w.worker("a", true)
			begin := w.clock
			for range tc.changes {
				w.versions["a"]++
				w.worker("a", false)
				w.serve("a")
			}
			for range 10 {
				w.clock = w.clock.Add(time.Second)
				w.serve("a")
			}
			var got []time.Duration
			for _, at := range w.reads["a"] {
				got = append(got, at.Sub(begin))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHealthReadsOthers has one object wait, and another read at once.
func TestHealthReadsOthers(t *testing.T) {
	w := newHealthWorld(t, deploymentKind)
	for range 2 {
		for i := range 50 {
			name := fmt.Sprintf("d%d", i)
			w.versions[name]++
			w.worker(name, w.versions[name] == 1)
			w.serve(name)
		}
	}
	if w.admitted != 50 {
		t.Errorf("%d reads were admitted, want one for each object", w.admitted)
	}
}

// TestHealthReadsNothing has versions that do not concern health.
func TestHealthReadsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		kind      schema.GroupVersionKind
		stateless bool
		want      int
	}{
		"NoRules":   {"Its kind has no health.", schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, false, 0},
		"Stateless": {"Its controller has written no status.", customKind, true, 0},
		"Status":    {"It has.", customKind, false, 1},
		"Always":    {"The absence of a status is one.", deploymentKind, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHealthWorld(t, tc.kind)
			w.versions["a"], w.stateless = 1, tc.stateless
			w.worker("a", true)
			w.versions["a"] = 2
			w.worker("a", false)
			w.serve("a")
			if n := len(w.reads["a"]); n != tc.want {
				t.Errorf("%s\n%d reads, want %d", tc.reason, n, tc.want)
			}
		})
	}
}

// TestHealthFollows has an object break, disappear and come back.
func TestHealthFollows(t *testing.T) {
	w := newHealthWorld(t, customKind)
	step := func(version int, ready, inHand bool, want objecthealth.State) {
		t.Helper()
		w.clock = w.clock.Add(Pause)
		w.versions["a"], w.ready["a"] = version, ready
		w.worker("a", inHand)
		w.serve("a")
		if got := w.state(); got != want {
			t.Errorf("version %d is %s, want %s", version, got, want)
		}
	}
	step(1, false, true, objecthealth.Progressing)
	step(2, true, false, objecthealth.Current)
	step(3, false, false, objecthealth.Degraded)
	step(4, true, true, objecthealth.Current)
	step(0, true, false, objecthealth.Degraded)
	step(5, true, false, objecthealth.Current)

	// A version that was read earlier is not recorded after a newer one.
	old := w.live("a")
	old.SetResourceVersion("4")
	old.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Stalled", "status": "True"}}}
	if w.recordRead(w.key("a"), Target{}, old) || w.state() != objecthealth.Current {
		t.Error("an older version is recorded")
	}
}

// TestHealthGivesUp has an object that cannot be read, until it changes again.
func TestHealthGivesUp(t *testing.T) {
	w := newHealthWorld(t, customKind)
	w.versions["a"], w.ready["a"] = 1, true
	w.worker("a", true)
	w.versions["a"], w.fails = 2, errors.New("forbidden")
	tries := 0
	for w.one(t.Context(), w.key("a")) != nil {
		if tries++; tries > 100 {
			t.Fatal("it is tried again without end")
		}
		w.Tracker.reads.AddRateLimited(w.key("a"))
		w.clock = w.clock.Add(time.Hour)
	}
	if tries != healthTries || w.state() != objecthealth.Current {
		t.Errorf("it was tried %d times again, and is %s", tries, w.state())
	}
}

// TestHealthSummary has items in every situation.
func TestHealthSummary(t *testing.T) {
	w := newHealthWorld(t, deploymentKind)
	name := w.key("").Composition
	w.versions["known"], w.ready["known"] = 1, true
	w.worker("known", true)
	item := func(object string, change func(*model.HealthItem)) []model.HealthItem {
		it := model.HealthItem{ID: w.key(object).Object, Kind: w.kind.GroupKind(), Name: object, Applied: true, Runs: true}
		change(&it)

		return []model.HealthItem{it}
	}
	for name, tc := range map[string]struct {
		reason string
		items  []model.HealthItem
		want   string
	}{
		"Unknown":    {"After a restart, a worker looks at it first.", item("new", func(*model.HealthItem) {}), "incomplete"},
		"Replaced":   {"No worker does if another manifest decides about the object.", item("new", func(it *model.HealthItem) { it.Runs = false }), "1 object is healthy"},
		"NotApplied": {"Its turn has not come.", item("new", func(it *model.HealthItem) { it.Applied = false }), "1 of 1 objects is not healthy (1 progressing): new: NotApplied: it is not applied yet"},
		"Error":      {"It cannot be applied.", item("new", func(it *model.HealthItem) { it.Applied, it.Err = false, "no quota" }), "1 of 1 objects is not healthy (1 degraded): new: NotDelivered: no quota"},
		"PassedOver": {"Its author wants errors passed over.", item("new", func(it *model.HealthItem) { it.Err, it.PassedOver = "no quota", true }), "1 object is healthy"},
		"NoRules":    {"Its kind has no health.", item("new", func(it *model.HealthItem) { it.Kind = schema.GroupKind{Kind: "Secret"} }), "1 object is healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			s, complete := w.Summarize(w.key("").Composition, tc.items, time.Minute)
			got := "incomplete"
			if complete {
				got = s.Condition().Message
			}
			if got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
	if s, _ := w.Summarize(name, item("known", func(*model.HealthItem) {}), time.Minute); !strings.HasPrefix(s.Condition().Message, "1 of 1") {
		t.Errorf("what is known does not count: %s", s.Condition().Message)
	}
}

// TestHealthWrites has a composition touched all the time.
func TestHealthWrites(t *testing.T) {
	w := newHealthWorld(t, deploymentKind)
	name := w.key("").Composition
	var writes []time.Time
	begin := w.clock
	for i := range 600 {
		w.clock = begin.Add(time.Duration(i) * 100 * time.Millisecond)
		w.Enqueue(name)
		if w.Begin(name) == 0 {
			w.Written(name)
			writes = append(writes, w.clock)
		}
	}
	if len(writes) != 12 {
		t.Errorf("%d writes in a minute: %v", len(writes), writes)
	}
	w.SetState(name, objecthealth.Progressing)
	if n := w.Unhealthy(); n != 0 {
		t.Errorf("a composition that progresses counts as unhealthy: %d", n)
	}
	w.SetState(name, objecthealth.Degraded)
	if n := w.Unhealthy(); n != 1 {
		t.Errorf("%d compositions are unhealthy, want 1", n)
	}
	w.Drop(name)
	if n := w.Unhealthy(); n != 0 {
		t.Errorf("a composition that is gone counts: %d", n)
	}
}

// Reads for health are not urgent: few are made while manifests wait to be applied.
func TestHealthReadsYield(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		queued int
		want   int
	}{
		"Idle": {"Nothing else is to do.", 0, healthBurst + 10*healthRate},
		"Busy": {"Manifests wait, but the health of objects must not be unknown for long.", 1, healthBurst/healthBusyCost + 10*healthRate/healthBusyCost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				admit := healthAdmission(func() int { return tc.queued })
				got := 0
				for admit(ctx) == nil {
					got++
				}
				if got < tc.want-1 || got > tc.want {
					t.Errorf("%s: %d objects are read in 10 s, want %d", tc.reason, got, tc.want)
				}
			})
		})
	}
}
