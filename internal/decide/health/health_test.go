package health_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/internal/pki"
)

var (
	now       = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	errDenied = errors.New("forbidden")
)

const (
	life = 24 * time.Hour
	hook = "trees.arbor"
)

func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "trees.arbor", Labels: map[string]string{"app.kubernetes.io/managed-by": "arbor"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Description: "this"}},
		}}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{
			Conditions:     []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}},
			StoredVersions: []string{"v1"},
		},
	}
}

// authority is one that was made some time ago.
func authority(t *testing.T, age time.Duration) []byte {
	t.Helper()
	ca, err := pki.NewCA("arbor", now.Add(-age), life)
	if err != nil {
		t.Fatal(err)
	}

	return ca.CertPEM()
}

// well is a cluster in which everything is as it should be.
func well(t *testing.T) health.Facts {
	t.Helper()
	cert := authority(t, time.Hour)
	holder, seconds, renewed, replicas := "one", int32(15), metav1.NewMicroTime(now.Add(-2*time.Second)), int32(2)
	f := health.Facts{
		Namespace: "arbor-system",
		Parts: []health.Part{
			{Name: "trees", Definitions: []*apiextensionsv1.CustomResourceDefinition{definition()}, Webhooks: []string{hook}},
			{Name: "bushes", Definitions: []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: "bushes.arbor"}}}},
		},
		Backlog: []health.Backlog{{Kind: "SubnetClaim", Total: 7}},
	}
	f.Server.Is = version.MustParseGeneric("v1.36.3")
	f.Definitions.Is = map[string]*apiextensionsv1.CustomResourceDefinition{"trees.arbor": definition()}
	f.Deployment.Is = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "arbor-system", Name: "arbor"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status:     appsv1.DeploymentStatus{AvailableReplicas: 2, UpdatedReplicas: 2},
	}
	args(&f, "--controllers=trees")
	f.Lease.Is = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	f.Webhooks.Is = &admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: hook, ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: cert}}},
	}
	f.Secret.Is = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "arbor-system", Name: "ca"}, Data: map[string][]byte{"ca.crt": cert}}
	f.Answers.Is = map[string]string{hook: ""}

	return f
}

func TestWell(t *testing.T) {
	got := health.Examine(well(t), now)
	want := []health.Check{
		{About: "Kubernetes", State: health.OK, Message: "v1.36.3"},
		{About: "manager", Object: "arbor-system/arbor", State: health.OK, Message: "2 of 2 replicas are available, running trees"},
		{About: "leader", Object: "arbor-system/arbor-manager", State: health.OK, Message: "one, renewed 2s ago"},
		{About: "definition", Object: "trees.arbor", State: health.OK, Message: "it is served, with the schema of this release"},
		{About: "webhook", Object: hook, State: health.OK, Message: "it is registered, and refuses what it should"},
		{About: "certificates", Object: "arbor-system/ca", State: health.OK, Message: "the authority lives for another 23h"},
		{About: "rights", State: health.OK, Message: "the manager may do what its parts need"},
		{About: "backlog", Object: "SubnetClaim", State: health.OK, Message: "7, and none waits"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := health.Summary(got); got != "all 8 checks are ok" {
		t.Errorf("summary: %s", got)
	}
}

// Each case breaks one thing in a healthy cluster, and one check reports it.
func TestExamine(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(*health.Facts)
		about  string
		state  health.State
		says   string
	}{
		"OldServer": {"It lacks something.", func(f *health.Facts) { f.Server.Is = version.MustParseGeneric("1.29.4") }, "Kubernetes", health.Problem, "v1.29.4"},
		"NoReplica": {"It was scaled away.", func(f *health.Facts) {
			*f.Deployment.Is.Spec.Replicas = 0
			f.Deployment.Is.Status.AvailableReplicas = 0
		}, "manager", health.Problem, "0 of 0"},
		"NoneAvailable":  {"All crash.", func(f *health.Facts) { f.Deployment.Is.Status.AvailableReplicas = 0 }, "manager", health.Problem, "0 of 2"},
		"OneAvailable":   {"One crashes.", func(f *health.Facts) { f.Deployment.Is.Status.AvailableReplicas = 1 }, "manager", health.Warning, "1 of 2"},
		"NotRolledOut":   {"An upgrade hangs.", func(f *health.Facts) { f.Deployment.Is.Status.UpdatedReplicas = 1 }, "manager", health.Warning, "not all of them"},
		"OtherPart":      {"All parts run unless somebody says otherwise, and the kind of one is not there.", func(f *health.Facts) { args(f) }, "definition", health.Problem, "bushes needs it"},
		"DeniedManager":  {"One may not look.", func(f *health.Facts) { f.Deployment.Err = errDenied }, "manager", health.Unknown, "forbidden"},
		"NoLease":        {"Nobody ever led.", func(f *health.Facts) { f.Lease.Is, f.Answers.Is = nil, nil }, "leader", health.Warning, "no manager has led"},
		"NoElection":     {"Who answers runs, and needs no Lease.", func(f *health.Facts) { f.Lease.Is = nil }, "leader", health.OK, "without leader election"},
		"NoLeader":       {"It went and said so.", func(f *health.Facts) { *f.Lease.Is.Spec.HolderIdentity = "" }, "leader", health.Problem, "no manager leads, and nothing is reconciled"},
		"DeadLeader":     {"It went and said nothing.", func(f *health.Facts) { f.Lease.Is.Spec.RenewTime.Time = now.Add(-time.Hour) }, "leader", health.Problem, "renewed 1h ago: it is gone"},
		"NotEstablished": {"The kind is not served.", func(f *health.Facts) { have(f).Status.Conditions = nil }, "definition", health.Problem, "not served"},
		"NoVersion":      {"It is of another age.", func(f *health.Facts) { have(f).Spec.Versions[0].Name = "v0" }, "definition", health.Problem, "version v1 is not served"},
		"StoredVersion":  {"A downgrade could not read them.", func(f *health.Facts) { have(f).Status.StoredVersions = []string{"v1", "v2"} }, "definition", health.Warning, "version v2"},
		"OldSchema":      {"The manager is of another release.", func(f *health.Facts) { have(f).Spec.Versions[0].Schema = nil }, "definition", health.Warning, "not that of this release"},
		"Theirs":         {"Somebody else's is none of our business.", func(f *health.Facts) { have(f).Labels = nil; have(f).Spec.Versions[0].Schema = nil }, "definition", health.OK, "somebody else installed it"},
		"Unregistered":   {"Bad trees get in.", func(f *health.Facts) { f.Webhooks.Is = nil }, "webhook", health.Problem, "not registered"},
		"NoBundle":       {"The API server trusts nobody.", func(f *health.Facts) { f.Webhooks.Is.Webhooks[0].ClientConfig.CABundle = []byte("x") }, "webhook", health.Problem, "trusts no certificate"},
		"Accepts":        {"It lets pass what it must not.", func(f *health.Facts) { f.Answers.Is[hook] = "accepted" }, "webhook", health.Problem, "accepted"},
		"MayNotTry":      {"One may not even try.", func(f *health.Facts) { f.Answers.Err = errDenied }, "webhook", health.Unknown, "forbidden"},
		"NoSecret":       {"cert-manager has it, or it is nowhere to be seen.", func(f *health.Facts) { f.Secret.Is.Data = nil }, "certificates", health.Problem, "not a certificate"},
		"Rights":         {"The chart was not upgraded.", func(f *health.Facts) { f.Lacking.Is = []string{"list trees.arbor", "watch trees.arbor"} }, "rights", health.Problem, "may not list trees.arbor, nor watch trees.arbor"},
		"WaitsShortly":   {"That happens.", func(f *health.Facts) { waits(f, time.Minute) }, "backlog", health.OK, "2 of 7 wait, net/a for 1m: pool is full"},
		"WaitsLong":      {"Somebody should look.", func(f *health.Facts) { waits(f, time.Hour) }, "backlog", health.Warning, "2 of 7 wait, net/a for 1h: pool is full"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := well(t)
			tc.do(&f)
			all := health.Examine(f, now)
			found := false
			for _, c := range all {
				if c.About == tc.about && c.State == tc.state && strings.Contains(c.Message, tc.says) {
					found = true
				}
				if (c.Fix == "") != (c.State == health.OK) {
					t.Errorf("%s\n%+v: whatever is not ok says what to do, and nothing else does", tc.reason, c)
				}
			}
			if !found || health.Worst(all) != tc.state {
				t.Errorf("%s\nworst is %s: %+v", tc.reason, health.Worst(all), all)
			}
		})
	}
}

func have(f *health.Facts) *apiextensionsv1.CustomResourceDefinition {
	return f.Definitions.Is["trees.arbor"]
}

func args(f *health.Facts, args ...string) {
	f.Deployment.Is.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
}

func waits(f *health.Facts, age time.Duration) {
	f.Backlog = []health.Backlog{{Kind: "SubnetClaim", Total: 7, Waiting: 2, Oldest: now.Add(-age), First: "net/a", Why: "pool is full"}}
}

// The life of an authority: it is replaced after two thirds, if a manager runs.
func TestAuthority(t *testing.T) {
	for age, want := range map[time.Duration]health.State{
		0: health.OK, life * 2 / 3: health.OK, life * 4 / 5: health.Warning, life + time.Minute: health.Problem,
	} {
		f := well(t)
		f.Secret.Is.Data["ca.crt"] = authority(t, age)
		if got := health.Worst(health.Examine(f, now)); got != want {
			t.Errorf("after %s it is %s, want %s", age, got, want)
		}
	}
}

// Outside of a cluster there is no Deployment, and what runs is derived from the kinds.
func TestOutside(t *testing.T) {
	f := well(t)
	f.Deployment.Is = nil
	all := health.Examine(f, now)
	if health.Worst(all) != health.OK || !strings.Contains(all[1].Message, "the kinds of trees") {
		t.Errorf("%+v", all)
	}
	f.Definitions.Is = nil
	if all = health.Examine(f, now); all[1].State != health.Problem || !strings.Contains(all[1].Fix, "install Arbor") {
		t.Errorf("%+v", all)
	}
}

func TestWaits(t *testing.T) {
	object := func(name, status, since string) map[string]any {
		o := map[string]any{"metadata": map[string]any{"namespace": "net", "name": name, "creationTimestamp": "2026-05-04T10:00:00Z"}}
		if status != "" {
			o["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": "Other", "status": "False"},
				map[string]any{"type": "Ready", "status": status, "message": "because of " + name, "lastTransitionTime": since},
			}}
		}

		return o
	}
	got := health.Waits("SubnetClaim", "Ready", []map[string]any{
		object("well", "True", "2026-05-04T09:00:00Z"), object("late", "False", "2026-05-04T11:00:00Z"),
		object("unseen", "", ""), object("early", "Unknown", "2026-05-04T08:00:00Z"),
		{"status": "broken"},
	})
	want := health.Backlog{Kind: "SubnetClaim", Total: 5, Waiting: 4, First: "net/early", Why: "because of early", Oldest: time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)}
	got.Oldest = got.Oldest.UTC()
	// The broken one has no time at all, and so the first.
	if got.Waiting != want.Waiting || got.Total != want.Total {
		t.Errorf("got %+v", got)
	}
	got = health.Waits("SubnetClaim", "Ready", []map[string]any{object("late", "False", "2026-05-04T11:00:00Z"), object("unseen", "", ""), object("early", "Unknown", "2026-05-04T08:00:00Z")})
	got.Oldest = got.Oldest.UTC()
	want.Total, want.Waiting = 3, 3
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
