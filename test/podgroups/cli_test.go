package podgroups_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/test/cluster"
)

// arbor runs the command line against the test's cluster.
func arbor(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()

	return server.Arbor(t, args...)
}

// The command line reports for a live cluster what the webhook would have reported.
func TestCommandLine(t *testing.T) {
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)
	storeUnchecked(t, c, group(ns, "broken", sub("Master"), under("Master", "workers")))
	must(t, c.Create(t.Context(), group(ns, "fine", sub("decode"), under("decode", "workers"), under("decode", "leaders"), sub("prefill"))))

	t.Run("Audit", func(t *testing.T) {
		out, _, code := arbor(t, "audit", "-n", ns)
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		for _, want := range []string{`subgroup name "Master" must be lowercase`, "spec.subGroups[0].name", `parent of subgroup "workers"`, "broken"} {
			if !strings.Contains(out, want) {
				t.Errorf("it does not contain %s:\n%s", want, out)
			}
		}
		if strings.Contains(out, "fine") {
			t.Errorf("it blames the innocent:\n%s", out)
		}
	})
	t.Run("AuditJSON", func(t *testing.T) {
		out, _, code := arbor(t, "audit", "-o", "json")
		if !json.Valid([]byte(out)) || code != 1 {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
	t.Run("Groups", func(t *testing.T) {
		out, _, code := arbor(t, "groups", "fine", "-n", ns)
		want := ns + `/fine  min 2 pods
├─ decode      min 1 pod
│  ├─ workers  min 1 pod
│  └─ leaders  min 1 pod
└─ prefill     min 1 pod
`
		if diff := cmp.Diff(want, out); diff != "" || code != 0 {
			t.Errorf("exit code %d (-want +got):\n%s", code, diff)
		}
	})
	t.Run("GroupsBroken", func(t *testing.T) {
		out, _, _ := arbor(t, "groups", "broken", "-n", ns)
		if !strings.Contains(out, "✗") || !strings.Contains(out, `subgroup name "Master" must be lowercase`) {
			t.Errorf("it does not mark what is wrong:\n%s", out)
		}
	})
	t.Run("GroupsUnknown", func(t *testing.T) {
		_, errs, code := arbor(t, "groups", "nobody", "-n", ns)
		if code != 2 || !strings.Contains(errs, "nobody") || !strings.Contains(errs, ns) {
			t.Errorf("exit code %d: %s", code, errs)
		}
	})
	t.Run("Plugin", func(t *testing.T) {
		// kubectl finds plugins by name on the path; ours is the same binary.
		bin := filepath.Join(cluster.Root(), "bin")
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "arbor"), "kubectl", "arbor", "groups", "fine", "-n", ns)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+server.Kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "prefill") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
	t.Run("NoCluster", func(t *testing.T) {
		_, errs, code := arbor(t, "audit", "--kubeconfig=/nowhere")
		if code != 2 || !strings.Contains(errs, "/nowhere") {
			t.Errorf("exit code %d: %s", code, errs)
		}
	})
}

// Lint reports for a file what the webhook reports for the object.
func TestLintAgreesWithAdmission(t *testing.T) {
	startManager(t)
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)
	files, err := filepath.Glob(filepath.Join(cluster.Root(), "examples", "podgroup-*.yaml"))
	must(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, _, code := arbor(t, "lint", "-f", file, "-o", "json")
			var report struct {
				Findings []struct {
					Message string `json:"message"`
				} `json:"findings"`
			}
			must(t, json.Unmarshal([]byte(out), &report))
			pg := readGroup(t, file)
			pg.Namespace = ns
			denied := verdict(t, c.Create(t.Context(), pg))
			switch {
			case denied == "" && (code != 0 || len(report.Findings) > 0):
				t.Errorf("it was admitted, but lint reports %s", out)
			case denied != "" && (code != 1 || len(report.Findings) == 0 || report.Findings[0].Message != denied):
				t.Errorf("it was denied with %q, but lint reports %s", denied, out)
			}
		})
	}
}
