package synthesis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// flying waits until a composition has a synthesis in flight that has a pod, and
// returns both.
func (s *stage) flying(k *kubelet, name string) (*enov1.Composition, corev1.Pod) {
	s.t.Helper()
	var pods []corev1.Pod
	c := s.await(name, name+" has a pod", func(c *enov1.Composition) error {
		in := c.Status.InFlightSynthesis
		if in == nil || in.Canceled != nil {
			return errors.New("nothing is in flight")
		}
		if pods = k.pods(in.UUID); len(pods) != 1 {
			return fmt.Errorf("it has %d pods", len(pods))
		}

		return nil
	})

	return c, pods[0]
}

// A composition becomes slices through a pod, which is gone afterwards.
func TestPod(t *testing.T) {
	k := newKubelet(t)
	k.release()
	m := server.StartManager(t, k.args()...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	long := strings.Repeat("long.", 20) + "name" // longer than a label may be
	s.composition(long)
	red := s.painted(long, "red")
	s.input("blue")
	blue := s.painted(long, "blue")
	k.empty()
	k.once()
	for _, c := range []*enov1.Composition{red, blue} {
		if n := len(k.pods(c.Status.CurrentSynthesis.UUID)); n != 1 {
			t.Errorf("synthesis %s had %d pods", c.Status.CurrentSynthesis.UUID, n)
		}
	}
	s.rollBack(blue, red.Status.CurrentSynthesis.UUID)
	back := s.painted(long, "red")
	if n := len(k.pods(back.Status.CurrentSynthesis.UUID)); n != 0 {
		t.Errorf("a rollback, which runs nothing, had %d pods", n)
	}
	cluster.Eventually(t, "all are counted", func() error {
		begun, good, gone := m.Sum(t, "eno_syntheses_total"), m.Sum(t, `eno_synthesis_result_total{result="success"}`), m.Sum(t, `eno_synthesis_pods_deleted_total{reason="success"}`)
		if took := m.Sum(t, "eno_synthesis_duration_seconds_count"); begun < 3 || begun != good || took != begun || gone != begun-1 {
			return fmt.Errorf("%v were begun, %v succeeded, %v took time, %v pods were deleted", begun, good, took, gone)
		}

		return nil
	})
	s.tidy()
}

// The program of a synthesizer sees nothing of who may write, and a Synthesizer
// can change its pods, and not whom they are for.
func TestPodSpec(t *testing.T) {
	k := newKubelet(t)
	server.StartManager(t, k.args("--taint-toleration=pool", "--node-affinity=pool=synth", "--synthesizer-pod-labels=team=all,shared=yes", "--synthesizer-pod-annotations=note=all")...)
	s := newStage(t)
	synthesizer := s.synthesizer(paint)
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	synthesizer.Spec.PodOverrides = enov1.PodOverrides{
		Labels: map[string]string{"team": "a", enov1.LabelSynthesisUUID: "mine"}, Annotations: map[string]string{"note": "b"},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}, Affinity: affinity,
	}
	must(t, s.Update(t.Context(), synthesizer))
	s.input("red")
	s.composition("c")
	c, pod := s.flying(k, "c")
	if pod.Labels["team"] != "a" || pod.Labels["shared"] != "yes" || pod.Annotations["note"] != "b" || pod.Labels[enov1.LabelSynthesisUUID] != c.Status.InFlightSynthesis.UUID {
		t.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
	}
	if a := pod.Spec.Affinity; a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil || a.PodAntiAffinity == nil {
		t.Errorf("affinity %+v", a)
	}
	if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "pool" }) {
		t.Errorf("tolerations %+v", pod.Spec.Tolerations)
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Error("a token is mounted into all containers")
	}
	secret := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		secret[v.Name] = v.EmptyDir == nil
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		holds := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return secret[m.Name] })
		if holds != (container.Name == "publisher") || container.Name == "publisher" && container.Image != arborImage {
			t.Errorf("container %s of image %s mounts %+v", container.Name, container.Image, container.VolumeMounts)
		}
		if container.Name == "executor" && (container.Image != "none" || container.Resources.Requests.Cpu().String() != "10m") {
			t.Errorf("the executor is %+v", container)
		}
	}
	k.release()
	s.painted("c", "red")
}

// A synthesis that fails in a pod reports why, and is retried until it succeeds.
func TestPodFailures(t *testing.T) {
	k := newKubelet(t)
	k.release()
	m := server.StartManager(t, k.args("--synthesis-timeout=5s")...)
	cases := map[string]struct{ reason, script, image, want string }{
		"Result":   {"The program reports it.", `echo '{"results":[{"message":"bad value","severity":"error"}],"items":[]}'`, "none", "bad value"},
		"Fails":    {"The end of its output is reported.", `echo no such chart >&2; exit 3`, "none", "exit status 3; its output ends with: no such chart"},
		"Endless":  {"Its time ends.", `exec sleep 3600`, "none", "sh did not end in time and was killed"},
		"Unpulled": {"Its image is not there.", paint, unpullable, `container executor, image "` + unpullable + `": ErrImagePull: no such host`},
		"Killed":   {"Of two containers that failed, the cause is reported.", `kill -9 $PPID; sleep 3600`, "none", "container executor of the pod failed: Error, exit code 137"},
		"Memory":   {"So is what probably killed the program.", `kill -9 $$`, "none", "sh failed: signal: killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			synthesizer := s.synthesizer(tc.script)
			if tc.image != synthesizer.Spec.Image {
				synthesizer.Spec.Image = tc.image
				must(t, s.Update(t.Context(), synthesizer))
			}
			s.input("red")
			s.composition("c")
			s.simplified("c", enov1.StatusSynthesisBackoff, tc.want)
			s.await("c", "it is tried again", func(c *enov1.Composition) error {
				if in := c.Status.InFlightSynthesis; in == nil || in.Attempts < 2 || in.Canceled == nil {
					return fmt.Errorf("%s is not tried again", tc.reason)
				}

				return nil
			})
			must(t, s.Get(t.Context(), client.ObjectKeyFromObject(synthesizer), synthesizer))
			synthesizer.Spec.Command[2], synthesizer.Spec.Image = paint, "none"
			must(t, s.Update(t.Context(), synthesizer))
			s.painted("c", "red")
			s.tidy()
		})
	}
	k.empty()
	cluster.Eventually(t, "failures are counted", func() error {
		if n := m.Sum(t, `eno_synthesis_result_total{result="failure"}`); n < float64(2*len(cases)) {
			return fmt.Errorf("%v failures were counted", n)
		}

		return nil
	})
}

// The time that an image takes to be pulled is not time of the synthesis, and has a limit
// of its own.
func TestPodSlowPull(t *testing.T) {
	const timeout = 3 * time.Second
	k := newKubelet(t)
	k.release()
	server.StartManager(t, k.args("--synthesis-timeout="+timeout.String(), "--image-pull-timeout=10m")...)
	s := newStage(t)
	synthesizer := s.synthesizer(paint)
	synthesizer.Spec.Image = slow
	must(t, s.Update(t.Context(), synthesizer))
	s.input("red")
	s.composition("c")
	c, _ := s.flying(k, "c")
	uuid := c.Status.InFlightSynthesis.UUID
	s.await("c", "its time would be over", func(c *enov1.Composition) error {
		in := c.Status.InFlightSynthesis
		if in == nil || in.UUID != uuid || in.Canceled != nil {
			t.Fatalf("the synthesis was given up: %+v", in)
		}
		// All limits but that of the pull, and the slack of each.
		if since := time.Since(in.Initialized.Time); since < 2*timeout+3*time.Second {
			return fmt.Errorf("it was begun %s ago", since)
		}

		return nil
	})
	close(k.pulled)
	if got := s.painted("c", "red"); got.Status.CurrentSynthesis.UUID != uuid {
		t.Errorf("synthesis %s was not the first, %s", got.Status.CurrentSynthesis.UUID, uuid)
	}
	k.once()
}

// A pull that does not end is given up, and the image named.
func TestPodEndlessPull(t *testing.T) {
	k := newKubelet(t)
	k.release()
	server.StartManager(t, k.args("--image-pull-timeout=2s")...)
	s := newStage(t)
	synthesizer := s.synthesizer(paint)
	synthesizer.Spec.Image = slow
	must(t, s.Update(t.Context(), synthesizer))
	s.input("red")
	s.composition("c")
	s.simplified("c", enov1.StatusSynthesisBackoff, `container executor of the pod did not start within 2s (--image-pull-timeout): image "`+slow+`" is probably still being pulled`)
}

// Pods of synthesizers can be made in a namespace with a quota on limits.
func TestPodQuota(t *testing.T) {
	k := newKubelet(t)
	k.release()
	server.StartManager(t, k.args("--synthesizer-pod-limits=cpu=1,memory=64Mi")...)
	s := newStage(t)
	hard := corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("4"), corev1.ResourceLimitsMemory: resource.MustParse("2Gi")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	must(t, s.Create(t.Context(), quota))
	cluster.Eventually(t, "the quota is enforced", func() error {
		must(t, s.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
		if len(quota.Status.Hard) != len(hard) {
			return errors.New("it is not")
		}

		return nil
	})
	s.synthesizer(paint)
	s.input("red")
	s.composition("c")
	s.painted("c", "red")
}

// Missing permissions are named. The operator has let the manager read Secrets by hand, next to the
// chart, and forgotten the pods.
func TestPodPermissions(t *testing.T) {
	k := newKubelet(t)
	k.release()
	server.StartManager(t, k.args("--synthesis-timeout=20s")...)
	s := newStage(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "arbor-system", Name: "arbor-manager"}},
	}
	for _, o := range []client.Object{role, binding} {
		must(t, s.Create(t.Context(), o))
		t.Cleanup(func() { must(t, s.Delete(context.Background(), o)) })
	}
	cluster.Eventually(t, "the manager may read Secrets", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:arbor-system:arbor-manager", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"},
		}}
		if err := s.Create(t.Context(), review); err != nil || !review.Status.Allowed {
			return fmt.Errorf("it may not: %+v: %w", review.Status, err)
		}

		return nil
	})
	synthesizer := s.synthesizer(paint)
	synthesizer.Spec.Refs[0].Resource.Kind = "Secret"
	must(t, s.Update(t.Context(), synthesizer))
	must(t, s.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "in"}}))
	s.composition("c")
	s.simplified("c", enov1.StatusSynthesisBackoff, `User "system:serviceaccount:`+k.namespace+`:`+account+`" cannot get resource "secrets"`)
}

// Without a namespace there are no pods, and the composition reports it.
func TestPodNamespace(t *testing.T) {
	k := newKubelet(t)
	m := server.StartManager(t, k.args()...)
	m.MayBeRefused() // the permission to create pods is deleted with the namespace
	s := newStage(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}
	must(t, s.Delete(t.Context(), ns))
	cluster.Eventually(t, "the namespace is gone", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}

		return nil
	})
	s.synthesizer(paint)
	s.input("red")
	s.composition("c")
	s.simplified("c", enov1.StatusSynthesisBackoff, "namespace "+k.namespace+", which pods of synthesizers run in, does not exist")
}

// A synthesis that was begun has a pod, also if the manager that began it did not live to make it.
func TestPodOfTheDead(t *testing.T) {
	k := newKubelet(t)
	k.release()
	m := server.StartManager(t, k.args()...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	m.Stop()
	c := s.composition("c")
	id := string(uuid.NewUUID())
	c.Status.InFlightSynthesis = &enov1.Synthesis{UUID: id, ObservedCompositionGeneration: c.Generation, ObservedSynthesizerGeneration: 1, Initialized: new(metav1.Now()), Attempts: 1}
	must(t, s.Status().Update(t.Context(), c))
	server.StartManager(t, k.args()...)
	t.Cleanup(func() { _ = s.Delete(context.Background(), c) })
	if got := s.painted("c", "red"); got.Status.CurrentSynthesis.UUID != id {
		t.Errorf("the synthesis is %s, not %s", got.Status.CurrentSynthesis.UUID, id)
	}
	k.empty()
	k.once()
}

// A manager that is killed whenever it has begun something leaves it to the next
// one, with one pod for each synthesis.
func TestPodManagerKilled(t *testing.T) {
	install(t)
	k := newKubelet(t)
	args := k.args()
	last := server.LaunchManager(t, args...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	const rounds = 4
	for n := range rounds {
		name := fmt.Sprintf("c%d", n)
		must(t, last.Await())
		s.composition(name)
		s.await(name, name+" is begun", func(c *enov1.Composition) error {
			if c.Status.InFlightSynthesis == nil {
				return errors.New("it is not")
			}

			return nil
		})
		last.Kill()
		last = server.LaunchManager(t, args...)
	}
	k.release()
	for n := range rounds {
		s.painted(fmt.Sprintf("c%d", n), "red")
	}
	k.empty()
	k.once()
	s.tidy()
}

// Pods go with their composition, and with their synthesis.
func TestPodNotWanted(t *testing.T) {
	k := newKubelet(t)
	k.release()
	m := server.StartManager(t, k.args()...)
	s := newStage(t)
	file := filepath.Join(t.TempDir(), "go")
	s.synthesizer("while ! [ -e " + file + " ]; do sleep 0.1; done\n" + paint)
	s.input("red")
	first := s.composition("first")
	s.flying(k, "first")
	must(t, s.Delete(t.Context(), first))
	k.empty()
	s.gone("first")

	s.composition("second")
	c, old := s.flying(k, "second")
	// The manager may write next to it.
	must(t, s.Patch(t.Context(), c.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"synthesisEnv":[{"name":"X","value":"$(HOME)"}]}}`))))
	cluster.Eventually(t, "the pod makes room for another", func() error {
		now, pod := s.flying(k, "second")
		if pod.UID == old.UID || now.Status.InFlightSynthesis.UUID == c.Status.InFlightSynthesis.UUID {
			return errors.New("it is the same")
		}
		list := &corev1.PodList{}
		if err := s.List(t.Context(), list, client.InNamespace(k.namespace)); err != nil || len(list.Items) != 1 || list.Items[0].UID != pod.UID {
			return fmt.Errorf("%d pods, %w", len(list.Items), errors.Join(err))
		}

		return nil
	})
	must(t, os.WriteFile(file, nil, 0o600))
	s.painted("second", "red")
	k.empty()
	k.once()
	cluster.Eventually(t, "both are counted", func() error {
		dropped, deleted := m.Sum(t, `eno_synthesis_result_total{result="superseded"}`), m.Sum(t, `eno_synthesis_pods_deleted_total{reason="superseded"}`)
		// The composition may be gone before its pod is checked, or checked again.
		gone := m.Sum(t, `eno_synthesis_pods_deleted_total{reason="composition_deleted"}`) + m.Sum(t, `eno_synthesis_pods_deleted_total{reason="orphaned"}`)
		if dropped != 2 || deleted != 1 || gone < 1 {
			return fmt.Errorf("%v superseded, %v pods for that, %v pods with their composition", dropped, deleted, gone)
		}

		return nil
	})
}

// A pod makes room for another one of the same synthesis if its image is not that
// of the Synthesizer any more.
func TestPodImageChanged(t *testing.T) {
	k := newKubelet(t)
	m := server.StartManager(t, k.args()...)
	s := newStage(t)
	synthesizer := s.synthesizer(paint)
	s.input("red")
	s.composition("c")
	c, _ := s.flying(k, "c")
	synthesizer.Spec.Image = "new"
	must(t, s.Update(t.Context(), synthesizer))
	cluster.Eventually(t, "it has a pod of the new image", func() error {
		for _, pod := range k.pods(c.Status.InFlightSynthesis.UUID) {
			if pod.Spec.Containers[0].Image == "new" {
				return nil
			}
		}

		return errors.New("it has none")
	})
	k.release()
	s.painted("c", "red")
	k.empty()
	if n := m.Sum(t, `eno_synthesis_pods_deleted_total{reason="image_changed"}`); n != 1 {
		t.Errorf("%v pods were deleted for their image", n)
	}
}

// A pod that no client waits for writes nothing, and that is not an error.
func TestPublisherDiscards(t *testing.T) {
	install(t)
	binary, err := cluster.Binary("arbor-executor", "ARBOR_EXECUTOR")
	must(t, err)
	s := newStage(t)
	synthesizer := s.synthesizer(paint)
	s.input("red")
	c := s.composition("c")
	c.Status.InFlightSynthesis = &enov1.Synthesis{UUID: "u", ObservedCompositionGeneration: c.Generation, Initialized: new(metav1.Now()), Attempts: 1}
	must(t, s.Status().Update(t.Context(), c))
	cases := map[string]struct{ reason, name, uuid, image, want string }{
		"Gone":       {"The composition is gone.", "d", "u", "none", "does not exist"},
		"Superseded": {"Another is in flight.", "c", "v", "none", "is not in flight any more"},
		"Image":      {"It has another program.", "c", "u", "old", `is "none" now, and this pod has "old"`},
	}
	run := func(t *testing.T, name, uuid, image string) (string, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, "publish", "--kubeconfig="+server.Kubeconfig, "--socket="+filepath.Join(t.TempDir(), "socket"), "--timeout=2s")
		cmd.Env = []string{"COMPOSITION_NAMESPACE=" + s.namespace, "COMPOSITION_NAME=" + name, "SYNTHESIS_UUID=" + uuid, "IMAGE=" + image}
		out, err := cmd.CombinedOutput()

		return string(out), err
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, tc.name, tc.uuid, tc.image)
			if err != nil || !strings.Contains(out, tc.want) {
				t.Errorf("%s\n%v: %s", tc.reason, err, out)
			}
		})
	}
	now := &enov1.Composition{}
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(c), now))
	if now.ResourceVersion != c.ResourceVersion {
		t.Errorf("something was written: %+v", now.Status)
	}
	// And what is waited for is not discarded: there is no executor to run the program.
	if out, err := run(t, "c", "u", "none"); err == nil || !strings.Contains(out, "the synthesizer failed") {
		t.Errorf("%v: %s", err, out)
	}
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(c), now))
	if in := now.Status.InFlightSynthesis; in.Canceled == nil || !in.Failed() || !strings.Contains(in.Results[0].Message, "no executor served the socket in time") {
		t.Errorf("it is not given up: %+v", in)
	}
	must(t, s.Delete(t.Context(), synthesizer))
	must(t, s.Delete(t.Context(), c))
}

// Two managers that know nothing of each other make one pod for each synthesis.
func TestPodTwoManagers(t *testing.T) {
	k := newKubelet(t)
	k.release()
	a, b := server.StartManager(t, k.args()...), server.StartManager(t, k.args()...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("c0")
	const compositions = 4
	for i := range compositions {
		s.composition(fmt.Sprintf("c%d", i))
	}
	s.input("c1")
	for i := range compositions {
		s.painted(fmt.Sprintf("c%d", i), "c1")
	}
	k.empty()
	k.once()
	s.tidy()
	cluster.Eventually(t, "all are counted once", func() error {
		begun := a.Sum(t, "eno_syntheses_total") + b.Sum(t, "eno_syntheses_total")
		if ended := a.Sum(t, "eno_synthesis_result_total") + b.Sum(t, "eno_synthesis_result_total"); begun != ended || ended < compositions {
			return fmt.Errorf("%v were begun, and %v ended", begun, ended)
		}

		return nil
	})
}
