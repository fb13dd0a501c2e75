package synthesis_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestHungTenant has the programs of one tenant hang in all slots that it gets, and more of its
// compositions wait. The first synthesis of another tenant, and its update, do not wait.
func TestHungTenant(t *testing.T) {
	const atOnce = 5 * time.Second // the programs hang for minutes
	m := server.StartManager(t, append(slices.Clone(managerArgs), "--synthesis-timeout=10m")...)
	hung, other := newStage(t), newStage(t)
	hung.synthesizer("exec sleep 3600")
	hung.input("red")
	for i := range 24 {
		hung.composition(fmt.Sprintf("c%d", i))
	}
	shows(t, m, "eno_free_synthesis_slots", map[string]float64{"": 0})
	shows(t, m, "eno_composition_health", map[string]float64{`status="Synthesizing"`: 8, `status="PendingSynthesis"`: 16})

	other.synthesizer(paint)
	other.input("red")
	created := other.composition("c")
	first := other.painted("c", "red")
	began := first.Status.CurrentSynthesis.Initialized
	if wait := began.Sub(created.CreationTimestamp.Time); wait > atOnce {
		t.Errorf("the first synthesis of another tenant began after %s", wait)
	} else {
		t.Logf("the first synthesis of another tenant began after %s, in steps of a second", wait)
	}
	changed := time.Now()
	other.input("blue")
	other.painted("c", "blue")
	if wait := time.Since(changed); wait > 2*atOnce {
		t.Errorf("the update of another tenant took %s", wait)
	}

	// Nothing of the first tenant ended in the meantime.
	hung.await("c0", "it hangs or waits", func(c *enov1.Composition) error {
		if c.Status.CurrentSynthesis != nil {
			return errors.New("it has a synthesis")
		}

		return nil
	})
	cluster.Eventually(t, "the other tenant has given its slot back", func() error {
		if n := m.Sum(t, `eno_composition_health{status="Synthesizing"}`); n != 8 {
			return fmt.Errorf("%v are in flight", n)
		}

		return nil
	})
}
