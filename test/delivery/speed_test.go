package delivery_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

const (
	many    = 1000
	workers = 16
)

// BenchmarkDeliver compares the delivery of a thousand objects with a loop that
// does nothing but apply them.
func BenchmarkDeliver(b *testing.B) {
	m, err := server.Manager("--controllers=delivery", "--webhooks=false", "--log-level=error")
	must(b, err)
	defer m.Stop()
	must(b, m.Await())
	var all []string
	for i := range many {
		all = append(all, configMap(fmt.Sprintf("c%04d", i), "1"))
	}
	for b.Loop() {
		raw := newWorld(b)
		plain := timed(func() { raw.loop(all) })

		w := newWorld(b)
		w.perSlice = many / 2
		before, err := m.Value("rest_client_requests_total")
		must(b, err)
		delivered := timed(func() {
			w.synthesize(all...)
			w.ready()
		})
		after, err := m.Value("rest_client_requests_total")
		must(b, err)

		b.ReportMetric(many/plain.Seconds(), "plain/s")
		b.ReportMetric(many/delivered.Seconds(), "delivered/s")
		b.ReportMetric(100*plain.Seconds()/delivered.Seconds(), "%of-plain")
		b.ReportMetric((after-before)/many, "requests/object")

		drift := w.config("c0500")
		corrected := timed(func() {
			w.merge(drift, `{data: {a: stolen}}`)
			cluster.Eventually(b, "it is corrected", func() error {
				if got := w.value("c0500", "a"); got != "1" {
					return fmt.Errorf("it is %q", got)
				}

				return nil
			})
		})
		b.ReportMetric(float64(corrected.Milliseconds()), "ms/drift")
	}
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()

	return time.Since(began)
}

// loop applies by as many workers as a manager has.
func (w *world) loop(all []string) {
	w.Helper()
	queue := make(chan string)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for text := range queue {
				o := &unstructured.Unstructured{}
				if err := json.Unmarshal([]byte(w.manifest(text).Manifest), &o.Object); err != nil {
					w.Error(err)
				}
				if err := w.c.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(o), client.ForceOwnership, client.FieldOwner(eno)); err != nil {
					w.Error(err)
				}
			}
		})
	}
	for _, text := range all {
		queue <- text
	}
	close(queue)
	working.Wait()
}
