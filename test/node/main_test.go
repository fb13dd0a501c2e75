package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/node/image"
	"github.com/arbor-control/arbor/test/node/machine"
	"github.com/arbor-control/arbor/test/node/sandbox"
)

const (
	release   = "arbor"
	namespace = "arbor-system"

	// testImage has the program of test/node/program, rootImage as well, for a user 0.
	testImage = "localhost/program:node"
	rootImage = "localhost/program-root:node"
)

var (
	server *cluster.Up
	node   *machine.Machine
	images *image.Builder
)

func TestMain(m *testing.M) {
	programs := machine.Programs()
	for _, name := range []string{"arbor", "helm"} {
		programs = append(programs, sandbox.Program{Path: filepath.Join(cluster.Root(), "bin", name), Makes: "make build setup"})
	}
	for _, archive := range archives() {
		programs = append(programs, sandbox.Program{Path: archive, Makes: "make node-images"})
	}
	os.Exit(sandbox.Main(lane{m}, programs...))
}

// archives are the images of Arbor.
func archives() []string {
	dir := filepath.Join(cluster.Root(), "bin", "node", "images")

	return []string{filepath.Join(dir, "arbor-manager.oci.tar"), filepath.Join(dir, "arbor-scheduler.oci.tar")}
}

// A lane starts a machine, a control plane and the chart, and then the tests.
type lane struct{ tests *testing.M }

// Run is called in the sandbox.
func (l lane) Run() int {
	began := time.Now()
	// The images are imported while the control plane starts.
	imported := make(chan error, 1)
	go func() { imported <- prepare(context.Background()) }()

	return cluster.Main(chart{tests: l.tests, imported: imported, began: began}, &server, "--bare", "--nodes=0", "--kubelets")
}

// prepare starts containerd and imports all images.
func prepare(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "images-")
	if err != nil {
		return err
	}
	if images, err = image.New(ctx, dir); err != nil {
		return err
	}
	all := archives()
	for _, i := range []struct{ name, user string }{{"pause", "65535:65535"}, {"program", "65532:65532"}, {"program-root", "0:0"}} {
		archive, err := images.Write("localhost/"+i.name, "node", i.user)
		if err != nil {
			return err
		}
		all = append(all, archive)
	}
	if node, err = machine.New(ctx); err != nil {
		return err
	}

	return node.Import(all...)
}

type chart struct {
	tests    *testing.M
	imported <-chan error
	began    time.Time
}

// Run is called when the control plane is there.
func (c chart) Run() int {
	err := <-c.imported
	if err == nil {
		err = node.Join(context.Background(), server)
	}
	if err == nil {
		fmt.Fprintf(os.Stdout, "The node is ready after %.1f s\n", time.Since(c.began).Seconds())
		err = install(context.Background())
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		fmt.Fprintf(os.Stdout, "The chart is ready after %.1f s\n", time.Since(c.began).Seconds())
		code = c.tests.Run()
	}
	if code != 0 && node != nil {
		fmt.Fprintln(os.Stderr, node.Logs())
	}

	return code
}

// install installs the chart where only restricted pods may run, and waits until it is ready.
func install(ctx context.Context, args ...string) error {
	c, err := server.NewClient(nil)
	if err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, ns)); err != nil {
		return err
	}
	if _, err := server.Helm(ctx, append([]string{"upgrade", "--install", release, cluster.Chart(), "--namespace", namespace, "--values", "values.yaml"}, args...)...); err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-tick.C {
		err := errors.Join(rolledOut(ctx, c, "arbor-manager"), rolledOut(ctx, c, "arbor-scheduler"))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// rolledOut returns why a Deployment is not as its template says.
func rolledOut(ctx context.Context, c client.Client, name string) error {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
		return err
	}
	s, want := d.Status, *d.Spec.Replicas
	if s.ObservedGeneration != d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
		return fmt.Errorf("the Deployment %s has generation %d, status %+v, pods %s", name, d.Generation, s, states(ctx, c, name))
	}

	return nil
}

// states describes the pods of a Deployment.
func states(ctx context.Context, c client.Client, name string) string {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": name[len("arbor-"):]}); err != nil {
		return err.Error()
	}
	text := ""
	for _, p := range pods.Items {
		text += fmt.Sprintf("\n  %s: %s", p.Name, p.Status.Phase)
		for _, s := range p.Status.ContainerStatuses {
			text += fmt.Sprintf(", %s ready %t %+v", s.Name, s.Ready, s.State)
		}
	}

	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
