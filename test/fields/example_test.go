package fields_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestExample has the file do what docs/tasks/adopting.md describes: split, rejected, moved,
// removed.
func TestExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "examples", "fields-split-ownership.yaml"))
	must(t, err)
	newer := strings.Replace(string(text), "base:1", "base:2", 1)
	without, _, found := strings.Cut(newer, "      initContainers:")
	if !found || newer == string(text) {
		t.Fatal("the example has no init containers of base:1 at its end")
	}

	w := newWorld(t)
	o := w.create("installer", string(text))
	w.mustApply(eno, newer)
	if _, err := w.apply(eno, w.object(without)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "initContainers[0].image: Required value") {
		t.Fatalf("before, the server reports %v", err)
	}
	result := w.migrate(ownership.New(w.c, ownership.Options{}), ownership.Request{Desired: w.object(without)})
	if !result.Migrated || !result.Applied {
		t.Errorf("it reports %+v", result)
	}
	after := w.get(o)
	if got := names(after, initContainers); len(got) > 0 {
		t.Errorf("init containers are %q", got)
	}
	replicas, _, _ := unstructured.NestedInt64(after.Object, "spec", "replicas")
	if diff := cmp.Diff(int64(4), replicas); diff != "" {
		t.Errorf("replicas: -want, +got:\n%s", diff)
	}
}
