package chart_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	tenantUser   = "tenant"
	operatorUser = "operator"
	allUser      = "user-of-all"
	backupUser   = "system:serviceaccount:velero:velero"

	// inFlight and elsewhere are syntheses of two compositions.
	inFlight  = "11111111-1111-4111-8111-111111111111"
	elsewhere = "22222222-2222-4222-8222-222222222222"
)

// A town has a tenant that may do everything in its namespace, an operator that may do everything
// with Arbor's kinds, and Arbor with its policies.
type town struct {
	*stage

	t     *testing.T
	users map[string]client.Client
}

// impersonated is a client of a user.
func impersonated(t *testing.T, c client.Client, user string, extra map[string][]string) client.Client {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}, Extra: extra}
	config.WarningHandler = rest.NoWarnings{}
	as, err := client.New(config, client.Options{Scheme: c.Scheme()})
	must(t, err)

	return as
}

func newTown(t *testing.T, name string, values ...string) *town {
	t.Helper()
	c := server.Client(t, nil)
	purge(t, c)
	r := install(t, c, name, only("synthesis", append([]string{
		"delivery.enabled=true", "synthesis.pods.enabled=true", "crds.manage=helm", "policies.extraWriters[0]=" + backupUser,
	}, values...)...)...)
	w := &town{stage: &stage{Client: c, release: r, namespace: cluster.Namespace(t, c)}, t: t, users: map[string]client.Client{"admin": c}}
	w.users["manager"] = impersonated(t, c, "system:serviceaccount:"+name+":"+name+"-manager", nil)
	for _, user := range []string{tenantUser, operatorUser, allUser, backupUser} {
		w.users[user] = impersonated(t, c, user, nil)
	}
	w.users["publisher"] = w.publisher(name, "own-"+inFlight)
	w.users["stranger"] = w.publisher(name, "other-"+elsewhere)
	w.users["tokenless"] = impersonated(t, c, publisherOf(name), nil)
	w.grant("everything", []rbacv1.PolicyRule{{APIGroups: []string{"eno.azure.io"}, Resources: []string{"*"}, Verbs: []string{"*"}}})
	w.bind("everything", "", operatorUser, backupUser)
	w.bind("everything", w.namespace, tenantUser, allUser)

	return w
}

func publisherOf(release string) string {
	return "system:serviceaccount:" + release + "-synthesizers:" + release + "-synthesizer"
}

// publisher is a client with the account of a synthesizer pod.
func (w *town) publisher(release, pod string) client.Client {
	w.t.Helper()

	return impersonated(w.t, w.Client, publisherOf(release), map[string][]string{"authentication.kubernetes.io/pod-name": {pod}})
}

// grant makes a ClusterRole.
func (w *town) grant(name string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}, Rules: rules}
	must(w.t, w.Create(w.t.Context(), role))
	w.t.Cleanup(func() { _ = w.Delete((&lasting{w.t}).Context(), role) })
}

// bind binds a ClusterRole to users, in a namespace or everywhere.
func (w *town) bind(role, namespace string, users ...string) {
	w.t.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.namespace + "-" + role}
	var subjects []rbacv1.Subject
	for _, name := range users {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role}, RoleRef: ref, Subjects: subjects}
	if namespace == "" {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + role}, RoleRef: ref, Subjects: subjects}
	}
	must(w.t, w.Create(w.t.Context(), binding))
	w.t.Cleanup(func() { _ = w.Delete((&lasting{w.t}).Context(), binding) })
}

// use grants a user the use of Synthesizers; of all without names.
func (w *town) use(role, user string, names ...string) {
	w.t.Helper()
	w.grant(role, []rbacv1.PolicyRule{{APIGroups: []string{"eno.azure.io"}, Resources: []string{"synthesizers"}, Verbs: []string{"use"}, ResourceNames: names}})
	w.bind(role, "", user)
}

// An attempt is what a user does, and why it is denied, if it is.
type attempt struct {
	reason, user string
	do           func(client.Client) error
	denied       string
}

// try makes attempts, until all of them have their results at once: the API server reads policies
// and roles some time after they were made.
func (w *town) try(t *testing.T, all map[string]attempt) {
	t.Helper()
	cluster.Eventually(t, "all attempts have their results", func() error {
		var failed error
		for _, name := range slices.Sorted(maps.Keys(all)) {
			a := all[name]
			switch err := a.do(w.users[a.user]); {
			case a.denied == "" && err == nil, a.denied != "" && apierrors.IsForbidden(err) && strings.Contains(err.Error(), a.denied):
			default:
				failed = errors.Join(failed, fmt.Errorf("%s (%s): it must be denied with %q, and the answer is: %w", name, a.reason, a.denied, cmp.Or(err, errAllowed)))
			}
		}

		return failed
	})
}

var errAllowed = errors.New("it is allowed")

func (w *town) slice(name, uuid string) *enov1.ResourceSlice {
	return &enov1.ResourceSlice{ObjectMeta: w.meta(name), Spec: enov1.ResourceSliceSpec{SynthesisUUID: uuid, Resources: []enov1.Manifest{{Manifest: "{}"}}}}
}

func (w *town) composition(name, synthesizer string) *enov1.Composition {
	return &enov1.Composition{ObjectMeta: w.meta(name), Spec: enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: synthesizer}}}
}

func (w *town) symphony(name string, synthesizers ...string) *enov1.Symphony {
	s := &enov1.Symphony{ObjectMeta: w.meta(name)}
	for _, one := range synthesizers {
		s.Spec.Variations = append(s.Spec.Variations, enov1.Variation{Synthesizer: enov1.SynthesizerRef{Name: one}})
	}

	return s
}

// creates and changes try a write.
func (w *town) creates(o client.Object) func(client.Client) error {
	return func(as client.Client) error {
		return as.Create(w.t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

func (w *town) changes(o client.Object, patch string) func(client.Client) error {
	return func(as client.Client) error {
		return as.Patch(w.t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}

func (w *town) reports(o client.Object, patch string) func(client.Client) error {
	return func(as client.Client) error {
		return as.Status().Patch(w.t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)), &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	}
}

// updates replaces a status, as the manager and the pods of syntheses do.
func (w *town) updates(c *enov1.Composition, change func(*enov1.CompositionStatus)) func(client.Client) error {
	return func(as client.Client) error {
		now := &enov1.Composition{}
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(c), now); err != nil {
			return err
		}
		change(&now.Status)

		return as.Status().Update(w.t.Context(), now, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})
	}
}

// TestPolicies tries everything that the policies allow and deny, with RBAC that allows all of it.
func TestPolicies(t *testing.T) {
	w := newTown(t, "arbor-policies", "policies.action=Deny")
	// The CRD rejects changes of the spec before the policy is asked. That of Eno does not.
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "resourceslices.eno.azure.io"}}
	must(t, w.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"}]`))))
	slice, theirs := w.slice("slice", inFlight), w.composition("theirs", "forbidden")
	w.create(t, slice)
	w.create(t, theirs)
	symphony := w.symphony("song", "forbidden")
	w.create(t, symphony)
	many := w.symphony("many")
	for i := range 2_000 {
		many.Spec.Variations = append(many.Spec.Variations, enov1.Variation{Synthesizer: enov1.SynthesizerRef{Name: fmt.Sprintf("forbidden-%d", i)}})
	}
	w.create(t, many)
	program := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: enov1.SynthesizerSpec{Image: "i"}}
	w.create(t, program)
	own := w.composition("own", "allowed")
	w.create(t, own)
	own.Status.InFlightSynthesis = &enov1.Synthesis{UUID: inFlight}
	own.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "0"}
	must(t, w.Client.Status().Update(t.Context(), own))

	few := []string{"allowed"}
	for i := range 25 {
		few = append(few, fmt.Sprintf("allowed-%d", i))
	}
	w.use("few", tenantUser, few...)
	w.use("all", allUser)

	const spec, status, use = "ResourceSlices are written by Arbor only", "this status is written by Arbor only", `may not use Synthesizer "forbidden"`
	attempts := map[string]attempt{
		"Slices/Create":        {"A tenant has anything applied.", tenantUser, w.creates(w.slice("new", inFlight)), spec},
		"Slices/Spec":          {"A tenant has anything applied.", tenantUser, w.changes(slice, `{"spec":{"resources":[]}}`), spec},
		"Slices/NoSpec":        {"Without a spec, another one could be written.", tenantUser, w.changes(slice, `{"spec":null}`), spec},
		"Slices/Metadata":      {"RBAC alone decides about metadata.", tenantUser, w.changes(slice, `{"metadata":{"labels":{"a":"b"},"finalizers":["a.example.com/b"]}}`), ""},
		"Slices/Delete":        {"RBAC alone decides about deletions, and a lost slice heals.", tenantUser, func(as client.Client) error { return as.Delete(t.Context(), slice.DeepCopy(), client.DryRunAll) }, ""},
		"Slices/Operator":      {"RBAC for everything does not exempt.", operatorUser, w.creates(w.slice("new", inFlight)), spec},
		"Slices/Administrator": {"Members of system:masters are exempt.", "admin", w.creates(w.slice("new", inFlight)), ""},
		"Slices/Manager":       {"The manager writes slices.", "manager", w.creates(w.slice("new", inFlight)), ""},
		"Slices/Backup":        {"A backup tool restores slices.", backupUser, w.creates(w.slice("new", inFlight)), ""},
		"Status/Composition":   {"The status names the slices that are applied.", tenantUser, w.reports(own, `{"status":{"currentSynthesis":{"uuid":"x"}}}`), status},
		"Status/Slice":         {"The status decides which objects are deleted.", tenantUser, w.reports(slice, `{"status":{"resources":[{"reconciled":true}]}}`), status},
		"Status/Symphony":      {"Other tools wait for it.", tenantUser, w.reports(symphony, `{"status":{"observedGeneration":7}}`), status},
		"Status/Synthesizer":   {"It halts rollouts.", operatorUser, w.reports(program, `{"status":{"conditions":[]}}`), status},
		"Status/Manager":       {"The manager writes statuses.", "manager", w.updates(own, func(s *enov1.CompositionStatus) { s.CurrentSynthesis.UUID = "x" }), ""},
		"Status/Backup":        {"A backup tool may restore statuses.", backupUser, w.reports(own, `{"status":{"currentSynthesis":{"uuid":"x"}}}`), ""},
		"Use/Create":           {"The Synthesizer's output has the permissions of delivery.", tenantUser, w.creates(w.composition("new", "forbidden")), use},
		"Use/Allowed":          {"It may be used.", tenantUser, w.creates(w.composition("new", "allowed")), ""},
		"Use/None":             {"Nothing is used.", tenantUser, w.creates(w.composition("new", "")), ""},
		"Use/Change":           {"It is another one.", tenantUser, w.changes(own, `{"spec":{"synthesizer":{"name":"forbidden"}}}`), use},
		"Use/ChangeBack":       {"It is one that may be used.", tenantUser, w.changes(theirs, `{"spec":{"synthesizer":{"name":"allowed"}}}`), ""},
		"Use/Account":          {"The output is delivered with other permissions.", tenantUser, w.changes(theirs, `{"spec":{"serviceAccountName":"other"}}`), use},
		"Use/OwnAccount":       {"It may be used.", tenantUser, w.changes(own, `{"spec":{"serviceAccountName":"other"}}`), ""},
		"Use/Unrelated":        {"Nothing changes about who uses what.", tenantUser, w.changes(theirs, `{"metadata":{"labels":{"a":"b"}},"spec":{"synthesisEnv":[{"name":"A"}]}}`), ""},
		"Use/Manager":          {"The manager makes Compositions of Symphonies.", "manager", w.creates(w.composition("new", "forbidden")), ""},
		"Use/Backup":           {"A backup tool restores Compositions.", backupUser, w.creates(w.composition("new", "forbidden")), ""},
		"Symphonies/Create":    {"Each variation uses a Synthesizer.", tenantUser, w.creates(w.symphony("new", "allowed", "forbidden", "allowed-1")), use},
		"Symphonies/Allowed":   {"All of them may be used.", tenantUser, w.creates(w.symphony("new", few[:3]...)), ""},
		"Symphonies/Twenty":    {"So many can be checked.", tenantUser, w.creates(w.symphony("new", few[:20]...)), ""},
		"Symphonies/LastOf20":  {"Also the last one is checked.", tenantUser, w.creates(w.symphony("new", append(slices.Clone(few[:19]), "forbidden")...)), use},
		"Symphonies/TooMany":   {"The API server cannot check more.", tenantUser, w.creates(w.symphony("new", few[:21]...)), "at most 20 variations can be checked at once"},
		"Symphonies/All":       {"One check is enough.", allUser, w.creates(w.symphony("new", append(slices.Clone(few), "forbidden")...)), ""},
		"Symphonies/Unrelated": {"Nothing changes about who uses what.", tenantUser, w.changes(symphony, `{"metadata":{"labels":{"a":"b"}},"spec":{"synthesisEnv":[{"name":"A"}]}}`), ""},
		"Symphonies/Many":      {"Variations that do not change are not compared, which would cost too much.", tenantUser, w.changes(many, `{"metadata":{"labels":{"a":"b"}}}`), ""},
		"Symphonies/Add":       {"Only the new one is checked.", tenantUser, w.changes(symphony, `{"spec":{"variations":[{"synthesizer":{"name":"forbidden"}},{"synthesizer":{"name":"allowed"}}]}}`), ""},
		"Symphonies/Account":   {"The output is delivered with other permissions.", tenantUser, w.changes(symphony, `{"spec":{"variations":[{"synthesizer":{"name":"forbidden"},"serviceAccountName":"other"}]}}`), use},
		"Symphonies/Manager":   {"The manager adds its finalizer.", "manager", w.changes(symphony, `{"metadata":{"finalizers":["eno.azure.io/cleanup"]}}`), ""},
	}
	maps.Copy(attempts, w.ofPublisher(own))
	w.try(t, attempts)
}

// ofPublisher are attempts of the account of synthesizer pods.
func (w *town) ofPublisher(own *enov1.Composition) map[string]attempt {
	const only = "may write only the ResourceSlices and the Composition of its own synthesis"
	promote := func(s *enov1.CompositionStatus) {
		s.PreviousSynthesis, s.CurrentSynthesis, s.InFlightSynthesis = s.CurrentSynthesis, s.InFlightSynthesis, nil
	}
	now := metav1.Now()
	fail := func(s *enov1.CompositionStatus) { s.InFlightSynthesis.Canceled = &now }

	return map[string]attempt{
		"Publisher/Slice":         {"It is of the synthesis of the pod.", "publisher", w.creates(w.slice("new", inFlight)), ""},
		"Publisher/Promote":       {"The synthesis of the pod becomes the current one.", "publisher", w.updates(own, promote), ""},
		"Publisher/Fail":          {"The synthesis of the pod is given up.", "publisher", w.updates(own, fail), ""},
		"Publisher/ForeignSlice":  {"It is of another synthesis.", "stranger", w.creates(w.slice("new", inFlight)), only},
		"Publisher/PartOfUUID":    {"The name of the pod ends with it, but it is no uuid.", "publisher", w.creates(w.slice("new", "111111111111")), only},
		"Publisher/NoSynthesis":   {"It is of no synthesis.", "publisher", w.creates(w.slice("new", "")), only},
		"Publisher/ForeignStatus": {"The pod is of another Composition.", "stranger", w.updates(own, promote), only},
		"Publisher/NoPod":         {"The token is of no pod.", "tokenless", w.creates(w.slice("new", inFlight)), only},
		"Publisher/Begin":         {"The manager begins syntheses.", "publisher", w.updates(own, func(s *enov1.CompositionStatus) { s.InFlightSynthesis.UUID = elsewhere }), "may not begin another synthesis"},
		"Publisher/Other":         {"It is another synthesis.", "publisher", w.updates(own, func(s *enov1.CompositionStatus) { s.CurrentSynthesis.UUID = elsewhere }), "may not promote another synthesis"},
		"Publisher/Replace": {"The current synthesis has other slices.", "publisher", w.updates(own, func(s *enov1.CompositionStatus) {
			s.CurrentSynthesis.ResourceSlices = []*enov1.ResourceSliceRef{{Name: "x"}}
		}), "may not promote another synthesis"},
		"Publisher/Drop": {"There would be no current synthesis.", "publisher", w.updates(own, func(s *enov1.CompositionStatus) { s.CurrentSynthesis = nil }), "may not promote another synthesis"},
	}
}

// TestPoliciesWarn has the default action: users are warned, and Arbor's own account is restricted.
func TestPoliciesWarn(t *testing.T) {
	w := newTown(t, "arbor-warned")
	warnings := &warned{}
	config := rest.CopyConfig(server.Config)
	config.Impersonate, config.WarningHandler = rest.ImpersonationConfig{UserName: tenantUser, Groups: []string{"system:authenticated"}}, warnings
	tenant, err := client.New(config, client.Options{Scheme: w.Scheme()})
	must(t, err)
	cluster.Eventually(t, "a tenant is warned", func() error {
		if err := w.creates(w.slice("new", inFlight))(tenant); err != nil {
			return err
		}
		if text := strings.Join(warnings.texts, "\n"); !strings.Contains(text, "ResourceSlices are written by Arbor only") {
			return fmt.Errorf("the warnings are %q", text)
		}

		return nil
	})

	// The token of a pod reports which pod it is of.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.release.name + "-synthesizers", Name: "own-" + inFlight}, Spec: corev1.PodSpec{
		ServiceAccountName: w.release.name + "-synthesizer", AutomountServiceAccountToken: new(false),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers:      []corev1.Container{{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
	}}
	w.create(t, pod)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	must(t, w.SubResource("token").Create(t.Context(), account, request))
	config = rest.AnonymousClientConfig(server.Config)
	config.BearerToken = request.Status.Token
	w.users["pod"], err = client.New(config, client.Options{Scheme: w.Scheme()})
	must(t, err)
	w.try(t, map[string]attempt{
		"Own":     {"It is of the synthesis of the pod.", "pod", w.creates(w.slice("new", inFlight)), ""},
		"Foreign": {"It is of another synthesis.", "pod", w.creates(w.slice("new", elsewhere)), `synthesizer pod "own-` + inFlight + `" may write only`},
	})
}

// warned keeps warnings of the API server.
type warned struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warned) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// TestUserRoles binds users to Kubernetes' own roles in a namespace. They read Arbor's kinds, and
// never ResourceSlices.
func TestUserRoles(t *testing.T) {
	c := server.Client(t, nil)
	purge(t, c)
	install(t, c, "arbor-roles", all("crds.manage=helm", "webhooks.enabled=false", "rbac.aggregateTo=edit", "policies.enabled=false")...)
	namespace := cluster.Namespace(t, c)
	for _, role := range []string{"view", "edit"} {
		must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "user-" + role}},
		}))
	}
	for _, role := range []string{"view", "edit"} {
		as := impersonated(t, c, "user-"+role, nil)
		cluster.Eventually(t, role+" reads compositions", func() error {
			return errors.Join(as.List(t.Context(), &enov1.CompositionList{}, client.InNamespace(namespace)), as.List(t.Context(), &enov1.SymphonyList{}, client.InNamespace(namespace)))
		})
		if err := as.List(t.Context(), &enov1.ResourceSliceList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("%s reads ResourceSlices: %v", role, err)
		}
		err := as.Create(t.Context(), &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}, client.DryRunAll)
		if apierrors.IsForbidden(err) != (role == "view") {
			t.Errorf("%s creates Compositions: %v", role, err)
		}
	}
}
