package gangs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

// answers are about gangs of several sizes.
func (f *controlPlane) answers(b *harness.Board) error {
	for _, size := range []int{10, 100, 500} {
		took, err := f.ask(f.scaled(size))
		if err != nil {
			return err
		}
		b.Show(harness.Result{Name: fmt.Sprintf("gangs/fit-%d", size), Value: took})
	}

	return nil
}

// ask measures what an answer to "would it fit?" takes from the command to the
// answer, in milliseconds: it starts, reads the cluster, and decides.
func (f *controlPlane) ask(size int) (float64, error) {
	binary, err := cluster.Binary("arbor", "ARBOR")
	if err != nil {
		return 0, err
	}
	file := filepath.Join(f.up.Dir, fmt.Sprintf("fit-%d.yaml", size))
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g0, namespace: %s}\nspec: {minMember: %d}\n", namespace, size)
	for i := range size {
		pod := scheduler{who: ours, pods: size, size: size, gpus: 1}.newPod(i)
		pod.APIVersion, pod.Kind = "v1", "Pod"
		manifest, err := yaml.Marshal(pod)
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(&text, "---\n%s", manifest)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	cmd := exec.CommandContext(ctx, binary, "groups", "fit", "--kubeconfig="+f.up.Kubeconfig, "-f", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("it does not fit: %w\n%s", err, out)
	}

	return float64(time.Since(began).Microseconds()) / 1000, nil
}
