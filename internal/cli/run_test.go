package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestMain(m *testing.M) {
	settle, probeTime = 0, time.Millisecond // nothing is at work in memory
	m.Run()
}

// A result is what a command left behind.
type result struct {
	Out, ErrOut string
	Code        int
	Err         string
}

// run runs a command as the root would.
func run(t *testing.T, build func(genericiooptions.IOStreams) *cobra.Command, stdin string, args ...string) result {
	t.Helper()

	var out, errOut bytes.Buffer

	cmd := build(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)

	r := result{}

	if err := cmd.ExecuteContext(t.Context()); err != nil {
		r.Code, r.Err = 1, err.Error()

		if exit, ok := errors.AsType[*ExitError](err); ok {
			r.Code = exit.Code
		} else {
			t.Errorf("got %v, want an ExitError", err)
		}
	}

	r.Out, r.ErrOut = out.String(), errOut.String()

	return r
}

// lines cuts text into lines without the last, empty one.
func lines(s string) []string {
	if s == "" {
		return nil
	}

	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// folder makes files in a temporary folder and goes there.
func folder(t testing.TB, files map[string]string) {
	t.Helper()

	dir := t.TempDir()
	t.Chdir(dir)

	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// cluster is a connector to objects in memory.
func cluster(list lister) connector {
	return func(*genericclioptions.ConfigFlags, io.Writer) (lister, error) { return list, nil }
}

// holding lists the objects that a query asks for.
func holding(objects ...map[string]any) lister {
	return func(_ context.Context, q query) ([]map[string]any, error) {
		var out []map[string]any

		for _, o := range objects {
			ref := refOf(o)
			plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))

			if plural.Resource == q.resource.Resource && (q.namespace == "" || q.namespace == ref.Namespace) && (q.name == "" || q.name == ref.Name) {
				out = append(out, o)
			}
		}

		return out, nil
	}
}

func namespaceObject(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
}

func failing(err error) lister {
	return func(context.Context, query) ([]map[string]any, error) { return nil, err }
}

// object is a PodGroup with subgroups given as "name" or "name<parent".
func object(namespace, name string, subGroups ...string) map[string]any {
	var list []any

	for _, s := range subGroups {
		child, parent, ok := strings.Cut(s, "<")
		g := map[string]any{"name": child, "minMember": int64(1)}

		if ok {
			g["parent"] = parent
		}

		list = append(list, g)
	}

	return map[string]any{
		"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"queue": "q", "minMember": int64(2), "subGroups": list},
	}
}

// poolObject is a SubnetPool as it is written.
func poolObject(namespace, name, block string) map[string]any {
	return map[string]any{
		"apiVersion": "plexaubnet.io/v1alpha1", "kind": "SubnetPool",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"cidr": block},
	}
}
