package chart_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/test/cluster"
)

// arbor doctor finds the scheduler of a release, and reports pods that wait for a scheduler that is
// gone.
func TestDoctorScheduler(t *testing.T) {
	h := newTheatre(t, "arbor-examined")
	s := h.start(t)
	group, _ := h.gang(t, "placed", "")
	h.scheduled(t, group)
	// check returns the checks about the scheduler by what they are about.
	check := func() (map[string]health.Check, int) {
		out, said, code := server.Arbor(t, "doctor", "--arbor-namespace="+h.release.name, "-o", "json")
		var r health.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%s%s: %v", out, said, err)
		}
		found := map[string]health.Check{}
		for _, c := range r.Checks {
			if strings.HasSuffix(c.Object, "-scheduler") {
				found[c.About] = c
			}
		}

		return found, code
	}
	found, _ := check()
	if c := found["leader"]; c.State != health.OK || c.Object != h.release.name+"/arbor-scheduler" || !strings.Contains(c.Message, "renewed") {
		t.Errorf("a scheduler leads, and the doctor reports %+v", c)
	}
	if c := found["scheduler"]; !strings.HasSuffix(c.Message, "replicas are available, placing pods for arbor-scheduler") {
		t.Errorf("there is a Deployment, and the doctor reports %+v", c)
	}

	s.Kill()
	_, pods := h.gang(t, "waits", "")
	cluster.Eventually(t, "the doctor reports that the scheduler is gone", func() error {
		found, code := check()
		c := found["leader"]
		first := slices.ContainsFunc([]int{0, 1}, func(i int) bool { return strings.Contains(c.Message, h.namespace+"/"+pods[i].Name) })
		if code != command.ExitFound || c.State != health.Problem || !strings.Contains(c.Message, "no other replica took over; 2 pods that ask for it have no node") || !first {
			return fmt.Errorf("exit code %d: %+v", code, found)
		}

		return nil
	})
}
