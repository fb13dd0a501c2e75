package delivery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// A remote is a second control plane, which can be down.
type remote struct {
	*cluster.Up

	t *testing.T
	// kubeconfig outlives the control plane, which takes its own away.
	kubeconfig string
}

func startRemote(t *testing.T) *remote {
	t.Helper()
	dir, err := os.MkdirTemp("", "arbor-test-") //nolint:usetesting // it is removed when the control plane has ended
	must(t, err)
	r := &remote{t: t, kubeconfig: filepath.Join(t.TempDir(), "remote")}
	t.Cleanup(func() {
		if r.Up != nil {
			r.Stop()
		}
		_ = os.RemoveAll(dir)
	})
	r.up(dir)
	data, err := os.ReadFile(r.Kubeconfig)
	must(t, err)
	must(t, os.WriteFile(r.kubeconfig, data, 0o600))

	return r
}

func (r *remote) up(dir string) {
	r.t.Helper()
	up, err := cluster.Start(dir, "--unsafe-no-fsync", "--bare", "--nodes=0")
	must(r.t, err)
	r.Up = up
}

// deliversTo has a world deliver to a remote cluster, in a namespace of the same
// name.
func (w *world) deliversTo(r *remote) {
	w.Helper()
	w.objects = r.Client(w, nil)
	must(w, w.objects.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}))
}

// untouched expects that nothing of a world is where its composition is.
func (w *world) untouched() {
	w.Helper()
	for _, list := range []client.ObjectList{
		&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}},
		&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}},
	} {
		must(w, w.c.List(w.Context(), list, client.InNamespace(w.ns)))
		for _, o := range list.(*metav1.PartialObjectMetadataList).Items {
			if o.Name != "kube-root-ca.crt" {
				w.Errorf("%s was written to the cluster of the composition", o.Name)
			}
		}
	}
}

// TestRemote has compositions in one cluster, and their objects in another one,
// which is down for a while.
func TestRemote(t *testing.T) {
	r := startRemote(t)
	w := newWorld(t)
	w.deliversTo(r)
	m := start(t, "--remote-kubeconfig="+r.kubeconfig)
	w.synthesize(configMap("one", "1"), configMap("two", "1"), configMap("goes", "1"))
	w.ready()
	w.untouched()

	// Drift there is seen there.
	w.merge(w.config("one"), `{data: {a: stolen}}`)
	w.eventually("one", "a", "1")
	must(t, w.objects.Delete(t.Context(), w.config("two")))
	w.eventually("two", "a", "1")

	// So are fields of other managers.
	w.synthesize(configMap("one", "1"), configMap("two", "1"))
	w.deletedOnly("goes")
	w.split(2)
	w.drop(2)
	w.ready()
	for i := range 2 {
		if n, replicas := w.inits(i); n != 0 || replicas != 4 {
			t.Errorf("%s has %d init containers and %d replicas", name(i), n, replicas)
		}
	}
	if w.config("one") != nil || w.config("two") != nil {
		t.Error("an object that is not in the synthesis still exists")
	}
	w.untouched()

	// While it is down, the composition reports it, whichever manager is started during that time.
	dir, web := r.Dir, w.last
	r.Stop()
	w.synthesize(configMap("one", "2"))
	w.fails("ConfigMap", "one", "connection refused")
	m.Stop()
	start(t, "--remote-kubeconfig="+r.kubeconfig)
	w.last = append(w.last, web...) // they are still there
	w.synthesize(configMap("one", "3"))
	w.fails("ConfigMap", "one", "connection refused")
	r.up(dir)
	w.objects = r.Client(t, nil)
	w.ready()
	w.eventually("one", "a", "3")
	for i := range 2 {
		w.absent("apps/v1", "Deployment", name(i))
	}
	w.merge(w.config("one"), `{data: {a: stolen}}`)
	w.eventually("one", "a", "3")

	w.remove()
	w.deleted()
	w.absent("v1", "ConfigMap", "one")
	w.untouched()
}

// TestRemoteNamespace has a namespace that is only where the composition is.
func TestRemoteNamespace(t *testing.T) {
	r := startRemote(t)
	w := newWorld(t)
	w.objects = r.Client(t, nil)
	start(t, "--remote-kubeconfig="+r.kubeconfig)
	w.synthesize(configMap("one", "1"))
	w.fails("ConfigMap", "one", fmt.Sprintf("there is no namespace %q in the cluster that is delivered to", w.ns))
	w.untouched()
	must(t, w.objects.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}))
	w.ready()
	w.eventually("one", "a", "1")
}

// TestRemoteUnreadable has an invalid kubeconfig.
func TestRemoteUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent")
	m := server.LaunchManager(t, "--controllers=delivery", "--webhooks=false", "--remote-kubeconfig="+path)
	if code := m.ExitCode(); code == 0 || !strings.Contains(m.Output(), "--remote-kubeconfig "+path) {
		t.Errorf("it ended with %d and printed:\n%s", code, m.Output())
	}
}

// deletedOnly waits until the one object that must be deleted is gone.
func (w *world) deletedOnly(name string) {
	w.Helper()
	cluster.Eventually(w, name+" is deleted", func() error {
		if s := w.state("ConfigMap", name); !s.Deleted {
			return fmt.Errorf("%s: %s", name, describe(s))
		}

		return nil
	})
}

// absent waits until an object is gone.
func (w *world) absent(apiVersion, kind, name string) {
	w.Helper()
	cluster.Eventually(w, name+" is gone", func() error {
		if w.get(apiVersion, kind, name) != nil {
			return apierrors.NewAlreadyExists(corev1.Resource(kind), name)
		}

		return nil
	})
}
