package synthesis_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// shows waits until series are what they should be. Of those that are not named,
// nothing may count anything.
func shows(t *testing.T, m *cluster.Manager, selector string, want map[string]float64) {
	t.Helper()
	cluster.Eventually(t, selector+" says what there is", func() error {
		got, err := m.Series(selector)
		if err != nil {
			return err
		}
		maps.DeleteFunc(got, func(labels string, n float64) bool {
			_, ok := want[labels]

			return n == 0 && !ok
		})
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("-want, +got:\n%s", diff)
		}

		return nil
	})
}

// TestMetrics has one composition that is ready, one that is stuck, one whose
// program fails, and one that waits for its turn.
func TestMetrics(t *testing.T) {
	m := server.StartManager(t, append(slices.Clone(managerArgs), "--synthesis-concurrency=1", "--watchdog-threshold=1s", "--synthesis-timeout=10m")...)
	s := newStage(t)
	s.input("red")
	shows(t, m, "eno_composition_health", map[string]float64{}) // what other tests left is gone
	shows(t, m, "eno_free_synthesis_slots", map[string]float64{"": 1})

	gate := filepath.Join(t.TempDir(), "open")
	o := s.synthesizer(fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done; %s", gate, paint))
	o.Annotations = map[string]string{enov1.AnnotationOwner: "team-a"}
	must(t, s.Update(t.Context(), o))
	s.composition("good")
	shows(t, m, "eno_composition_health", map[string]float64{`status="Synthesizing"`: 1})
	s.composition("bad")
	shows(t, m, "eno_composition_health", map[string]float64{`status="Synthesizing"`: 1, `status="PendingSynthesis"`: 1})
	shows(t, m, "eno_free_synthesis_slots", map[string]float64{"": 0})
	must(t, os.WriteFile(gate, nil, 0o600))

	good, bad := s.painted("good", "red"), s.painted("bad", "red")
	shows(t, m, "eno_free_synthesis_slots", map[string]float64{"": 1})
	shows(t, m, "eno_synthesis_result_total", map[string]float64{`result="success"`: 2})
	shows(t, m, "eno_composition_synthesis_wait_seconds_count", map[string]float64{`cause="Initial"`: 2})
	if waited := m.Sum(t, "eno_composition_synthesis_wait_seconds_sum"); waited <= 0 {
		t.Error("one of them has waited for the other, and the wait is not counted")
	}
	if m.Sum(t, "eno_scheduling_latency_seconds_count") == 0 {
		t.Error("the cycles of the scheduler are not counted")
	}

	now := metav1.Now()
	s.deliver(good, func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Reconciled: true, Ready: &now} })
	s.deliver(bad, func(enov1.Manifest) enov1.ResourceState {
		return enov1.ResourceState{ReconciliationError: new("it does not fit")}
	})
	team := fmt.Sprintf(`owner="team-a",synthesizer=%q`, s.namespace)
	shows(t, m, "eno_compositions_stuck_reconciling_total", map[string]float64{team: 1})

	broken := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-broken"}, Spec: enov1.SynthesizerSpec{Command: []string{"sh", "-c", "exit 1"}, Image: "none"}}
	must(t, s.Create(t.Context(), broken))
	t.Cleanup(func() { _ = s.Delete(t.Context(), broken) })
	fails := &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "fails"},
		Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: broken.Name}},
	}
	must(t, s.Create(t.Context(), fails))
	shows(t, m, "eno_composition_health", map[string]float64{`status="Ready"`: 1, `status="Reconciling"`: 1, `status="SynthesisBackoff"`: 1})
	cluster.Eventually(t, "a failure is counted", func() error {
		if failed := m.Sum(t, `eno_synthesis_result_total{result="failure"}`); failed < 1 {
			return fmt.Errorf("%v syntheses have failed", failed)
		}

		return nil
	})
	// It is there from the beginning, or an alert would not see that nothing is stuck.
	shows(t, m, "eno_compositions_stuck_reconciling_total", map[string]float64{team: 1, fmt.Sprintf(`owner="",synthesizer=%q`, broken.Name): 0})

	s.deliver(bad, func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Reconciled: true, Ready: &now} })
	shows(t, m, "eno_compositions_stuck_reconciling_total", map[string]float64{team: 0, fmt.Sprintf(`owner="",synthesizer=%q`, broken.Name): 0})
	must(t, s.Delete(t.Context(), broken))
	must(t, s.Delete(t.Context(), o))
	cluster.Eventually(t, "series go with their Synthesizer", func() error {
		got, err := m.Series("eno_compositions_stuck_reconciling_total")
		if err != nil || len(got) > 0 {
			return fmt.Errorf("there are %v: %w", got, err)
		}

		return nil
	})
	shows(t, m, "eno_composition_health", map[string]float64{`status="MissingSynthesizer"`: 3})
}
