package fields

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/ownership"
)

// memory is a Migrator of objects that it holds itself.
type memory struct {
	ownership.Options

	objects []map[string]any
	fails   error
}

func (m *memory) find(ref identity.Ref) map[string]any {
	return m.objects[slices.IndexFunc(m.objects, func(o map[string]any) bool { return identity.RefOf(o) == ref })]
}

// store keeps a plan, unless it is a dry run.
func (m *memory) store(obj map[string]any, plan *fields.Plan) error {
	if m.DryRun {
		return nil
	}

	data, err := json.Marshal(plan.Entries)
	if err != nil {
		return err
	}

	var list []any
	err = json.Unmarshal(data, &list)
	obj["metadata"].(map[string]any)["managedFields"] = list

	return err
}

func (m *memory) Migrate(ctx context.Context, r ownership.Request) (result ownership.Result, _ error) {
	ref := identity.RefOf(r.Object.Object)
	record := ownership.Record{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Scopes: r.Scopes}

	if m.fails != nil {
		// It was about to be written, and then it was not.
		return result, errors.Join(m.fails, m.Journal.Keep(ctx, record))
	}

	obj := m.find(ref)

	entries, err := fields.Read(obj)
	if err != nil {
		return result, err
	}

	plan, err := fields.NewPlan(obj, entries, fields.Request{Scope: r.Scopes[0], To: m.Manager, Mode: m.Mode})
	if err != nil {
		return result, err
	}

	result.Plan = &ownership.Plan{Scopes: r.Scopes, Moves: plan.Moves, Notes: plan.Notes}
	if result.Migrated = plan.Changed(); !result.Migrated {
		result.Skipped = ownership.Done

		return result, nil
	}

	if record.Fields = plan.Record(); !m.DryRun {
		result.Records = []ownership.Record{record}
		err = m.Journal.Keep(ctx, record)
	}

	return result, errors.Join(err, m.store(obj, plan))
}

func (m *memory) Undo(_ context.Context, r ownership.Record) (ownership.Undone, error) {
	if m.fails != nil {
		return ownership.Undone{}, m.fails
	}

	obj := m.find(identity.Ref{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})

	entries, err := fields.Read(obj)
	if err != nil {
		return ownership.Undone{}, err
	}

	plan, err := fields.Undo(obj, entries, r.Fields)
	if err != nil {
		return ownership.Undone{}, err
	}

	return ownership.Undone{Moves: plan.Moves, Notes: plan.Notes}, m.store(obj, plan)
}

// migrating is the command on objects in memory.
func migrating(m *memory) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command {
		return New(s, having(m.objects...), func(_ *genericclioptions.ConfigFlags, o ownership.Options) (Migrator, error) {
			m.Options = o

			return m, nil
		})
	}
}

// undoHome is a place for records.
func undoHome(t *testing.T) string {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")

	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)

	return filepath.Join(home, "arbor", "undo")
}

func kept(t *testing.T, dir string) []string {
	t.Helper()

	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}

	return all
}

func TestFieldsMigrateAndUndo(t *testing.T) {
	dir := undoHome(t)
	web := clitest.Stored(t, saved("web"))
	m := &memory{objects: []map[string]any{web}}
	before, _ := fields.Read(web)
	migrate := []string{"migrate", "deploy/web", "-n", "shop", "--scope", initContainers, "--to", "eno"}

	step := func(name string, want clitest.Result, args ...string) {
		t.Helper()

		got := clitest.Run(t, migrating(m), "", args...)
		for _, file := range kept(t, dir) {
			got.ErrOut = strings.ReplaceAll(got.ErrOut, strings.TrimSuffix(file, undoneSuffix), "RECORD")
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	step("a dry run leaves nothing behind", clitest.Result{
		Out: `KIND         NAMESPACE   NAME   RESULT       FIELDS   FROM
Deployment   shop        web    would move   4        Go-http-client (Update apps/v1)
`,
		ErrOut: "1 object would be changed, 0 unchanged, 0 failed (dry run: nothing was written)\n",
	}, append(migrate, "--dry-run")...)

	if files := kept(t, dir); len(files) > 0 {
		t.Errorf("got %v, want no file", files)
	}

	step("what was moved can be undone with a file", clitest.Result{
		Out: `KIND         NAMESPACE   NAME   RESULT   FIELDS   FROM
Deployment   shop        web    moved    4        Go-http-client (Update apps/v1)
`,
		ErrOut: "1 object changed, 0 unchanged, 0 failed\nto put it back: arbor fields undo --record RECORD\n",
	}, migrate...)

	step("the second time there is nothing to move", clitest.Result{
		Out: `KIND         NAMESPACE   NAME   RESULT      FIELDS   FROM
Deployment   shop        web    unchanged   0
`,
		ErrOut: "0 objects changed, 1 unchanged, 0 failed\n",
	}, migrate...)

	if files := kept(t, dir); len(files) != 1 || filepath.Ext(files[0]) != recordSuffix {
		t.Errorf("got %v, want one file", files)
	}

	step("and it can be put back", clitest.Result{
		Out: `KIND         NAMESPACE   NAME   RESULT     FIELDS   FROM
Deployment   shop        web    put back   4        eno (Apply)
`,
		ErrOut: "1 object changed, 0 unchanged, 0 failed\n",
	}, "undo", "--last")

	if after, _ := fields.Read(web); !fields.Equal(before, after) {
		t.Errorf("got entries %v, want those from before", after)
	}

	step("once", clitest.Result{
		Code: command.ExitBlind, Err: "cannot undo the last migration: nothing was migrated that is not undone: name a file with --record",
	}, "undo", "--last")
}

func TestFieldsMigrate(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		fails  error
		want   clitest.Result
	}{
		"Failure": {
			reason: "what went wrong is told of the object, and leaves no file",
			args:   []string{"deploy/web", "-n", "shop", "--scope", initContainers, "--to", "eno"},
			fails:  errors.New("cannot write: somebody else was faster"),
			want: clitest.Result{
				Out: "KIND         NAMESPACE   NAME   RESULT   FIELDS   FROM\nDeployment   shop        web    failed   0\n", Code: command.ExitFound,
				ErrOut: "Deployment shop/web: cannot write: somebody else was faster\n0 objects changed, 0 unchanged, 1 failed\n",
			},
		},
		"Everything": {
			reason: "all objects of a kind are asked for in so many words",
			args:   []string{"deploy", "-A", "--scope", initContainers, "--to", "eno"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "cannot migrate every deploy without being told so: add names, labels with -l, or --all"},
		},
		"NothingToApply": {
			reason: "an apply needs a file", args: []string{"deploy/web", "--to", "eno", "--apply"},
			want: clitest.Result{Code: command.ExitBlind, Err: "nothing to apply: name a file with --desired"},
		},
		"Denied": {
			reason: "nothing is asked of the cluster", args: []string{"deploy/web", "--scope", "metadata.finalizers", "--to", "eno"},
			want: clitest.Result{Code: command.ExitBlind, Err: "cannot move the ownership of metadata.finalizers: metadata.finalizers is never moved; use another scope"},
		},
		"NoObject": {
			reason: "there are no files here", args: []string{"--scope", "spec", "--to", "eno"},
			want: clitest.Result{Code: command.ExitBlind, Err: "no object to look at: name one, like deploy/web, or a kind and labels, like deploy -l app=web\nSee 'fields migrate --help' for usage"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := undoHome(t)
			m := &memory{objects: []map[string]any{clitest.Stored(t, saved("web")), clitest.Stored(t, saved("gate"))}, fails: tc.fails}

			got := clitest.Run(t, migrating(m), "", append([]string{"migrate"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if files := kept(t, dir); len(files) > 0 {
				t.Errorf("%s: got files %v, want none", tc.reason, files)
			}
		})
	}
}

func TestFieldsUndo(t *testing.T) {
	clitest.Folder(t, map[string]string{"empty.json": "{}\n", "bad.json": "{]\n", "torn.json": `{"apiVersion":"v1","ki`})

	tests := map[string]struct {
		reason string
		args   []string
		err    string
	}{
		"Neither": {reason: "something must be undone", err: "cannot tell what to undo: use either --last or --record FILE"},
		"Both":    {reason: "and one thing only", args: []string{"--last", "--record", "x"}, err: "cannot tell what to undo: use either --last or --record FILE"},
		"Missing": {reason: "a file is named once", args: []string{"--record", "x.json"}, err: "cannot read x.json: no such file or directory"},
		"Bad":     {reason: "it must be JSON", args: []string{"--record", "bad.json"}, err: "cannot read bad.json: invalid character ']' looking for beginning of object key string"},
		"Torn":    {reason: "a record that was not finished is none", args: []string{"--record", "torn.json"}, err: "cannot use torn.json: it is not what a migration leaves behind"},
		"Empty":   {reason: "of a migration", args: []string{"--record", "empty.json"}, err: "cannot use empty.json: it is not what a migration leaves behind"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			undoHome(t)

			want := clitest.Result{Code: command.ExitBlind, Err: tc.err}
			if diff := cmp.Diff(want, clitest.Run(t, migrating(&memory{}), "", append([]string{"undo"}, tc.args...)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A record is never written over, and nothing is moved without one.
func TestFieldsMigrateRecord(t *testing.T) {
	undoHome(t)
	clitest.Folder(t, map[string]string{"taken.json": "precious"})
	t.Setenv("KUBECONFIG", "/dev/null")

	web := map[string]any{}

	data, err := json.Marshal(clitest.Container(t, clitest.Held("eno", "Apply", clitest.KeyAndImage)+clitest.Held("legacy", "Update", clitest.KeyAndCommand)))
	if err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(data, &web); err != nil {
		t.Fatal(err)
	}

	m := &memory{objects: []map[string]any{web}}
	args := []string{"migrate", "deploy/web", "-n", "shop", "--scope", "spec.template.spec.containers", "--to", "eno", "--record"}

	if got := clitest.Run(t, migrating(m), "", append(args, "taken.json")...); got.Code != command.ExitBlind || got.Err != "cannot make taken.json: file exists" {
		t.Errorf("got %+v, want a refusal", got)
	}

	if text, _ := os.ReadFile("taken.json"); string(text) != "precious" {
		t.Errorf("got %q in the file, want what was there", text)
	}

	if got := clitest.Run(t, migrating(m), "", append(args, "new.json")...); got.Code != 0 || !strings.Contains(got.ErrOut, "new.json") {
		t.Errorf("got %+v, want it moved", got)
	}

	if got := clitest.Run(t, migrating(m), "", "undo", "--record", "new.json", "-o", "json"); got.Code != 0 || !strings.Contains(got.Out, `"changed": true`) {
		t.Errorf("got %+v, want it put back", got)
	}
}

func TestUndoFolder(t *testing.T) {
	env := func(vars map[string]string) func(string) string { return func(k string) string { return vars[k] } }
	tests := map[string]struct {
		reason string
		vars   map[string]string
		want   string
	}{
		"XDG":      {reason: "as people set it", vars: map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/home/ada"}, want: "/state/arbor/undo"},
		"Home":     {reason: "as it is elsewhere", vars: map[string]string{"HOME": "/home/ada"}, want: "/home/ada/.local/state/arbor/undo"},
		"Relative": {reason: "a relative path is to be ignored", vars: map[string]string{"XDG_STATE_HOME": "state", "HOME": "/home/ada"}, want: "/home/ada/.local/state/arbor/undo"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := newUndoFolder(env(tc.vars)).path; got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
