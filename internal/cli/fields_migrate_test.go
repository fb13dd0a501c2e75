package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
)

// memory is a migrator of objects that it holds itself.
type memory struct {
	objects []map[string]any
	fails   error
}

func (m *memory) find(target ObjectRef) map[string]any {
	return m.objects[slices.IndexFunc(m.objects, func(o map[string]any) bool { return refOf(o) == target })]
}

// store keeps a plan, unless it is a dry run.
func (m *memory) store(obj map[string]any, plan *fields.Plan, dryRun bool) (outcome, error) {
	out := outcome{Changed: plan.Changed(), Moves: plan.Moves, Notes: plan.Notes, Record: plan.Record()}
	if dryRun {
		return out, nil
	}

	data, err := json.Marshal(plan.Entries)
	if err != nil {
		return outcome{}, err
	}

	var list []any
	err = json.Unmarshal(data, &list)
	obj["metadata"].(map[string]any)["managedFields"] = list

	return out, err
}

func (m *memory) Migrate(_ context.Context, target ObjectRef, what migration) (outcome, error) {
	if m.fails != nil {
		return outcome{}, m.fails
	}

	obj := m.find(target)

	entries, err := fields.Read(obj)
	if err != nil {
		return outcome{}, err
	}

	if what.Desired != nil {
		what.Next = fields.New(obj, entries).Desired(what.Desired)
	}

	plan, err := fields.NewPlan(obj, entries, what.Request)
	if err != nil {
		return outcome{}, err
	}

	return m.store(obj, plan, what.DryRun)
}

func (m *memory) Undo(_ context.Context, record undoRecord, dryRun bool) (outcome, error) {
	if m.fails != nil {
		return outcome{}, m.fails
	}

	obj := m.find(record.Object)

	entries, err := fields.Read(obj)
	if err != nil {
		return outcome{}, err
	}

	plan, err := fields.Undo(obj, entries, record.Record)
	if err != nil {
		return outcome{}, err
	}

	return m.store(obj, plan, dryRun)
}

// migrating is the command on objects in memory.
func migrating(m *memory) func(genericiooptions.IOStreams) *cobra.Command {
	return func(s genericiooptions.IOStreams) *cobra.Command {
		return buildFields(s, having(m.objects...), func(*genericclioptions.ConfigFlags) (migrator, error) { return m, nil })
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
	web := stored(t, "web")
	m := &memory{objects: []map[string]any{web}}
	before, _ := fields.Read(web)
	migrate := []string{"migrate", "deploy/web", "-n", "shop", "--scope", initContainers, "--to", "eno"}

	step := func(name string, want result, args ...string) {
		t.Helper()

		got := run(t, migrating(m), "", args...)
		for _, file := range kept(t, dir) {
			got.Out = strings.ReplaceAll(got.Out, strings.TrimSuffix(file, undoneSuffix), "RECORD")
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	step("a dry run leaves nothing behind", result{
		Out: `KIND         NAMESPACE   NAME   RESULT         FIELDS   FROM                              UNDO WITH
Deployment   shop        web    would change   4        Go-http-client (Update apps/v1)
`,
		ErrOut: "1 object changed, 0 unchanged, 0 failed (dry run: nothing was written)\n",
	}, append(migrate, "--dry-run")...)

	if files := kept(t, dir); len(files) > 0 {
		t.Errorf("got %v, want no file", files)
	}

	step("what was moved can be undone with a file", result{
		Out: `KIND         NAMESPACE   NAME   RESULT    FIELDS   FROM                              UNDO WITH
Deployment   shop        web    changed   4        Go-http-client (Update apps/v1)   RECORD
`,
		ErrOut: "1 object changed, 0 unchanged, 0 failed\n",
	}, migrate...)

	step("the second time there is nothing to move", result{
		Out: `KIND         NAMESPACE   NAME   RESULT      FIELDS   FROM   UNDO WITH
Deployment   shop        web    unchanged   0
`,
		ErrOut: "0 objects changed, 1 unchanged, 0 failed\n",
	}, migrate...)

	if files := kept(t, dir); len(files) != 1 || !strings.HasSuffix(files[0], "_deployment_shop_web.json") {
		t.Errorf("got %v, want one file", files)
	}

	step("and it can be put back", result{
		Out: `KIND         NAMESPACE   NAME   RESULT    FIELDS   FROM          UNDO WITH
Deployment   shop        web    changed   4        eno (Apply)
`,
		ErrOut: "1 object changed, 0 unchanged, 0 failed\n",
	}, "undo", "--last")

	if after, _ := fields.Read(web); !fields.Equal(before, after) {
		t.Errorf("got entries %v, want those from before", after)
	}

	step("once", result{
		Code: ExitBlind, Err: "cannot undo the last migration: nothing was migrated that is not undone: name a file with --record",
	}, "undo", "--last")
}

func TestFieldsMigrate(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		fails  error
		want   result
	}{
		"Failure": {
			reason: "what went wrong is told of the object, and leaves no file",
			args:   []string{"deploy/web", "-n", "shop", "--scope", initContainers, "--to", "eno"},
			fails:  errors.New("cannot write: somebody else was faster"),
			want: result{
				Out: "KIND         NAMESPACE   NAME   RESULT   FIELDS   FROM   UNDO WITH\nDeployment   shop        web    failed   0\n", Code: ExitFound,
				ErrOut: "Deployment shop/web: cannot write: somebody else was faster\n0 objects changed, 0 unchanged, 1 failed\n",
			},
		},
		"Everything": {
			reason: "all objects of a kind are asked for in so many words",
			args:   []string{"deploy", "-A", "--scope", initContainers, "--to", "eno"},
			want:   result{Code: ExitBlind, Err: "cannot migrate every deploy without being told so: add names, labels with -l, or --all"},
		},
		"NoScope": {
			reason: "and so is all of an object", args: []string{"deploy/web", "--to", "eno"},
			want: result{Code: ExitBlind, Err: "no part to migrate: name one with --scope, like spec.template.spec.initContainers"},
		},
		"Denied": {
			reason: "nothing is asked of the cluster", args: []string{"deploy/web", "--scope", "metadata.finalizers", "--to", "eno"},
			want: result{Code: ExitBlind, Err: "cannot move the ownership of metadata.finalizers: metadata.finalizers is never moved; use another scope"},
		},
		"NoObject": {
			reason: "there are no files here", args: []string{"--scope", "spec", "--to", "eno"},
			want: result{Code: ExitBlind, Err: "no object to look at: name one, like deploy/web, or a kind and labels, like deploy -l app=web\nSee 'fields migrate --help' for usage"},
		},
		"OneRecord": {
			reason: "one file is for one object", args: []string{"deploy/web", "gate/north", "-A", "--scope", "spec", "--to", "eno", "--record", "x.json"},
			want: result{Code: ExitBlind, Err: "--record names one file, and there are 2 objects: leave it out, and each has its own"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := undoHome(t)
			m := &memory{objects: []map[string]any{stored(t, "web"), stored(t, "gate")}, fails: tc.fails}

			got := run(t, migrating(m), "", append([]string{"migrate"}, tc.args...)...)
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
	folder(t, map[string]string{"empty.json": "{}", "bad.json": "{"})

	tests := map[string]struct {
		reason string
		args   []string
		err    string
	}{
		"Neither": {reason: "something must be undone", err: "cannot tell what to undo: use either --last or --record FILE"},
		"Both":    {reason: "and one thing only", args: []string{"--last", "--record", "x"}, err: "cannot tell what to undo: use either --last or --record FILE"},
		"Missing": {reason: "a file is named once", args: []string{"--record", "x.json"}, err: "cannot read x.json: no such file or directory"},
		"Bad":     {reason: "it must be JSON", args: []string{"--record", "bad.json"}, err: "cannot read bad.json: unexpected end of JSON input"},
		"Empty":   {reason: "of a migration", args: []string{"--record", "empty.json"}, err: "cannot use empty.json: it is not what a migration leaves behind"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			undoHome(t)

			want := result{Code: ExitBlind, Err: tc.err}
			if diff := cmp.Diff(want, run(t, migrating(&memory{}), "", append([]string{"undo"}, tc.args...)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A record is never written over, and nothing is moved without one.
func TestFieldsMigrateRecord(t *testing.T) {
	undoHome(t)
	folder(t, map[string]string{"taken.json": "precious"})
	t.Setenv("KUBECONFIG", "/dev/null")

	web := map[string]any{}

	data, err := json.Marshal(container(t, held("eno", "Apply", keyAndImage)+held("legacy", "Update", keyAndCommand)))
	if err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(data, &web); err != nil {
		t.Fatal(err)
	}

	m := &memory{objects: []map[string]any{web}}
	args := []string{"migrate", "deploy/web", "-n", "shop", "--scope", "spec.template.spec.containers", "--to", "eno", "--record"}

	if got := run(t, migrating(m), "", append(args, "taken.json")...); got.Code != ExitFound || !strings.Contains(got.ErrOut, "cannot make taken.json: file exists") {
		t.Errorf("got %+v, want a refusal", got)
	}

	if text, _ := os.ReadFile("taken.json"); string(text) != "precious" {
		t.Errorf("got %q in the file, want what was there", text)
	}

	if got := run(t, migrating(m), "", append(args, "new.json")...); got.Code != 0 || !strings.Contains(got.Out, "new.json") {
		t.Errorf("got %+v, want it moved", got)
	}

	if got := run(t, migrating(m), "", "undo", "--record", "new.json", "-o", "json"); got.Code != 0 || !strings.Contains(got.Out, `"changed": true`) {
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

	u := undoFolder{now: func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 5, time.UTC) }}
	if got := u.nameOf(ObjectRef{Kind: "ClusterRole", Name: "system:a/b"}); got != "20260302T100000.000000005Z_clusterrole_system:a-b.json" {
		t.Errorf("got %s, want a name that is no path", got)
	}
}
