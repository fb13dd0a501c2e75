package podgroups_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	critical = "system-node-critical"
	// author may do everything in the namespace of a test, user may write
	// PodGroups there and use classes.
	author, user = "author", "user"
)

// as returns a client of a user.
func as(t *testing.T, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: newClient(t, nil).Scheme()})
	must(t, err)

	return c
}

// permit grants a user a rule: in one namespace, or in all if it is empty.
func permit(t *testing.T, c client.Client, namespace, name string, rule rbacv1.PolicyRule) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}}
	meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: "guard-"}
	if namespace != "" {
		role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}
		must(t, c.Create(t.Context(), role))
		must(t, c.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}))

		return
	}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects}
	must(t, c.Create(t.Context(), role))
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	must(t, c.Create(t.Context(), binding))
	for _, o := range []client.Object{role, binding} {
		t.Cleanup(func() { must(t, c.Delete(context.WithoutCancel(t.Context()), o)) })
	}
}

// prepare makes a namespace in which author may do everything, and user may
// write PodGroups and use the given classes.
func prepare(t *testing.T, c client.Client, classes ...string) string {
	t.Helper()
	ns := cluster.Namespace(t, c)
	permit(t, c, ns, author, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	permit(t, c, ns, user, rbacv1.PolicyRule{APIGroups: []string{v2alpha2.GroupVersion.Group}, Resources: []string{"podgroups"}, Verbs: []string{"*"}})
	permit(t, c, "", user, rbacv1.PolicyRule{APIGroups: []string{schedulingv1.GroupName}, Resources: []string{"priorityclasses"}, ResourceNames: classes, Verbs: []string{"use"}})
	for _, name := range []string{author, user} {
		cluster.Eventually(t, name+" may write PodGroups", func() error {
			return as(t, name).Create(t.Context(), group(ns, "probe", sub("a")), client.DryRunAll)
		})
	}

	return ns
}

func withClass(ns, class string) *v2alpha2.PodGroup {
	pg := group(ns, "g", sub("a"))
	pg.Spec.PriorityClassName = class

	return pg
}

func TestPriorityClassGuard(t *testing.T) {
	c := newClient(t, nil)
	for _, name := range []string{"guarded", "open"} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 7}
		must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), class)))
	}
	server.StartManager(t, podGroupsOnly, "--webhooks=false").Stop() // installs the CRD
	unregister(t, c)
	ns := prepare(t, c, critical, "guarded")

	cases := map[string]struct {
		reason string
		guard  []string
		// may is whether a user may name a class.
		may map[string]bool
	}{
		"Default": {
			reason: "System classes need the permission to use them, and a Role with wildcards in a namespace is none.",
			may: map[string]bool{
				author + " " + critical: false, author + " system-cluster-critical": false, author + " open": true,
				user + " " + critical: true, user + " system-cluster-critical": false, user + " open": true,
			},
		},
		"All": {
			reason: "Every class needs the permission.", guard: []string{"--priority-class-guard=all"},
			may: map[string]bool{
				author + " " + critical: false, author + " guarded": false, author + " ": true,
				user + " " + critical: true, user + " guarded": true, user + " open": false,
			},
		},
		"Off": {
			reason: "No class does.", guard: []string{"--priority-class-guard=off"},
			may: map[string]bool{author + " " + critical: true, author + " open": true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			startManager(t, tc.guard...)
			for who, may := range tc.may {
				name, class, _ := strings.Cut(who, " ")
				cluster.Eventually(t, "the permission is known: "+who, func() error {
					err := as(t, name).Create(t.Context(), withClass(ns, class), client.DryRunAll)
					switch {
					case may:
						return err
					case err == nil:
						t.Fatalf("%s\n%s was admitted", tc.reason, who)
					case !apierrors.IsForbidden(err):
						return err // such as of a webhook that did not answer in time
					case verdict(t, err) != forbidden(ns, "g", name, class):
						t.Fatalf("%s\n%s was answered with: %v", tc.reason, who, err)
					}

					return nil
				})
			}
		})
	}
}

func forbidden(ns, name, user, class string) string {
	return fmt.Sprintf("PodGroup %s/%s: spec.priorityClassName: user %q is not allowed to use PriorityClass %q; to allow it, bind a ClusterRole with the rule "+
		"{apiGroups: [scheduling.k8s.io], resources: [priorityclasses], resourceNames: [%s], verbs: [use]} to that user with a ClusterRoleBinding, or name another class",
		ns, name, user, class, class)
}

// The guard is about the change of the class, not about the group that has one.
func TestPriorityClassGuardOnUpdate(t *testing.T) {
	startManager(t)
	c := newClient(t, nil)
	ns := prepare(t, c, critical)
	pg := withClass(ns, critical)
	cluster.Eventually(t, "the permission is known", func() error {
		return client.IgnoreAlreadyExists(as(t, user).Create(t.Context(), pg.DeepCopy()))
	})

	steps := []struct {
		reason string
		change func(*v2alpha2.PodGroup)
		want   string
	}{
		{"Another user may change other fields.", func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = new(int32(1)) }, ""},
		{"And labels.", func(pg *v2alpha2.PodGroup) { pg.Labels = map[string]string{"a": "b"} }, ""},
		{"But not name another system class.", func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "system-cluster-critical" }, forbidden(ns, "g", author, "system-cluster-critical")},
		{"Every user may remove the class.", func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "" }, ""},
		{"And then not take it back.", func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = critical }, forbidden(ns, "g", author, critical)},
	}
	for _, s := range steps {
		if got := verdict(t, update(t, as(t, author), pg, s.change)); got != s.want {
			t.Errorf("%s\ngot  %q\nwant %q", s.reason, got, s.want)
		}
	}
}

// If the permission to use a class cannot be checked, the group is rejected, and clients repeat the
// request.
func TestPriorityClassGuardFailsClosed(t *testing.T) {
	startManager(t).MayBeRefused()
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)
	for _, name := range []string{"arbor-podgroups", "arbor-manager"} {
		role := &rbacv1.ClusterRole{}
		must(t, c.Get(t.Context(), client.ObjectKey{Name: name}, role))
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "subjectaccessreviews") })
		must(t, c.Update(t.Context(), role))
	}
	grant := func() {
		_, err := server.Grant(context.WithoutCancel(t.Context()), podGroupsOnly)
		must(t, err)
	}
	t.Cleanup(grant)

	cluster.Eventually(t, "the review fails", func() error {
		code, retryAfter, status := post(t, withClass(ns, critical))
		if code == http.StatusCreated {
			return errors.New("it was created") // the API server does not apply the rules at once
		}
		if code != http.StatusServiceUnavailable {
			return fmt.Errorf("it was answered with %d: %s", code, status.Message) // such as of a webhook that did not answer in time
		}
		if status.Reason != metav1.StatusReasonServiceUnavailable || retryAfter != "1" {
			t.Errorf("it was answered with %d, reason %s, Retry-After %q", code, status.Reason, retryAfter)
		}
		if want := "cannot decide about PodGroup " + ns + "/g, try again: cannot review whether user "; !strings.HasPrefix(status.Message, denied+want) {
			t.Errorf("it was answered with %q, want %q", status.Message, want)
		}

		return nil
	})
	grant()
	if err := c.Create(t.Context(), withClass(ns, critical), client.DryRunAll); err != nil {
		t.Errorf("a client that repeats the request is rejected: %v", err)
	}
}

// post creates a PodGroup as a dry run, and does not repeat the request.
func post(t *testing.T, pg *v2alpha2.PodGroup) (code int, retryAfter string, status metav1.Status) {
	t.Helper()
	pg.SetGroupVersionKind(v2alpha2.GroupVersion.WithKind(v2alpha2.PodGroupKind))
	body, err := json.Marshal(pg)
	must(t, err)
	c, err := rest.HTTPClientFor(server.Config)
	must(t, err)
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/podgroups?dryRun=All", server.Config.Host, v2alpha2.GroupVersion, pg.Namespace)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	must(t, err)
	defer response.Body.Close()
	must(t, json.NewDecoder(response.Body).Decode(&status))

	return response.StatusCode, response.Header.Get("Retry-After"), status
}

// What is accepted and cannot work as written is told as warnings, in kubectl too.
func TestWarningsOfFields(t *testing.T) {
	startManager(t)
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)
	const manifest = `
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: g}
spec:
  minMember: 1
  queue: gpu
  priorityClassName: missing
  markUnschedulable: true
  topologyConstraint: {topology: dc, requiredTopologyLevel: rack}
`
	file := filepath.Join(t.TempDir(), "g.yaml")
	must(t, os.WriteFile(file, []byte(manifest), 0o600))
	warnings := []string{
		`spec.topologyConstraint.requiredTopologyLevel: "rack" cannot be kept, so no pod of the group is placed (TopologyNotSupported)`,
		`spec.queue: "gpu" has no effect`,
		`spec.markUnschedulable: true has no effect`,
	}
	const missing = `spec.priorityClassName: PriorityClass "missing" does not exist, so the group has the lowest priority of its pods; create the class or correct the name`

	_, said, code := arbor(t, "kubectl", "apply", "-n", ns, "-f", file)
	for _, w := range append(warnings, missing) {
		if !strings.Contains(said, "Warning: "+w) || code != 0 {
			t.Errorf("kubectl apply ends with %d and does not print the warning %s:\n%s", code, w, said)
		}
	}
	out, _, code := arbor(t, "lint", "-f", file)
	for _, w := range warnings {
		if !strings.Contains(out, "warning: PodGroup g: "+w) || code != 0 {
			t.Errorf("lint ends with %d and does not print the warning %s:\n%s", code, w, out)
		}
	}

	_, said, _ = arbor(t, "kubectl", "label", "pg", "-n", ns, "g", "a=b")
	if strings.Contains(said, "Warning") {
		t.Errorf("a change of something else repeats the warnings:\n%s", said)
	}
	must(t, c.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: ns}, Value: 7}))
	patch := fmt.Sprintf(`{"spec":{"priorityClassName":%q}}`, ns)
	_, said, code = arbor(t, "kubectl", "patch", "pg", "-n", ns, "g", "--type=merge", "-p", patch)
	if strings.Contains(said, "Warning") || code != 0 {
		t.Errorf("a class that exists ends with %d:\n%s", code, said)
	}
}
