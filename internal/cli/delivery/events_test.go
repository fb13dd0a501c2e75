package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
)

// TestEvents shows the events of a composition and of its objects, and of no other objects.
func TestEvents(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C.UTF-8")

	objects := append(documents(t, shop), documents(t, `
apiVersion: v1
kind: Event
metadata: {namespace: shop, name: b}
involvedObject: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: db}
type: Warning
reason: ProgressDeadlineExceeded
message: it does not progress
lastTimestamp: "2026-03-02T11:30:00Z"
---
apiVersion: v1
kind: Event
metadata: {namespace: shop, name: a}
involvedObject: {apiVersion: eno.azure.io/v1, kind: Composition, namespace: shop, name: web}
type: Normal
reason: Synthesized
message: 6 resources
eventTime: "2026-03-02T11:00:00.000000Z"
---
apiVersion: v1
kind: Event
metadata: {namespace: shop, name: c}
involvedObject: {apiVersion: eno.azure.io/v1, kind: Composition, namespace: shop, name: proxy}
type: Normal
reason: Other
`)...)
	build := func(s genericiooptions.IOStreams) *cobra.Command {
		return New(s, clitest.Cluster(clitest.Holding(objects...)), nil, func() time.Time { return noon })
	}

	got := clitest.Run(t, build, "", "show", "web", "-n", "shop", "--events", "--depth", "1")
	want := `
LAST SEEN   TYPE      REASON                     OBJECT                 MESSAGE
60m         Normal    Synthesized                Composition shop/web   6 resources
30m         Warning   ProgressDeadlineExceeded   Deployment shop/db     it does not progress
`
	_, below, _ := strings.Cut(got.Out, "more below\n")

	if diff := cmp.Diff(want, below); diff != "" || got.Err != "" {
		t.Errorf("%s (-want +got):\n%s", got.Err, diff)
	}

	if got := clitest.Run(t, build, "", "api", "-n", "store", "--events"); !strings.HasSuffix(got.Out, "\n\nNo events.\n") {
		t.Errorf("got %q, want that there are none", got.Out)
	}

	if got := clitest.Run(t, build, "", "web", "-n", "shop", "--events", "-o", "jsonpath={.events[*].reason}"); got.Out != "Synthesized ProgressDeadlineExceeded\n" {
		t.Errorf("got %q, want the events for programs too", got.Out)
	}
}
