package delivery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/rehearsal"
)

// rendered is a composition in a file, with one of its inputs.
const rendered = `
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: web}
spec:
  synthesizer: {name: web-synth}
  synthesisEnv: [{name: SIZE, value: small}]
  bindings:
  - {key: settings, resource: {namespace: shop, name: settings}}
  - {key: region, resource: {name: west}}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: settings}
data: {a: from-file}
`

// synthesizer runs the script that stands beside it.
const synthesizer = `
apiVersion: eno.azure.io/v1
kind: Synthesizer
metadata: {name: web-synth}
spec:
  command: [sh, SCRIPT]
  refs:
  - {key: settings, resource: {version: v1, kind: ConfigMap}}
  - {key: region, resource: {version: v1, kind: Namespace}}
  - {key: more, optional: true, resource: {version: v1, kind: Secret}}
`

// prints is a program that prints a ConfigMap c with a value of its input.
const prints = `a=$(sed 's/.*"a":"\([a-z-]*\)".*/\1/')
echo "made for $COMPOSITION_NAME, $SIZE" >&2
printf '{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"c"},"data":{"a":"%s"}}]}' "$a"
`

// inFiles writes a composition and, if there is a program, its Synthesizer, and returns
// the flags for them.
func inFiles(t *testing.T, composition, program string) []string {
	t.Helper()

	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		return path
	}
	args := []string{"-f", write("composition.yaml", composition)}

	if program != "" {
		script := write("program.sh", program)
		args = append(args, "--synthesizer", write("synthesizer.yaml", strings.ReplaceAll(synthesizer, "SCRIPT", script)))
	}

	return args
}

func TestDeliveryRender(t *testing.T) {
	const manifest = "---\napiVersion: v1\ndata:\n  a: from-file\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: shop\n"

	plain, _, _ := strings.Cut(rendered, "  bindings:")
	west := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"west"}}`
	inCluster := `{"apiVersion":"eno.azure.io/v1","kind":"Synthesizer","metadata":{"name":"web-synth"},"spec":{"command":["sh","-c","exit 9"],"refs":[{"key":"region","resource":{"version":"v1","kind":"Namespace"}}]}}`
	tests := map[string]struct {
		reason string
		file   string
		// program is the command in the file of the Synthesizer, "" for no file.
		program string
		live    []string
		offline bool
		args    []string
		want    clitest.Result
	}{
		"Synthesizer": {
			reason: "inputs are in files and in the cluster, and optional ones may be absent",
			file:   rendered, program: prints, live: []string{west},
			want: clitest.Result{Out: manifest, ErrOut: "made for web, small\n"},
		},
		"Exec": {
			reason: "the command in the cluster is not run; its Synthesizer says what the inputs are",
			file:   rendered, live: []string{west, inCluster}, args: []string{"--exec", `grep -q '"name":"west"' && printf '{"kind":"ResourceList","items":[]}'`, "-o", "json"},
			want: clitest.Result{Out: "{\n  \"apiVersion\": \"v1\",\n  \"items\": [],\n  \"kind\": \"List\"\n}\n"},
		},
		"Offline": {
			reason: "without inputs, no cluster is needed",
			file:   plain, offline: true, args: []string{"--exec", `printf '{"kind":"ResourceList","items":[],"results":[{"severity":"warning","message":"it is small"}]}'`},
			want: clitest.Result{ErrOut: "warning: it is small\n"},
		},
		"NoInput": {
			reason: "an input that is missing is named",
			file:   rendered, program: prints,
			want: clitest.Result{Code: command.ExitBlind, Err: `input "region": Namespace west is neither in the files nor in the cluster: Namespace "west" not found`},
		},
		"Fails": {
			reason: "the program says why",
			file:   plain, args: []string{"--exec", "echo no template >&2; exit 3"},
			want: clitest.Result{Code: command.ExitFound, ErrOut: "no template\n", Err: "the program failed: sh failed: exit status 3"},
		},
		"Reports": {
			reason: "a result may be an error",
			file:   plain, args: []string{"--exec", `printf '{"kind":"ResourceList","results":[{"severity":"error","message":"no size"}]}'`},
			want: clitest.Result{Code: command.ExitFound, ErrOut: "error: no size\n", Err: "the program failed: it reported an error"},
		},
		"NoList": {
			reason: "a manifest that is printed bare is no list",
			file:   plain, args: []string{"--exec", `printf '{"kind":"ConfigMap"}'`},
			want: clitest.Result{Code: command.ExitFound, Err: `the program failed: cannot read the output: it is no ResourceList, it has kind "ConfigMap" and neither items nor results`},
		},
		"Hangs": {
			reason: "a program must end",
			file:   plain, args: []string{"--exec", "sleep 60", "--timeout", "50ms"},
			want: clitest.Result{Code: command.ExitFound, Err: "the program failed: sh did not end in time and was killed"},
		},
		"NoProgram": {
			reason: "what the cluster names is not run on this machine",
			file:   rendered, live: []string{west, inCluster},
			want: clitest.Result{Code: command.ExitBlind, Err: "cannot tell which program to run: use --synthesizer FILE or --exec COMMAND; a command that is only in the cluster is never run"},
		},
		"Twice": {
			reason: "one composition is rendered",
			file:   plain + "---\n" + plain, args: []string{"--exec", "true"},
			want: clitest.Result{Code: command.ExitBlind, Err: "cannot tell which Composition is meant: there are 2 in the files"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			build := func(streams genericiooptions.IOStreams) *cobra.Command {
				servers := reaching(live(t, tc.live...))
				if tc.offline {
					servers = func(*genericclioptions.ConfigFlags) (rehearsal.Server, error) {
						t.Error("a cluster was asked")

						return nil, os.ErrNotExist
					}
				}

				return New(streams, clitest.Cluster(clitest.Holding()), servers, time.Now)
			}
			args := append([]string{"render"}, inFiles(t, tc.file, tc.program)...)

			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", append(args, tc.args...)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeliveryDiffOfFile(t *testing.T) {
	const (
		old  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"c","uid":"u","managedFields":[{"manager":"eno","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}]},"data":{"a":"VALUE"}}`
		gone = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"gone","uid":"v","managedFields":[{"manager":"eno","operation":"Apply","apiVersion":"v1"}]}}`
		west = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"west"}}`
	)

	tests := map[string]struct {
		reason string
		value  string
		// before are the manifests of the current synthesis, nil if the composition is not in
		// the cluster.
		before []string
		args   []string
		want   clitest.Result
	}{
		"Changed": {
			reason: "what the rendered manifests no longer have is deleted", value: "old", before: []string{old, gone},
			want: clitest.Result{Code: command.ExitFound, ErrOut: "made for web, small\nrendered manifests of shop/web: 1 changed, 1 deleted\n", Out: `diff -u -N LIVE/v1.ConfigMap.shop.c MERGED/v1.ConfigMap.shop.c
--- LIVE/v1.ConfigMap.shop.c
+++ MERGED/v1.ConfigMap.shop.c
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  a: old
+  a: from-file
 kind: ConfigMap
 metadata:
   name: c
diff -u -N LIVE/v1.ConfigMap.shop.gone MERGED/v1.ConfigMap.shop.gone
--- LIVE/v1.ConfigMap.shop.gone
+++ MERGED/v1.ConfigMap.shop.gone
@@ -1,5 +0,0 @@
-apiVersion: v1
-kind: ConfigMap
-metadata:
-  name: gone
-  namespace: shop
`},
		},
		"Same": {
			reason: "there is no difference", value: "from-file", before: []string{old},
			want: clitest.Result{ErrOut: "made for web, small\nrendered manifests of shop/web: 1 unchanged\n"},
		},
		"NotThere": {
			reason: "the composition need not be in the cluster, and deletes nothing then", value: "from-file",
			want: clitest.Result{ErrOut: "made for web, small\nrendered manifests of shop/web: 1 unchanged\n"},
		},
		"Fails": {
			reason: "1 is for differences", args: []string{"--exec", "exit 1"},
			want: clitest.Result{Code: command.ExitBlind, Err: "the program failed: sh failed: exit status 1"},
		},
		"Both": {
			reason: "one of the two is compared", args: []string{"web"},
			want: clitest.Result{Code: command.ExitBlind, Err: `cannot compare both a composition of the cluster and one of a file: leave out "web", or -f, --synthesizer and --exec`},
		},
		"History": {
			reason: "the history is that of the cluster", args: []string{"--synthesis", "previous"},
			want: clitest.Result{Code: command.ExitBlind, Err: "cannot compare both a file and --to: leave one of them out"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := live(t, strings.Replace(old, "VALUE", tc.value, 1), gone, west)
			build := comparing(t, s, tc.before...)

			if tc.before == nil {
				build = func(streams genericiooptions.IOStreams) *cobra.Command {
					return New(streams, clitest.Cluster(clitest.Holding()), reaching(s), time.Now)
				}
			}

			args := append([]string{"diff"}, inFiles(t, rendered, prints)...)
			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", append(args, tc.args...)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
