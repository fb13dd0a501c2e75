package oracle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// The default profiles pack GPUs; a configuration file does so if it says so.
func TestFitPacks(t *testing.T) {
	const file = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: arbor-scheduler
  plugins: {multiPoint: {enabled: [{name: ArborGPUPacking, weight: 3}]}}
- schedulerName: spread
`
	for name, tc := range map[string]struct{ file, scheduler, want string }{
		"Default":  {"", settings.Name, "node-0001"},
		"File":     {file, settings.Name, "node-0001"},
		"FileNone": {file, "spread", "node-0000"},
	} {
		t.Run(name, func(t *testing.T) {
			path := ""
			if tc.file != "" {
				path = filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			bound := schedulertest.Crew("a", "", 1, 1, schedulertest.OnNode(1), schedulertest.Using)
			oracle := offlineWith(t, path, append(schedulertest.AsObjects(bound), schedulertest.Node(0, 8), schedulertest.Node(1, 8))...)
			asked := func(pod *corev1.Pod) { pod.Spec.SchedulerName = tc.scheduler }
			got, err := oracle.Fit(t.Context(), schedulertest.PodGroup("b", 1), schedulertest.Crew("b", "", 1, 1, schedulertest.Using, asked))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"b-0": tc.want}, places(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
