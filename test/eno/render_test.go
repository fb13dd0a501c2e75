package eno_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// rehearsed is a composition whose program prints its input under another name.
const rehearsed = `apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: HOME, name: app}
spec:
  synthesizer: {name: HOME-app}
  bindings: [{key: in, resource: {namespace: HOME, name: in}}]
---
apiVersion: eno.azure.io/v1
kind: Synthesizer
metadata: {name: HOME-app, labels: {test: HOME}}
spec:
  image: none
  command:
  - sh
  - -c
  - |
    a=$(sed 's/.*"a":"\([a-z]*\)".*/\1/')
    printf '{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"%s","name":"out"},"data":{"a":"%s"}}]}' "$COMPOSITION_NAMESPACE" "$a"
  refs: [{key: in, resource: {version: v1, kind: ConfigMap}}]
`

// TestRehearse renders a composition from a file with an input from the cluster, and
// compares it with the cluster before and after it is delivered.
func TestRehearse(t *testing.T) {
	e := newEnv(t)
	must(t, e.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "in"}, Data: map[string]string{"a": "one"}}))
	text := strings.ReplaceAll(rehearsed, "HOME", e.namespace)
	file := filepath.Join(t.TempDir(), "app.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	diff := []string{"delivery", "diff", "-f", file, "--synthesizer", file}

	if out := e.arbor(0, "delivery", "render", "-f", file, "--synthesizer", file); !strings.HasPrefix(out, "---\napiVersion: v1\ndata:\n  a: one\n") {
		t.Errorf("got %s", out)
	}
	if out := e.arbor(1, diff...); !strings.Contains(out, "rendered manifests of "+e.namespace+"/app: 1 new\n") {
		t.Errorf("got %s", out)
	}
	if e.config("out") != nil {
		t.Error("a rehearsal has written to the cluster")
	}
	for one := range strings.SplitSeq(text, "---\n") {
		o := e.object(one)
		if o.GetKind() == enov1.SynthesizerKind {
			o.SetNamespace("")
		}
		must(t, e.Create(t.Context(), o))
	}
	e.ready("app")
	e.arbor(0, diff...)
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, `"out"`, `"other"`)), 0o600))
	if out := e.arbor(1, diff...); !strings.Contains(out, "1 deleted, 1 new\n") {
		t.Errorf("got %s", out)
	}
	e.arbor(2, append(diff, "--exec", "exit 1")...)
}
