package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// Syntheses run next to each other, most of them waiting for something.
func TestSynthesis(t *testing.T) { //nolint:tparallel // the tests change the release
	t.Run("Works", works)
	t.Run("Fails", fails)
	t.Run("Killed", killed)
}

// These syntheses take longer than it takes until another manager leads.
func TestSlowSynthesis(t *testing.T) { //nolint:tparallel // the tests change the release
	t.Run("SlowPull", slowPull)
	t.Run("NoNetwork", noNetwork)
	t.Run("Endless", endless)
	t.Run("LeaderKilled", leaderKilled)
}

// works: programs run in pods, and what they write is delivered.
func works(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, image, mode string
		want                map[string]string
	}{
		"Plain":     {"It writes a ConfigMap.", testImage, "synthesize", nil},
		"Root":      {"An image of user 0 runs as 65532.", rootImage, "synthesize", nil},
		"Temporary": {"helm, kustomize and Python need /tmp.", testImage, "tmp", map[string]string{"tmp": "/tmp/"}},
		"Kill":      {"A program cannot harm the executor: PID 1 of a container is not its own.", testImage, "kill", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.compose(tc.image, "/program", tc.mode, s.namespace, output, "color=red")
			_, data := s.ready()
			if data["color"] != "red" || data["uid"] != "65532" || !strings.HasPrefix(data["tmp"], tc.want["tmp"]) {
				t.Errorf("%s\ngot %v", tc.reason, data)
			}
			s.noPods()
		})
	}
}

// noPods waits until the pods of the composition are deleted.
func (s *stage) noPods() {
	s.t.Helper()
	cluster.Eventually(s.t, "the pods of the composition are deleted", func() error {
		pods := &corev1.PodList{}
		err := s.List(s.t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{enov1.LabelCompositionNamespace: s.namespace})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}

		return err
	})
}

// fails: what goes wrong in a container is reported by the Composition, with its cause.
func fails(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, image string
		command       []string
		want          []string
	}{
		"Exit":    {"Its code and its last words are shown.", testImage, []string{"/program", "fail"}, []string{"/program failed: exit status 3", "no luck today"}},
		"Command": {"The image has no such file.", testImage, []string{"/nothing"}, []string{"cannot run /nothing", "no such file or directory"}},
		"Default": {"No command is given, and the image has no program of the default name.", testImage, nil, []string{"cannot run synthesize", "not found in $PATH"}},
		"Image":   {"The image does not exist.", "localhost/nowhere:1", []string{"/program"}, []string{`cannot start container executor, image "localhost/nowhere:1"`, "ErrImagePull"}},
		"Large":   {"Its output is too long.", testImage, []string{"/program", "large"}, []string{"larger than 10 MiB"}},
		"Memory":  {"It was killed for its memory, and the limit is named.", testImage, []string{"/program", "eat"}, []string{"memory", "64Mi"}},
		"Root":    {"The root is read-only.", testImage, []string{"/program", "root"}, []string{"exit status 3", "read-only file system"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.compose(tc.image, tc.command...)
			s.fails(tc.reason, tc.want...)
		})
	}
}

// fails waits until the composition reports an error with all of these texts.
func (s *stage) fails(reason string, want ...string) {
	s.t.Helper()
	c := s.await("the composition reports its error", func(c *enov1.Composition) error {
		if c.Status.Simplified == nil || c.Status.Simplified.Error == "" {
			return errors.New("there is no error")
		}
		for _, text := range want {
			if got := c.Status.Simplified.Error; !strings.Contains(got, text) {
				return fmt.Errorf("%s The error is %q, want %q in it", reason, got, text)
			}
		}

		return nil
	})
	s.t.Log(c.Status.Simplified.Error)
}

// killed: when a container of a synthesis is killed, the Composition names this container,
// and not the one that fails because of it.
func killed(t *testing.T) {
	t.Parallel()
	for container, words := range map[string]string{"executor": "/eno/executor", "publisher": "/arbor-executor publish"} {
		t.Run(container, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.compose(testImage, "/program", "sleep")
			pod := s.pod()
			process(t, pod.UID, "/program sleep")
			must(t, syscall.Kill(process(t, pod.UID, words), syscall.SIGKILL))
			s.fails("It was killed.", "container "+container, "137")
		})
	}
}

// endless: a program is killed when its time has passed.
func endless(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.compose(testImage, "/program", "sleep")
	s.fails("It does not end.", "/program did not end in time and was killed")
}

// leaderKilled: a synthesis outlives the leader that began it.
func leaderKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.compose(testImage, "/program", "synthesize", s.namespace, output, "@3s", "color=red")
	began := s.pod()
	process(t, began.UID, "/program synthesize")
	must(t, syscall.Kill(process(t, leader(t, s.Client).UID, "/arbor-manager"), syscall.SIGKILL))
	c, data := s.ready()
	if data["color"] != "red" {
		t.Errorf("got %v", data)
	}
	if got, want := c.Status.CurrentSynthesis.UUID, began.Labels[enov1.LabelSynthesisUUID]; got != want {
		t.Errorf("synthesis %s was begun again as %s", want, got)
	}
	cluster.Eventually(t, "both managers run", func() error { return rolledOut(t.Context(), s.Client, "arbor-manager") })
}

// leader waits until a manager that is not about to end holds the lease, and returns it.
func leader(t *testing.T, c client.Client) corev1.Pod {
	t.Helper()
	var found corev1.Pod
	cluster.Eventually(t, "a manager leads", func() error {
		name := holder(t, c)
		for _, pod := range managers(t, c) {
			if found = pod; pod.DeletionTimestamp == nil && pod.Name == name {
				return nil
			}
		}

		return fmt.Errorf("the holder of the lease is %q", name)
	})

	return found
}

// holder is the name of the pod that holds the lease of the managers, if there is one.
func holder(t *testing.T, c client.Client) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "arbor-manager"}, lease))
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")

	return name
}

// Syntheses run where a quota wants limits from every container.
func TestQuota(t *testing.T) {
	s := newStage(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}}
	quota.Spec.Hard = corev1.ResourceList{
		corev1.ResourceLimitsMemory: resource.MustParse("64Gi"), corev1.ResourceRequestsMemory: resource.MustParse("64Gi"),
	}
	must(t, s.Create(t.Context(), quota))
	t.Cleanup(func() { must(t, s.Delete(context.Background(), quota)) })
	cluster.Eventually(t, "the quota is counted", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Hard) == 0 {
			return fmt.Errorf("it is not: %w", err)
		}

		return nil
	})
	s.compose(testImage, "/program", "synthesize", s.namespace, output)
	c, _ := s.ready()
	if n := c.Status.CurrentSynthesis.Attempts; n != 1 {
		t.Errorf("it took %d attempts", n)
	}
}
