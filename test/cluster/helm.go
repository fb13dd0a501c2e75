package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Chart is the folder of the chart.
func Chart() string { return filepath.Join(Root(), "charts", "arbor") }

// Helm runs Helm against this control plane, and returns what it wrote.
func (u *Up) Helm(ctx context.Context, args ...string) (string, error) {
	binary, err := Binary("helm", "HELM")
	if err != nil {
		return "", fmt.Errorf("%w (make setup builds Helm)", err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	home := filepath.Join(u.Dir, "helm")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}

	return out.String(), nil
}

// Objects reads manifests.
func Objects(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// Set makes flags of Helm's of values, each as key=value. Those that the chart has no default
// for come first, so that values can replace them.
func Set(values ...string) []string {
	var args []string
	required := []string{"image.repository=registry.example.com/arbor-manager", "scheduler.image.repository=registry.example.com/arbor-scheduler"}
	for _, v := range slices.Concat(required, values) {
		args = append(args, "--set", v)
	}

	return args
}
