// Package tenants_test has two tenants, of whom one is hostile, on a real control plane with
// RBAC. Synthesis and delivery run together with --delivery-scope=namespace and the
// permissions of the chart. To add an attack, add a case to attacks.
package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	// deployer is the ServiceAccount that a tenant delivers as.
	deployer = "deployer"
	// neighbor is a namespace in which some tenants have permissions, too.
	neighbor = "neighbor"
	// unlisted is the namespace of a tenant that the manager may not impersonate.
	unlisted = "unlisted"
)

// namespaces are those of tenants, as in values.yaml, and two more.
var namespaces = []string{"victim", "hostile", "leaving", "doomed", "departed", neighbor, unlisted}

// flags are those of the manager.
var flags = []string{
	"--controllers=synthesis,delivery", "--webhooks=false", "--local-synthesizers", "--rollout-cooldown=0s",
	"--delivery-scope=namespace", "--forbidden-grace=3s", "--log-format=text", "--log-level=debug",
}

var (
	server   *cluster.Up
	manager  *cluster.Manager
	auditLog string
)

// A suite starts the manager before it runs the tests, and reads the audit log after them.
type suite struct{ *testing.M }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "arbor-tenants-")
	if err != nil {
		panic(err) // there is nothing to test with
	}
	auditLog = filepath.Join(dir, "audit.log")
	code := cluster.Main(suite{m}, &server, "--bare", "--nodes=0", "--audit-log="+auditLog)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Run runs the tests. Whatever they did, every write must have been sent as a tenant.
func (s suite) Run() int {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}
	code := s.M.Run()
	manager.Stop()
	problems, writes := auditWrites()
	if len(problems) > 0 {
		fmt.Fprintf(os.Stderr, "%s\n", strings.Join(problems, "\n"))
		code = max(code, 1)
	}
	fmt.Fprintf(os.Stderr, "%d writes of delivery carry the account of their tenant\n", writes)
	if code != 0 {
		fmt.Fprintf(os.Stderr, "--- arbor-manager\n%s\n", manager.Output())
	}

	return code
}

// start creates the tenants and starts the manager.
func start() error {
	c, err := server.NewClient(nil)
	if err != nil {
		return err
	}
	for _, name := range namespaces {
		if err := createTenant(context.Background(), c, name); err != nil {
			return err
		}
	}
	m, err := server.Manager(flags...)
	if err != nil {
		return err
	}
	manager = m

	return m.Await()
}

// createTenant creates a namespace with a ServiceAccount that may do everything with
// ConfigMaps and RoleBindings in it, and one that may do nothing.
func createTenant(ctx context.Context, c client.Client, name string) error {
	in := metav1.ObjectMeta{Namespace: name, Name: deployer}
	all := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ServiceAccount{ObjectMeta: in},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "powerless"}},
		&rbacv1.Role{ObjectMeta: in, Rules: everything},
		grant(name, deployer, name, deployer),
	}
	for _, o := range all {
		if err := c.Create(ctx, o); err != nil {
			return err
		}
	}

	return nil
}

// everything is what the deployers of tenants may do in their namespaces.
var everything = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
	{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"get", "create", "patch", "delete"}},
}

// grant gives a ServiceAccount the Role deployer of a namespace.
func grant(in, name, namespace, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: deployer},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A tenant is a namespace with compositions.
type tenant struct {
	testing.TB
	client.Client

	namespace string
}

func newTenant(t testing.TB, namespace string) *tenant {
	t.Helper()

	return &tenant{TB: t, Client: server.Client(t, nil), namespace: namespace}
}

// object reads YAML.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	o := map[string]any{}
	must(t, yaml.Unmarshal([]byte(text), &o))

	return o
}

// configMap is a manifest.
func configMap(namespace, name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s}, data: {value: %q}}", namespace, name, value)
}

// program creates or changes the Synthesizer of a composition.
func (x *tenant) program(name string, manifests ...string) *enov1.Synthesizer {
	x.Helper()
	items := make([]any, 0, len(manifests))
	for _, text := range manifests {
		items = append(items, object(x, text))
	}
	prints, err := json.Marshal(map[string]any{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items})
	must(x, err)
	o := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: x.namespace + "-" + name}}
	err = x.Get(x.Context(), client.ObjectKeyFromObject(o), o)
	must(x, client.IgnoreNotFound(err))
	o.Spec = enov1.SynthesizerSpec{Image: "none", Command: []string{"sh", "-c", `cat > /dev/null; printf %s "$0"`, string(prints)}}
	if err != nil {
		must(x, x.Create(x.Context(), o))
	} else {
		must(x, x.Update(x.Context(), o))
	}

	return o
}

// compose creates a composition of manifests that is delivered as a ServiceAccount.
func (x *tenant) compose(name, account string, manifests ...string) {
	x.Helper()
	p := x.program(name, manifests...)
	must(x, x.Create(x.Context(), &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: p.Name}, ServiceAccountName: account},
	}))
}

// change has a composition return other manifests, and waits for the synthesis.
func (x *tenant) change(name string, manifests ...string) {
	x.Helper()
	p := x.program(name, manifests...)
	x.await(name, "is synthesized again", func(c *enov1.Composition) bool {
		return c.Status.CurrentSynthesis != nil && c.Status.CurrentSynthesis.ObservedSynthesizerGeneration == p.Generation
	})
}

// await waits until a composition meets a condition.
func (x *tenant) await(name, what string, condition func(*enov1.Composition) bool) {
	x.Helper()
	c := &enov1.Composition{}
	cluster.Eventually(x, name+" "+what, func() error {
		*c = enov1.Composition{}
		if err := x.Get(x.Context(), client.ObjectKey{Namespace: x.namespace, Name: name}, c); err != nil {
			return err
		}
		if !condition(c) {
			return fmt.Errorf("simplified %+v, current %+v, conditions %+v", c.Status.Simplified, c.Status.CurrentSynthesis, c.Status.Conditions)
		}

		return nil
	})
}

// ready waits until a composition is ready and nothing is denied.
func (x *tenant) ready(name string) {
	x.Helper()
	x.await(name, "is ready", func(c *enov1.Composition) bool {
		return c.Status.Simplified != nil && c.Status.Simplified.Status == enov1.StatusReady && !meta.IsStatusConditionTrue(c.Status.Conditions, enov1.ConditionAccessDenied)
	})
}

// denied waits until the condition AccessDenied has a reason, and texts in its message.
func (x *tenant) denied(name, reason string, texts ...string) {
	x.Helper()
	x.await(name, "is denied access: "+reason, func(c *enov1.Composition) bool {
		found := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionAccessDenied)

		return found != nil && found.Status == metav1.ConditionTrue && found.Reason == reason &&
			!slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(found.Message, text) })
	})
}

// delete deletes a composition.
func (x *tenant) delete(name string) {
	x.Helper()
	must(x, x.Delete(x.Context(), &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}}))
}

// merge changes a composition.
func (x *tenant) merge(name, patch string) {
	x.Helper()
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}}
	must(x, x.Patch(x.Context(), c, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// gone waits until an object is gone.
func gone(t testing.TB, c client.Client, o client.Object) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("it exists: %+v", o), err)
		}

		return nil
	})
}

// remove deletes a composition and waits until it is gone.
func (x *tenant) remove(name string) {
	x.Helper()
	x.delete(name)
	gone(x, x.Client, &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}})
}

// config returns a ConfigMap, nil if it does not exist.
func (x *tenant) config(name string) *corev1.ConfigMap {
	x.Helper()
	o := &corev1.ConfigMap{}
	err := x.Get(x.Context(), client.ObjectKey{Namespace: x.namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(x, err)

	return o
}

// delivered waits until a ConfigMap exists.
func (x *tenant) delivered(name string) {
	x.Helper()
	cluster.Eventually(x, "ConfigMap "+name+" is delivered", func() error {
		if x.config(name) == nil {
			return errors.New("it does not exist")
		}

		return nil
	})
}

// read returns an object of a manifest, nil if it does not exist.
func (x *tenant) read(manifest string) *unstructured.Unstructured {
	x.Helper()
	o := &unstructured.Unstructured{Object: object(x, manifest)}
	err := x.Get(x.Context(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(x, err)

	return o
}
