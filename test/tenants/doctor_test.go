package tenants_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestDoctor lists what the scope namespace would change.
func TestDoctor(t *testing.T) {
	x := newTenant(t, "leaving")
	x.compose("nameless", "", configMap(x.namespace, "nameless", "1"))
	x.compose("reaching", deployer, configMap(x.namespace, "reaching", "1"), configMap("victim", "reaching", "1"))
	x.denied("nameless", enov1.ReasonNoServiceAccount)
	x.denied("reaching", enov1.ReasonOutOfScope)
	want := map[string]health.State{
		"Composition leaving/nameless: it has no ServiceAccount, so it would not be delivered":                                    health.Problem,
		"Composition leaving/reaching: it delivers objects outside of its namespace: ConfigMap victim/reaching":                   health.Warning,
		"Composition leaving/reaching: ServiceAccount leaving/deployer may not create configmaps in victim, delete configmaps in": health.Problem,
	}
	cluster.Eventually(t, "the doctor lists both", func() error {
		out, said, _ := server.Arbor(t, "doctor", "-o", "json", "--delivery-scope=namespace")
		var r health.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return fmt.Errorf("%s%s: %w", out, said, err)
		}
		for text, state := range want {
			if !slices.ContainsFunc(r.Checks, func(c health.Check) bool {
				return c.State == state && strings.HasPrefix(c.Object+": "+c.Message, text)
			}) {
				return fmt.Errorf("%s %q is not in %+v", state, text, r.Checks)
			}
		}

		return nil
	})
	out, _, _ := server.Arbor(t, "doctor", "--delivery-scope=namespace", "--default-service-account="+deployer)
	if strings.Contains(out, "it has no ServiceAccount") {
		t.Errorf("the default account does not count:\n%s", out)
	}
	if out, _, _ := server.Arbor(t, "doctor"); strings.Contains(out, "leaving/reaching") {
		t.Errorf("without the flag it is about something else:\n%s", out)
	}
	x.remove("nameless")
	x.remove("reaching")
}
