package monitoring_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/poolstatus"
	"github.com/arbor-control/arbor/internal/controller/subnetclaim"
	"github.com/arbor-control/arbor/internal/controller/synthesis"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/webhook"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// series are the metrics that there are, each with its labels. Histograms are
// there under their own name, as they are registered.
type series map[string][]string

// scraped are the labels that Prometheus itself gives to every series.
var scraped = []string{"job", "instance"}

// labels returns those of a metric by the name under which it is served.
func (s series) labels(name string) ([]string, bool) {
	for suffix, more := range map[string][]string{"_bucket": {"le"}, "_sum": nil, "_count": nil} {
		if base, ok := strings.CutSuffix(name, suffix); ok && isHistogram(base) {
			labels, ok := s[base]

			return slices.Concat(labels, more, scraped), ok
		}
	}
	labels, ok := s[name]

	return slices.Concat(labels, scraped), ok && !isHistogram(name)
}

// isHistogram goes by the name: the registry does not tell, and everything that
// is observed here is a duration or a size. A start is a point in time.
func isHistogram(name string) bool {
	return name != "process_start_time_seconds" && slices.ContainsFunc([]string{"_duration_seconds", "_time_seconds", "_latency_seconds", "_wait_seconds", "_flush_size"}, func(suffix string) bool {
		return strings.HasSuffix(name, suffix)
	})
}

// own returns the metrics that are Arbor's. Who registers one twice panics.
func own(t *testing.T) series {
	t.Helper()
	r := prometheus.NewRegistry()
	metric.New(r)
	ownership.NewMetrics(r)
	poolstatus.NewMetrics(r)
	subnetclaim.NewMetrics(r)
	synthesis.NewMetrics(r)
	webhook.NewMetrics(r)
	r.MustRegister(serving.NewExpiry(nil))
	all := described(t, r)
	for _, m := range gangmetrics.Metrics() {
		maps.Copy(all, described(t, m))
	}

	return all
}

// served returns what a manager and a scheduler register: their own metrics, and those
// that controller-runtime has on the manager's behalf.
func served(t *testing.T) series {
	t.Helper()
	theirs, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("cannot list the metrics of controller-runtime: its registry is no collector any more")
	}
	all := series{}
	maps.Copy(all, own(t))
	maps.Copy(all, described(t, theirs))
	maps.Copy(all, ofServer(t))

	return all
}

// ofServer are metrics of the API server that rules ask for. It describes a metric once there is
// something to count.
func ofServer(t *testing.T) series {
	t.Helper()
	const name = "apiserver_admission_webhook_rejection_count"
	admissionmetrics.Metrics.ObserveWebhookRejection(t.Context(), "w", "validating", "CREATE", admissionmetrics.WebhookRejectionCallingWebhookError, 500)
	families, err := legacyregistry.DefaultGatherer.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			var labels []string
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels = append(labels, l.GetName())
			}

			return series{name: labels}
		}
	}
	t.Errorf("the API server has no metric %s any more", name)

	return nil
}

// description is how a Desc prints itself, which is all that it tells.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: .*, constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

func described(t *testing.T, c prometheus.Collector) series {
	t.Helper()
	all := series{}
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read the description %s", d)
		}
		all[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
	}

	return all
}

func TestServed(t *testing.T) {
	there := served(t)
	cases := map[string]struct {
		reason string
		want   []string
	}{
		"subnetpool_parent_requeue_total":                 {reason: "One label is read.", want: []string{"event_type"}},
		"subnetpool_parent_reconcile_inflight":            {reason: "No label is read."},
		"arbor_admission_decisions_total":                 {reason: "Several labels are.", want: []string{"kind", "operation", "decision", "reason"}},
		"eno_compositions_stuck_reconciling_total":        {reason: "So are those of what is counted on each scrape.", want: []string{"synthesizer", "owner"}},
		"eno_split_ownership_detected_total":              {reason: "And those of migrations.", want: []string{"kind", "other_manager"}},
		"eno_resource_slice_status_update_total":          {reason: "And of deliveries.", want: []string{"result"}},
		"arbor_gang_cycles_total":                         {reason: "And of the scheduler.", want: []string{"result"}},
		"workqueue_depth":                                 {reason: "The queues' are there.", want: []string{"name", "controller", "priority"}},
		"controller_runtime_reconcile_errors_total":       {reason: "And the controllers'.", want: []string{"controller"}},
		"subnetpool_parent_status_last_timestamp_seconds": {reason: "It names the pool.", want: []string{"ns", "name"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := there[name]
			if !ok {
				t.Fatalf("%s is not served", name)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nlabels: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
