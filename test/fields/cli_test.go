package fields_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/test/cluster"
)

// A prompt is where a person types commands about one namespace.
type prompt struct {
	*world

	records string
}

func newPrompt(t *testing.T) *prompt {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)

	return &prompt{world: newWorld(t), records: filepath.Join(home, "arbor", "undo")}
}

// fields runs a command in a process of its own, and expects it to end with a
// code. Output on stderr comes after that on stdout.
func (p *prompt) fields(code int, args ...string) string {
	p.Helper()
	stdout, stderr, got := server.Arbor(p.T, append([]string{"fields", "-n", p.ns}, args...)...)
	if got != code {
		p.Fatalf("arbor fields %v ended with %d, want %d:\n%s%s", args, got, code, stdout, stderr)
	}

	return stdout + stderr
}

// says expects texts in what a command wrote.
func (p *prompt) says(out string, texts ...string) {
	p.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			p.Errorf("it does not contain %q:\n%s", text, out)
		}
	}
}

// files are those of the records, by their endings.
func (p *prompt) files() []string {
	p.Helper()
	all, err := os.ReadDir(p.records)
	if err != nil && !os.IsNotExist(err) {
		p.Fatal(err)
	}
	endings := []string{}
	for _, f := range all {
		_, ending, _ := strings.Cut(f.Name(), "Z.")
		endings = append(endings, ending)
	}

	return endings
}

func (p *prompt) expectFiles(want ...string) {
	p.Helper()
	if got := p.files(); !slices.Equal(got, want) {
		p.Errorf("records: got %q, want %q", got, want)
	}
}

// save writes a manifest to a file.
func (p *prompt) save(text string) string {
	p.Helper()
	path := filepath.Join(p.TempDir(), "desired.yaml")
	must(p.T, os.WriteFile(path, []byte(text), 0o600))

	return path
}

func TestCommandsMoveAndPutBack(t *testing.T) {
	p := newPrompt(t)
	before := p.seed()
	migrate := []string{"migrate", "deploy/web", "--to", eno} // the scope is that of its kind

	p.says(p.fields(0, "plan", "deploy/web", "--to", eno), "would move to eno", "base-os-bash")
	p.says(p.fields(0, append(migrate, "--dry-run")...), "would move", "nothing was written")
	p.unchanged(before)
	p.expectFiles()

	p.says(p.fields(0, migrate...), "moved", legacy, "to put it back: arbor fields undo --record")
	p.expectFiles("jsonl")
	moved := p.get(before)
	if diff := cmp.Diff(content(before), content(moved)); diff != "" {
		t.Errorf("moving ownership changed the object (-before +after):\n%s", diff)
	}
	p.says(p.fields(0, "check", "deploy/web", "--scope", initContainers+"[name=base-os-bash]", "--manager", eno), "yes")

	p.says(p.fields(0, migrate...), "unchanged")
	p.unchanged(moved)
	p.expectFiles("jsonl")

	p.says(p.fields(0, "undo", "--last", "--dry-run"), "would be put back", "nothing was written")
	p.unchanged(moved)
	p.says(p.fields(0, "undo", "--last"), "1 object changed")
	p.expectFiles("jsonl.undone")
	if now := p.entries(p.get(before)); !fields.Equal(p.entries(before), now) {
		t.Errorf("ownership is not as before:\n%s", cmp.Diff(p.held(before), p.held(p.get(before))))
	}
	p.says(p.fields(2, "undo", "--last"), "nothing was migrated that is not undone")

	p.fields(0, migrate...)
	_, err := p.apply(eno, p.object(dropped))
	must(t, err)
	if got := names(p.get(before), initContainers); !slices.Equal(got, []string{"other"}) {
		t.Errorf("init containers: got %v, want the one that no manager dropped", got)
	}
	p.says(p.fields(0, "undo", "--last"), "cannot get", "the object no longer has them")
}

func TestCommandsBySelector(t *testing.T) {
	p := newPrompt(t)
	before := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"a", "b", "c"} {
		rename := func(text string) string { return strings.ReplaceAll(text, "name: web,", "name: "+name+",") }
		o := p.create(legacy, rename(web))
		p.mustApply(eno, strings.Replace(named, "name: web", "name: "+name, 1))
		before[name] = p.get(o)
	}
	p.merge("kubectl", before["c"], "metadata: {labels: {team: b}}")
	before["c"] = p.get(before["c"])

	p.says(p.fields(2, "migrate", "deploy", "--to", eno), "cannot migrate every deploy without being told so")
	p.says(p.fields(0, "migrate", "deploy", "-l", "team=a", "--scope", initContainers, "--to", eno), "2 objects changed, 0 unchanged, 0 failed")
	p.unchanged(before["c"])
	p.expectFiles("jsonl")

	// Somebody deletes one of them, which is no reason to leave the other.
	must(t, p.c.Delete(t.Context(), before["a"]))
	p.says(p.fields(0, "undo", "--last"), "1 object changed, 1 unchanged, 0 failed", "it is no longer there")
	if now := p.get(before["b"]); !fields.Equal(p.entries(before["b"]), p.entries(now)) {
		t.Errorf("ownership is not as before:\n%s", cmp.Diff(p.held(before["b"]), p.held(now)))
	}

	// Another object of the same name is not the one that was migrated.
	p.fields(0, "migrate", "deploy/b", "--to", eno)
	must(t, p.c.Delete(t.Context(), before["b"]))
	again := p.create(legacy, strings.ReplaceAll(web, "name: web,", "name: b,"))
	p.says(p.fields(1, "undo", "--last"), "is not the object that the record is about", "1 failed")
	p.unchanged(again)
	p.expectFiles("jsonl.undone", "jsonl")
}

func TestCommandApplies(t *testing.T) {
	t.Run("AllOfIt", func(t *testing.T) {
		p := newPrompt(t)
		before := p.seed()
		desired := p.save(dropped)

		p.says(p.fields(0, "migrate", "deploy/web", "--to", eno, "--desired", desired), "changed")
		if got := names(p.get(before), initContainers); len(got) != 2 {
			t.Errorf("init containers: got %v, want none to be gone before the apply", got)
		}
		p.fields(0, "undo", "--last")

		p.says(p.fields(0, "migrate", "deploy/web", "--to", eno, "--desired", desired, "--apply"), "moved and applied")
		now := p.get(before)
		if got := names(now, initContainers); !slices.Equal(got, []string{"other"}) {
			t.Errorf("init containers: got %v, want the one that no manager dropped", got)
		}
		if n, _, _ := unstructured.NestedInt64(now.Object, "spec", "replicas"); n != 4 {
			t.Errorf("got %d replicas, want those from before", n)
		}
	})
	t.Run("OrNothing", func(t *testing.T) {
		p := newPrompt(t)
		before := p.seed()
		desired := p.save(strings.Replace(dropped, "labels: {by: eno}", `labels: {by: "e n o"}`, 1))

		p.says(p.fields(1, "migrate", "deploy/web", "--to", eno, "--desired", desired, "--apply"), "metadata.labels", "1 failed")
		if now := p.get(before); !fields.Equal(p.entries(before), p.entries(now)) {
			t.Errorf("ownership is not as before:\n%s", cmp.Diff(p.held(before), p.held(now)))
		}
		p.expectFiles()
	})
}

// A user with read permissions gets an error, and changes nothing.
func TestCommandsWithoutPermissions(t *testing.T) {
	p := newPrompt(t)
	before := p.seed()
	const reader = "reader"
	p.allow(reader, "get", "list")
	migrate := []string{"migrate", "deploy/web", "--to", eno, "--as", reader}

	p.fields(0, "plan", "deploy/web", "--to", eno, "--as", reader)
	for _, args := range [][]string{migrate, append(migrate, "--dry-run")} {
		p.says(p.fields(1, args...), "changed nothing", "is forbidden", `User "reader" cannot patch resource "deployments"`, "1 failed")
		p.unchanged(before)
		p.expectFiles()
	}
	p.says(p.fields(2, "migrate", "deploy/web", "--to", eno, "--as", "stranger"), `User "stranger" cannot get resource "deployments"`)

	// A permission that is removed between the migration and its undoing.
	p.fields(0, "migrate", "deploy/web", "--to", eno)
	moved := p.get(before)
	p.says(p.fields(1, "undo", "--last", "--as", reader), "cannot patch")
	p.unchanged(moved)
	p.expectFiles("jsonl")

	// And get and patch are enough.
	p.allow("writer", "get", "patch")
	p.says(p.fields(0, "undo", "--last", "--as", "writer"), "1 object changed")
	p.says(p.fields(0, "migrate", "deploy/web", "--to", eno, "--as", "writer"), "1 object changed")
}

// allow gives a user permissions to the deployments of the namespace.
func (p *prompt) allow(user string, verbs ...string) {
	p.Helper()
	meta := metav1.ObjectMeta{Namespace: p.ns, Name: user}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		must(p.T, p.c.Create(p.Context(), o))
	}
	// The API server hears of a right a little later.
	for _, verb := range verbs {
		cluster.Eventually(p.T, user+" may "+verb, func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.ns, Group: "apps", Resource: "deployments", Verb: verb},
			}}
			if err := p.c.Create(p.Context(), review); err != nil {
				return err
			}
			if !review.Status.Allowed {
				return errors.New("not yet")
			}

			return nil
		})
	}
}

// Whatever has managed fields can be moved by command, known to Arbor or not.
func TestCommandsOnAnyKind(t *testing.T) {
	p := newPrompt(t)
	o := p.create(legacy, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: one, b: two}}")
	p.mustApply(eno, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: one}}")

	p.says(p.fields(0, "migrate", "cm/c", "--to", eno), "unchanged", "no part of a ConfigMap is moved by default: name one with --scope")
	p.says(p.fields(0, "migrate", "cm/c", "--to", eno, "--scope", "data.z"), "unchanged", "it has no data.z")
	p.says(p.fields(0, "migrate", "cm/c", "--to", eno, "--scope", "data"), "1 object changed")
	p.mustApply(eno, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}")
	data, _, _ := unstructured.NestedStringMap(p.get(o).Object, "data")
	if diff := cmp.Diff(map[string]string{"b": "two"}, data); diff != "" {
		t.Errorf("eno removes what it had, and no more (-want +got):\n%s", diff)
	}
	must(t, p.c.Delete(t.Context(), o))
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	p.says(p.fields(2, "migrate", "cm/c", "--to", eno, "--scope", "data"), `"c" not found`)
}
