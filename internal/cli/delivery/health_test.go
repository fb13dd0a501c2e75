package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
)

// TestDeliveryHealth draws compositions that are ready, with what their objects are like
// now.
func TestDeliveryHealth(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("LC_ALL", "C.UTF-8")

	for name, tc := range map[string]struct {
		reason, status, health, message, want string
	}{
		"Healthy":     {"What works is not worth a word.", "True", "Healthy", "2 objects are healthy", "✔ shop/web  Ready, synthesizer web\n"},
		"Progressing": {"It is no error.", "Unknown", "Progressing", "1 of 2 objects", "! shop/web  Ready, progressing, synthesizer web\n   Healthy: 1 of 2 objects\n"},
		"Degraded":    {"It works no longer.", "False", "Degraded", "1 of 2 objects", "! shop/web  Ready, degraded, synthesizer web\n   Healthy: 1 of 2 objects\n"},
		"Failed":      {"It does not work without a change.", "False", "Failed", "1 of 2 objects", "✗ shop/web  Ready, failed, synthesizer web\n   Healthy: 1 of 2 objects\n"},
		"Suspended":   {"It is shown elsewhere.", "Unknown", "Suspended", "not judged", "✔ shop/web  Ready, synthesizer web\n"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := documents(t, fmt.Sprintf(`
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: web}
spec: {synthesizer: {name: web}}
status:
  simplified: {status: Ready}
  conditions: [{type: Healthy, status: %q, reason: %s, message: %q}]
`, tc.status, tc.health, tc.message))
			build := func(s genericiooptions.IOStreams) *cobra.Command {
				return New(s, clitest.Cluster(clitest.Holding(objects...)), nil, func() time.Time { return noon })
			}
			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", "web", "-n", "shop").Out); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if out := clitest.Run(t, build, "", "web", "-n", "shop", "-o", "json").Out; !strings.Contains(out, fmt.Sprintf("%q: %q", "health", tc.health)) {
				t.Errorf("%s: the JSON lacks it:\n%s", tc.reason, out)
			}
		})
	}
}
