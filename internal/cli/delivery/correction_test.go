package delivery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
)

const corrected = `
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: default, name: site}
spec: {synthesizer: {name: website}}
status:
  simplified: {status: Ready}
  currentSynthesis: {uuid: b31c7d0e-0000, initialized: "2026-03-01T11:00:00Z", synthesized: "2026-03-01T11:00:01Z", reconciled: "2026-03-01T11:00:02Z", ready: "2026-03-01T11:00:03Z", resourceSlices: [{name: site-1}]}
  lastCorrection: {apiVersion: v1, kind: ConfigMap, namespace: default, name: site, time: "2026-03-02T11:55:00Z", manager: kubectl-edit}
---
apiVersion: eno.azure.io/v1
kind: ResourceSlice
metadata: {namespace: default, name: site-1}
spec: {resources: [{manifest: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"site"}}'}]}
status: {resources: [{reconciled: true, ready: "2026-03-01T11:00:03Z"}]}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: default, name: gone}
status: {simplified: {status: Ready}, lastCorrection: {apiVersion: v1, kind: ConfigMap, namespace: default, name: a, time: "2026-03-02T11:00:00Z", deleted: true}}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: default, name: unknown}
status: {simplified: {status: Ready}, lastCorrection: {apiVersion: v1, kind: ConfigMap, namespace: default, name: a, time: "2026-03-02T11:00:00Z"}}
`

func TestDeliveryLastCorrection(t *testing.T) {
	tests := map[string]struct {
		reason, name string
		want         clitest.Result
	}{
		"Changed": {
			reason: "who has changed it, and when it was corrected", name: "site",
			want: clitest.Result{Out: `✔ default/site                  Ready, synthesizer website
├─ current b31c7d0e             ready, begun 25h ago
│  └─ ✔ ConfigMap default/site
└─ last drift correction        ConfigMap default/site, changed by kubectl-edit, corrected 5m ago
`, ErrOut: "1 composition: 1 Ready; 1 resource: 1 ready\n"},
		},
		"Deleted": {
			reason: "a deletion has no field manager", name: "gone",
			want: clitest.Result{Out: `✔ default/gone            Ready
└─ last drift correction  ConfigMap default/a, deleted, corrected 60m ago
`, ErrOut: "1 composition: 1 Ready; 0 resources\n"},
		},
		"Unknown": {
			reason: "not every change has", name: "unknown",
			want: clitest.Result{Out: `✔ default/unknown         Ready
└─ last drift correction  ConfigMap default/a, changed by an unknown client, corrected 60m ago
`, ErrOut: "1 composition: 1 Ready; 0 resources\n"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")
			t.Setenv("LC_ALL", "C.UTF-8")

			objects := documents(t, corrected)
			build := func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(streams, clitest.Cluster(clitest.Holding(objects...)), reaching(&serverInMemory{}), func() time.Time { return noon })
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", tc.name, "-n", "default")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
