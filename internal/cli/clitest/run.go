package clitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/manifest"
)

// A Result is what a command left behind.
type Result struct {
	Out, ErrOut string
	Code        int
	Err         string
}

// Run runs a command as the root would.
func Run(t *testing.T, build func(genericiooptions.IOStreams) *cobra.Command, stdin string, args ...string) Result {
	t.Helper()

	var out, errOut bytes.Buffer

	cmd := build(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)

	r := Result{}

	if err := cmd.ExecuteContext(t.Context()); err != nil {
		r.Code, r.Err = 1, err.Error()

		if exit, ok := errors.AsType[*command.ExitError](err); ok {
			r.Code = exit.Code
		} else {
			t.Errorf("got %v, want an ExitError", err)
		}
	}

	r.Out, r.ErrOut = out.String(), errOut.String()

	return r
}

// Lines cuts text into lines without the last, empty one.
func Lines(s string) []string {
	if s == "" {
		return nil
	}

	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// Folder makes files in a temporary folder and goes there.
func Folder(t testing.TB, files map[string]string) {
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

// Cluster is a connector to objects in memory.
func Cluster(list source.Lister) source.Connector {
	return func(*genericclioptions.ConfigFlags, io.Writer) (source.Lister, error) { return list, nil }
}

// Holding lists the objects that a query asks for.
func Holding(objects ...map[string]any) source.Lister {
	return func(_ context.Context, q source.Query) ([]map[string]any, error) {
		var out []map[string]any

		for _, o := range objects {
			ref := identity.RefOf(o)
			plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))

			if plural.Resource == q.Resource.Resource && (q.Namespace == "" || q.Namespace == ref.Namespace) && (q.Name == "" || q.Name == ref.Name) {
				out = append(out, o)
			}
		}

		return out, nil
	}
}

// NamespaceObject is a Namespace as it is written.
func NamespaceObject(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
}

// Failing is a lister that fails.
func Failing(err error) source.Lister {
	return func(context.Context, source.Query) ([]map[string]any, error) { return nil, err }
}

// PodGroup is a PodGroup with subgroups given as "name" or "name<parent".
func PodGroup(namespace, name string, subGroups ...string) map[string]any {
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

// SubnetPool is a SubnetPool as it is written.
func SubnetPool(namespace, name, block string) map[string]any {
	return map[string]any{
		"apiVersion": "plexaubnet.io/v1alpha1", "kind": "SubnetPool",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"cidr": block},
	}
}

// Refuse answers a request with a Status.
func Refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"because","code":%d}`, reason, code)
}

// Stored is the only object of a file, as a cluster has it.
func Stored(t *testing.T, file string) map[string]any {
	t.Helper()

	var objects []map[string]any
	for _, source := range manifest.Sources([]string{file}, nil) {
		for _, d := range source.File().Documents {
			objects = append(objects, d.Object)
		}
	}

	if len(objects) != 1 {
		t.Fatalf("got %d objects in %s, want 1", len(objects), file)
	}

	return objects[0]
}

// PodGroupHead is the beginning of a PodGroup's manifest.
const PodGroupHead = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: a, namespace: ns}\n"

// Objects are those of a text, as a cluster would list them.
func Objects(t *testing.T, text string) []map[string]any {
	t.Helper()

	var out []map[string]any
	for _, d := range manifest.Parse("a.yaml", []byte(text)).Documents {
		out = append(out, d.Object)
	}

	return out
}

// Sound is a pool with a Subnet and its claim, which nobody has counted.
const Sound = `
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetPool, metadata: {name: lab, namespace: net}, spec: {cidr: 10.0.0.0/16}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: Subnet, metadata: {name: a, namespace: net}, spec: {poolRef: lab, cidr: 10.0.0.0/24, clusterID: a, claimRef: {name: team}}, status: {phase: Allocated}}
---
{apiVersion: plexaubnet.io/v1alpha1, kind: SubnetClaim, metadata: {name: team, namespace: net}, spec: {poolRef: lab, clusterID: a, blockSize: 24}, status: {phase: Bound, subnetRef: a, allocatedCIDR: 10.0.0.0/24}}
`

// Pools is a network of pools, in the form that [IPAM] reads.
const Pools = `
pool core     10.0.0.0/8
pool east     10.0.0.0/12   parent=core strategy=Buddy
pool east-lab 10.0.0.0/20   parent=east
pool west     10.16.0.0/12  label=core
pool edge     fd00:10::/32
subnet core     10.64.0.0/16   infra
subnet core     10.65.128.0/17 infra-2
subnet east-lab 10.0.0.0/21    a
subnet east-lab 10.0.8.0/21    b
subnet west     10.16.0.0/13   c
subnet west     10.24.0.0/14   d
subnet west     10.28.0.0/15   e
subnet west     10.30.0.0/16   f
subnet edge     fd00:10::/64   g
claim late  east-lab 24
claim later east-lab 26
`
