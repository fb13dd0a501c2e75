package monitoring_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/cluster/network"
)

// A world is a Prometheus that scrapes a manager and a scheduler, which reach the API
// server through a proxy. We reach it directly.
type world struct {
	*monitor

	client    client.Client
	manager   *cluster.Manager
	scheduler *cluster.Scheduler
	proxy     *network.Proxy
	// extender is asked by the scheduler about pods that want it so.
	extender *extender
	// ns is where everything happens.
	ns string

	// playing is how many scenarios of an act there are, and sighted how many of those
	// of the first one have seen their alert fire.
	playing int64
	sighted atomic.Int64

	mu   sync.Mutex
	seen []sight
}

// A sight is what was seen of an alert.
type sight struct {
	alert, scenario string
	fired, resolved time.Duration
}

// A scenario makes an alert fire on a real cluster, and then fixes what was wrong.
type scenario struct {
	alert string
	// what is wrong, for the reader of the report.
	what string
	// breaks returns which alert of that name it is, by its labels, and how to fix
	// what was broken. It may leave something running until the test ends.
	breaks func(*testing.T, *world) (labels map[string]string, mend func())
}

// TestMonitoring has a real Prometheus see every alert fire and resolve, and return
// something for whatever a dashboard asks. Rules are those of monitoring with
// durations divided, see factor.
func TestMonitoring(t *testing.T) {
	w := &world{monitor: startPrometheus(t), client: server.Client(t, nil), proxy: server.NewProxy(t, "", 0), extender: newExtender(t)}
	w.ns = cluster.Namespace(t, w.client)
	t.Cleanup(func() {
		if w.manager == nil {
			return
		}
		w.manager.Stop()
		w.scheduler.Stop()
		if t.Failed() {
			t.Logf("--- arbor-manager\n%s", w.manager.Output())
			t.Logf("--- arbor-scheduler\n%s", w.scheduler.Output())
		}
	})
	w.act(t, "Absent", absent)
	w.quiet(t)
	if t.Failed() {
		return
	}
	w.act(t, "Work", work)
	w.quiet(t)
	w.act(t, "Outage", outage)
	w.quiet(t)
	t.Run("Report", w.report)
	t.Run("Panels", w.panels)
	t.Run("Variables", w.variables)
	t.Run("Recorded", w.recorded)
	t.Run("Metrics", w.metrics)
}

// act plays scenarios, all at once.
func (w *world) act(t *testing.T, name string, all []scenario) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		w.playing = 0
		for _, s := range all {
			t.Run(s.alert, func(t *testing.T) {
				w.playing++ // before any of them begins
				t.Parallel()
				w.play(t, s)
			})
		}
	})
}

func (w *world) play(t *testing.T, s scenario) {
	t.Helper()
	labels, mend := s.breaks(t, w)
	broken := time.Now()
	cluster.Eventually(t, s.alert+" fires", func() error {
		all, fires, err := w.fires(s.alert, labels)
		if !fires {
			return errors.Join(fmt.Errorf("these fire: %v", all), err)
		}

		return nil
	})
	fired := time.Now()
	mend()
	mended := time.Now()
	cluster.Eventually(t, s.alert+" is resolved", func() error {
		_, fires, err := w.fires(s.alert, labels)
		if fires {
			return errors.New("it fires still")
		}

		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, sight{alert: s.alert, scenario: s.what, fired: fired.Sub(broken), resolved: time.Since(mended)})
}

// fires reports whether an alert with these labels does, among all that fire.
func (w *world) fires(name string, labels map[string]string) ([]alert, bool, error) {
	all, err := w.firing()
	for _, a := range all {
		have := maps.Clone(a.Labels)
		maps.Copy(have, labels)
		if a.Labels["alertname"] == name && maps.Equal(have, a.Labels) {
			return all, true, err
		}
	}

	return all, false, err
}

// quiet waits until nothing is wrong any more.
func (w *world) quiet(t *testing.T) {
	t.Helper()
	cluster.Eventually(t, "no alert fires", func() error {
		all, err := w.firing()
		if len(all) > 0 {
			return fmt.Errorf("these do: %v", all)
		}

		return err
	})
}

// load does something again and again until the test ends, or it is told to stop.
// What cannot be done at one time can at another; if it never could, it is said.
func load(t *testing.T, every time.Duration, do func(i int) error) (stop func()) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	var done int
	var last error
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			if err := do(i); err != nil {
				last = err
			} else {
				done++
			}
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(end)
		<-ended
		if done == 0 {
			t.Errorf("the load was none: %v", last)
		}
	})
	t.Cleanup(stop)

	return stop
}

// unprovoked are alerts that cannot be caused here, with the reason. promtool's tests are all that
// there is of them.
var unprovoked = map[string]string{
	"ArborGangPodsHeld":   "it is about an error in the scheduler, and we know of none",
	"ArborSchedulerPanic": "so is this",
	"WebhookUnreachable":  "the API server has a thousand metrics, and to scrape them every second would slow down everything else",
}

// report prints what was seen, and checks that every alert was.
func (w *world) report(t *testing.T) {
	slices.SortFunc(w.seen, func(a, b sight) int { return strings.Compare(a.alert, b.alert) })
	for _, s := range w.seen {
		t.Logf("%-28s fired after %4.0fs, resolved after %4.0fs: %s", s.alert, s.fired.Seconds(), s.resolved.Seconds(), s.scenario)
	}
	for _, r := range rules(t) {
		if r.Alert != "" && unprovoked[r.Alert] == "" && !slices.ContainsFunc(w.seen, func(s sight) bool { return s.alert == r.Alert }) {
			t.Errorf("%s did not fire", r.Alert)
		}
	}
}

// empty are panels that show nothing while all is well, with the reason. They are
// by dashboard and title.
var empty = map[string]string{}

// panels asks what the dashboards ask, for the time since the beginning.
func (w *world) panels(t *testing.T) {
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				expr, err := d.plain(q.Expr)
				must(t, err)
				// What is there in any case would prove nothing.
				expr = strings.TrimSuffix(strings.ReplaceAll(expr, "[5m]", fmt.Sprintf("[%ds]", 300/factor)), " or vector(0)")
				n, err := w.samples(expr)
				_, mayBeEmpty := empty[file+", "+p.Title]
				switch {
				case err != nil:
					t.Errorf("%s, %s: %v", file, p.Title, err)
				case n == 0 && !mayBeEmpty:
					t.Errorf("%s, %s: nothing was returned for %s", file, p.Title, expr)
				case n > 0 && mayBeEmpty:
					t.Errorf("%s, %s is not empty: take it from the list", file, p.Title)
				}
			}
		}
	}
}

// variables looks for something to choose from.
func (w *world) variables(t *testing.T) {
	for file, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			m := values.FindStringSubmatch(v.Definition)
			if m == nil {
				continue // a data source is Grafana's own
			}
			expr, err := d.plain(m[1])
			must(t, err)
			if n, err := w.samples(fmt.Sprintf(`count by (%s) (%s)`, m[2], expr)); n == 0 {
				t.Errorf("%s, $%s: there is nothing to choose from: %v", file, v.Name, err)
			}
		}
	}
}

// recorded looks for the series that rules make.
func (w *world) recorded(t *testing.T) {
	for _, r := range rules(t) {
		if r.Record == "" {
			continue
		}
		if n, err := w.samples(r.Record); n == 0 {
			t.Errorf("nothing was recorded as %s: %v", r.Record, err)
		}
	}
}

// unserved are metrics that this manager does not have, with the reason.
var unserved = map[string]string{
	"eno_synthesis_pods_deleted_total": "programs run as local processes here, and not in pods",
}

// documented is a metric, or several, in a table of the documents.
var documented = regexp.MustCompile("(?m)^\\| ((?:`\\w+`(?:, )?)+) \\| (?:gauge|counter|histogram)")

// metrics looks for all that are Arbor's own, and for all that are promised.
func (w *world) metrics(t *testing.T) {
	names := slices.Collect(maps.Keys(own(t)))
	for _, m := range documented.FindAllStringSubmatch(page(t, "tasks/monitoring.md")+page(t, "reference/podgroups.md")+page(t, "concepts/fields.md"), -1) {
		names = append(names, strings.Split(strings.ReplaceAll(m[1], "`", ""), ", ")...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if unserved[name] != "" {
			continue
		}
		if isHistogram(name) {
			name += "_count"
		}
		if n, err := w.samples(name); n == 0 {
			t.Errorf("%s was never scraped: %v", name, err)
		}
	}
}
