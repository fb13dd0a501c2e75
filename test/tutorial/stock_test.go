package tutorial_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// The stock synthesizers deliver what docs/tasks/stock-synthesizers.md says.
func TestStock(t *testing.T) {
	bin := filepath.Join(cluster.Root(), "bin")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, name := range []string{"yaml", "kustomize", "helm"} {
		if _, err := os.Stat(filepath.Join(bin, "arbor-synthesizer-"+name)); err != nil {
			t.Fatalf("run make build synthesizers first: %v", err)
		}
	}
	server.StartManager(t, both...)
	for name, play := range map[string]func(*stage){"yaml": (*stage).stockYAML, "kustomize": (*stage).stockKustomize, "helm": (*stage).stockHelm} {
		t.Run(name, func(t *testing.T) {
			s := &stage{T: t, Client: server.Client(t, nil), namespace: metav1.NamespaceDefault}
			file := s.stockExample(name)
			s.kubectl("apply", "-f", file)
			play(s)
			s.kubectl("delete", "-f", file, "--timeout=1m")
		})
	}
}

// stockExample is an example whose folders are where they are, not where the
// manager was started.
func (s *stage) stockExample(name string) string {
	s.Helper()
	examples := filepath.Join(cluster.Root(), "examples")
	data, err := os.ReadFile(filepath.Join(examples, "synthesizer-"+name+".yaml"))
	must(s, err)
	file := filepath.Join(s.TempDir(), name+".yaml")
	must(s, os.WriteFile(file, []byte(strings.ReplaceAll(string(data), "=examples/", "="+examples+"/")), 0o600))

	return file
}

func (s *stage) stockYAML() {
	s.kubectl("wait", "composition/greeting", "--for=condition=Ready", "--timeout=1m")
	config := &corev1.ConfigMap{}
	must(s, s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "greeting"}, config))
	if config.Data["text"] != "hello" || s.service("greeting") == nil {
		s.Errorf("there is %v", config.Data)
	}

	// What is wrong is shown as it is, and nothing is changed.
	s.set("greeting-manifests", "all.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n")
	s.says("greeting", enov1.StatusSynthesisBackoff, "inputs/manifests/all.yaml, document 1, line 1: metadata.name is missing")
	must(s, s.Get(s.Context(), client.ObjectKeyFromObject(config), config))
}

func (s *stage) stockKustomize() {
	s.kubectl("wait", "composition/kiosk", "--for=condition=Ready", "--timeout=1m")
	uses := func(want string) error {
		d := s.deployment("kiosk")
		c := &corev1.ConfigMap{}
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: d.Spec.Template.Spec.Volumes[0].ConfigMap.Name}, c); err != nil {
			return err
		}
		if got, image := c.Data["app.conf"], d.Spec.Template.Spec.Containers[0].Image; got != want || image != "kiosk:2" {
			return fmt.Errorf("the configuration is %q, and the image is %s", got, image)
		}

		return nil
	}
	must(s, uses("open = true\n"))
	s.set("kiosk-settings", "app.conf", "open = maybe\n")
	cluster.Eventually(s, "the generated ConfigMap is used, and the old one is gone", func() error {
		if err := uses("open = maybe\n"); err != nil {
			return err
		}
		list := &corev1.ConfigMapList{}
		if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		list.Items = slices.DeleteFunc(list.Items, func(c corev1.ConfigMap) bool { return c.Data["app.conf"] == "" || c.Name == "kiosk-settings" })
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d ConfigMaps", len(list.Items))
		}

		return nil
	})
}

func (s *stage) stockHelm() {
	s.kubectl("wait", "composition/bakery", "--for=condition=Ready", "--timeout=2m")
	d := s.deployment("bakery")
	web := d.Spec.Template.Spec.Containers[0]
	if web.Image != "bakery:2" || web.Env[0].Value != "rye" {
		s.Errorf("values are not merged in their order: %+v", web)
	}
	s.prepared(d, "bakery:2")
	c, err := s.composition("bakery")
	must(s, err)
	results := c.Status.CurrentSynthesis.Results
	if len(results) != 1 || results[0].Severity != "warning" || !strings.Contains(results[0].Message, `bakery/templates/test.yaml, document 1, line 2: Pod bakery-test is left out: it is a hook for "test"`) {
		s.Errorf("the results are %+v", results)
	}

	// A hook runs again if it is another.
	s.set("bakery-own", "values.yaml", "image: bakery:3\n")
	cluster.Eventually(s, "the Deployment is changed", func() error {
		if d = s.deployment("bakery"); d.Spec.Template.Spec.Containers[0].Image != "bakery:3" {
			return errors.New("it is not")
		}

		return nil
	})
	s.prepared(d, "bakery:3")
}

// prepared looks whether the Job of the chart had ended before the Deployment was
// made or changed.
func (s *stage) prepared(d *appsv1.Deployment, image string) {
	s.Helper()
	jobs := &batchv1.JobList{}
	must(s, s.List(s.Context(), jobs, client.InNamespace(s.namespace)))
	at := slices.IndexFunc(jobs.Items, func(j batchv1.Job) bool { return j.Spec.Template.Spec.Containers[0].Image == image })
	if at < 0 {
		s.Fatalf("no Job of %d is for %s", len(jobs.Items), image)
	}
	job := jobs.Items[at]
	if job.Status.CompletionTime == nil {
		s.Errorf("%s is not complete, and the Deployment is made: %+v", job.Name, job.Status)
	}
	if image == "bakery:2" && d.CreationTimestamp.Before(job.Status.CompletionTime) {
		s.Errorf("the Deployment was made at %s, and %s was complete at %s", d.CreationTimestamp, job.Name, job.Status.CompletionTime)
	}
}

// The program knows which kinds of the API server have no namespace.
func TestClusterScoped(t *testing.T) {
	out, errs, code := server.Arbor(t, "kubectl", "api-resources", "--verbs=create,delete", "--no-headers")
	if code != 0 {
		t.Fatal(errs)
	}
	namespaced, text := map[string]string{}, ""
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		f = f[len(f)-3:] // apiVersion, namespaced, kind
		namespaced[f[0]+" "+f[2]] = f[1]
		text += fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: a}\n", f[0], f[2])
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(text), 0o600))
	cmd := exec.CommandContext(t.Context(), filepath.Join(cluster.Root(), "bin", "arbor-synthesizer-yaml"), "--dir="+dir)
	cmd.Env = []string{"COMPOSITION_NAMESPACE=here"}
	data, err := cmd.Output()
	must(t, err)
	var list struct {
		Items []metav1.PartialObjectMetadata `json:"items"`
	}
	must(t, json.Unmarshal(data, &list))
	if len(list.Items) < 40 || len(list.Items) != len(namespaced) {
		t.Fatalf("of %d kinds, there are %d objects: %s", len(namespaced), len(list.Items), data)
	}
	for _, o := range list.Items {
		if want := namespaced[o.APIVersion+" "+o.Kind]; want != strconv.FormatBool(o.Namespace == "here") {
			t.Errorf("%s %s has the namespace %q; whether it is to have one: %s", o.APIVersion, o.Kind, o.Namespace, want)
		}
	}
}
