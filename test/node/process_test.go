package node_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// process waits for a process of a pod whose command line begins with words.
func process(t *testing.T, pod types.UID, words string) int {
	t.Helper()
	pid := 0
	cluster.Eventually(t, words+" runs", func() error {
		files, err := filepath.Glob("/proc/[0-9]*/cgroup")
		if err != nil {
			return err
		}
		var seen []string
		for _, file := range files {
			cgroup, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(cgroup, []byte("pod"+pod+"/")) {
				continue
			}
			args, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			line := strings.ReplaceAll(string(args), "\x00", " ")
			seen = append(seen, line)
			if err == nil && strings.HasPrefix(line, words) {
				pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))

				return err
			}
		}

		return fmt.Errorf("the processes of pod %s are %q", pod, seen)
	})

	return pid
}

// Processes have no more permissions than the standard "restricted" for pods allows: as the
// kernel sees them, not as the pods ask for it.
func TestRestricted(t *testing.T) {
	c := server.Client(t, nil)
	s := newStage(t)
	s.compose(testImage, "/program", "sleep")
	own := s.pod()
	cases := map[string]struct{ reason, component, words string }{
		"Manager":   {"It reads Secrets.", "manager", "/arbor-manager"},
		"Scheduler": {"It reads all pods.", "scheduler", "/arbor-scheduler"},
		"Executor":  {"It runs programs of users.", "", "/eno/executor"},
		"Program":   {"It is written by a user.", "", "/program sleep"},
		"Publisher": {"It has a token.", "", "/arbor-executor publish"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := own
			if tc.component != "" {
				pods := &corev1.PodList{}
				must(t, c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": tc.component}))
				pod = pods.Items[0]
			}
			restricted(t, process(t, pod.UID, tc.words), tc.reason)
		})
	}
}

// restricted checks the permissions of a process.
func restricted(t *testing.T, pid int, reason string) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	got := map[string]string{}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		got[key] = strings.Join(strings.Fields(value), " ")
	}
	for key, want := range map[string]string{
		"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532", "NoNewPrivs": "1", "Seccomp": "2",
		"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
	} {
		if got[key] != want {
			t.Errorf("%s: %s is %q, want %q", reason, key, got[key], want)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[4] == "/" && !strings.HasPrefix(f[5]+",", "ro,") {
			t.Errorf("%s: the root is mounted with %s, want ro", reason, f[5])
		}
	}
}
