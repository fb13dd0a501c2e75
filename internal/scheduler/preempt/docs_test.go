package preempt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// The sample in docs/concepts/gang-scheduling.md is what a PodGroup reports that neither fits nor can
// preempt enough pods: three pods of four GPUs, on two nodes with four GPUs each, of which one
// is free and the other has four less important pods.
func TestDocumentedMessage(t *testing.T) {
	objects := append(schedulertest.WaitingPods(3), schedulertest.Members("low", 4, 10, schedulertest.BoundAt(1))...)
	s := newTestScheduler(t, append(objects, schedulertest.Group("high", 3), schedulertest.Group("low", 1), schedulertest.Node(0, 4), schedulertest.Node(1, 4))...)
	key, g := schedulertest.Key("high"), highGang(t, s)
	done, err := s.trial.Open(t.Context(), s.groups.Placed)
	if err != nil {
		t.Fatal(err)
	}
	decision, err := s.trial.Place(t.Context(), g, 50)
	done()
	if err != nil {
		t.Fatal(err)
	}
	s.reporter.Decided(key, decide.NewOutcome(g, &decision, func(int) bool { return true }))
	g = highGang(t, s)
	s.preemptor.conclude(t.Context(), key, g, &preempting{}, s.preemptor.search(t.Context(), key, g, time.Minute))
	message := ""
	for _, c := range decide.Show(s.reporter.Facts(key), metav1.Now()).Conditions {
		if c.Type == v2alpha2.PodGroupScheduled {
			message = c.Message
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "concepts", "gang-scheduling.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), "``` "+message+" ```") {
		t.Errorf("docs/concepts/gang-scheduling.md has no sample with what the group reports:\n%s", message)
	}
}
