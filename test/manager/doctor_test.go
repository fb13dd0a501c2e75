package manager_test

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

// examine runs arbor doctor.
func examine(t *testing.T) (health.Report, int) {
	t.Helper()
	out, said, code := server.Arbor(t, "doctor", "-o", "json")
	var r health.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%s%s: %v", out, said, err)
	}

	return r, code
}

func stateOf(r health.Report, about, object string) (health.State, string) {
	i := slices.IndexFunc(r.Checks, func(c health.Check) bool { return c.About == about && strings.Contains(c.Object, object) })
	if i < 0 {
		return "", fmt.Sprintf("there is no %s %s in %+v", about, object, r.Checks)
	}

	return r.Checks[i].State, r.Checks[i].Message
}

// TestDoctor is about a manager that is healthy, and then killed.
func TestDoctor(t *testing.T) {
	forgetLease(t, newClient(t))
	defer forgetLease(t, newClient(t))
	m := server.StartManager(t, "--leader-elect=true")
	cluster.Eventually(t, "the manager is healthy", func() error {
		if r, code := examine(t); r.State != health.OK || code != 0 {
			return fmt.Errorf("exit code %d: %+v", code, r)
		}

		return nil
	})
	cluster.Eventually(t, "the doctor reports it", func() error {
		if out, _, code := server.Arbor(t, "doctor"); code != 0 || !strings.Contains(out, "refuses what it should") {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}

		return nil
	})
	m.Kill()
	cluster.Eventually(t, "the doctor reports that it is gone", func() error {
		r, code := examine(t)
		leader, why := stateOf(r, "leader", "")
		hook, because := stateOf(r, "webhook", "podgroups")
		if code != command.ExitFound || leader != health.Problem || !strings.Contains(why, "no other replica took over") || hook != health.Problem || !strings.Contains(because, "refused") {
			return fmt.Errorf("exit code %d: the leader is %s (%s), the webhook is %s (%s)", code, leader, why, hook, because)
		}

		return nil
	})
	out, _, _ := server.Arbor(t, "doctor")
	if !strings.Contains(out, "To do: see that a manager runs") {
		t.Errorf("it does not contain what to do:\n%s", out)
	}
}

// TestDoctorBlind has nothing to look at.
func TestDoctorBlind(t *testing.T) {
	_, said, code := server.Arbor(t, "doctor", "--server=https://127.0.0.1:1")
	if code != command.ExitBlind || !strings.Contains(said, "cannot ask the cluster for its version: no answer from https://127.0.0.1:1") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
