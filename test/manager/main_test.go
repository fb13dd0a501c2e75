// Package manager_test tests arbor-manager as a process on a real API server: its flags, its
// endpoints, the objects that it installs and those that it does not change.
package manager_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

func newClient(t *testing.T) client.Client {
	t.Helper()

	return server.Client(t, nil)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBadFlags(t *testing.T) {
	binary, err := cluster.Binary("arbor-manager", "ARBOR_MANAGER")
	must(t, err)

	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"UnknownController": {"A typo must not silently run nothing.", []string{"--controllers=podgroup"}, `Error: --controllers: unknown controller "podgroup"; known are podgroups`},
		"NoController":      {"Running nothing is a mistake.", []string{"--controllers="}, "Error: --controllers is empty"},
		"PlainMetrics":      {"Metrics on all addresses need TLS and authorization.", []string{"--metrics-secure=false", "--metrics-bind-address=:8080"}, `Error: --metrics-bind-address ":8080": metrics without TLS`},
		"CRDs":              {"There are two ways to treat CRDs.", []string{"--crds=maybe"}, `Error: --crds "maybe": it must be install or check`},
		"LogLevel":          {"Levels have names.", []string{"--log-level=loud"}, `Error: --log-level "loud": it must be debug, info, warn or error`},
		"ShortLife":         {"A certificate that expires at once is useless.", []string{"--webhook-ca-lifetime=1s"}, "Error: --webhook-ca-lifetime 1s: it must be at least 10s"},
		"CertDir":           {"A directory without a certificate is named.", []string{"--webhook-cert-dir=/nowhere"}, `Error: --webhook-cert-dir "/nowhere": it must have a certificate in tls.crt and its key in tls.key: open /nowhere/tls.crt`},
		"NoKubeconfig":      {"A missing file is named.", []string{"--kubeconfig=/nowhere/config"}, "Error: cannot find a cluster: stat /nowhere/config: no such file or directory"},
		"UnknownFlag":       {"Flags that do not exist are rejected.", []string{"--frobnicate"}, "Error: unknown flag: --frobnicate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := cluster.StartProcess(binary, tc.args...)
			must(t, err)
			if code := p.ExitCode(); code != 1 {
				t.Errorf("%s\nexit code %d, want 1", tc.reason, code)
			}
			if got := p.Output(); !strings.HasPrefix(got, tc.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("%s\ngot  %q\nwant one line that begins with %q", tc.reason, got, tc.want)
			}
		})
	}
}

// The metrics endpoint asks the API server for the identity of the caller, and whether they may
// look.
func TestMetricsAreGuarded(t *testing.T) {
	c := newClient(t)
	m := server.StartManager(t, "--metrics-secure=true")
	allowed, stranger := newToken(t, c, "allowed"), newToken(t, c, "stranger")
	must(t, create(t, c, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}))
	must(t, create(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "allowed"}},
	}))

	cases := map[string]struct {
		reason string
		token  string
		want   int
	}{
		"NoToken":    {"A request without a token is rejected.", "", http.StatusUnauthorized},
		"WrongToken": {"A made-up token is not valid.", "made-up", http.StatusUnauthorized},
		"Audience":   {"A token for another audience is not accepted.", tokenFor(t, "allowed", "somebody-else"), http.StatusUnauthorized},
		"Stranger":   {"A known account without the right may not look.", stranger, http.StatusForbidden},
		"Allowed":    {"An account with the right may.", allowed, http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster.Eventually(t, tc.reason, func() error {
				code, _, err := scrape(t.Context(), "https://"+m.Metrics+"/metrics", tc.token)
				if err != nil {
					return err
				}
				if code != tc.want {
					return fmt.Errorf("status %d, want %d", code, tc.want)
				}

				return nil
			})
		})
	}
}

// Decisions and their time are counted.
func TestMetrics(t *testing.T) {
	c := newClient(t)
	m := server.StartManager(t)
	try := func(name string) error {
		return c.Create(t.Context(), &v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "metrics"},
			Spec:       v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: name}}},
		}, client.DryRunAll)
	}
	// The API server asks it a little later than when it is ready. Until then no webhook is called,
	// or one that is gone, and nothing is counted.
	cluster.Eventually(t, "a bad one is denied", func() error {
		if err := try("Bad"); err == nil || !strings.Contains(err.Error(), "denied the request") {
			return errors.Join(errors.New("it is not"), err)
		}

		return nil
	})
	must(t, try("good"))
	// It is ready before it serves metrics, and before all its controllers run.
	cluster.Eventually(t, "everything is counted", func() error {
		code, body, err := scrape(t.Context(), "http://"+m.Metrics+"/metrics", "")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("status %d: %w", code, err)
		}
		for _, want := range []string{
			`arbor_admission_decisions_total{decision="allowed",kind="PodGroup",operation="CREATE",reason=""} 1`,
			`arbor_admission_decisions_total{decision="denied",kind="PodGroup",operation="CREATE",reason="SubGroupNameNotLowercase"} 1`,
			`arbor_admission_duration_seconds_count{kind="PodGroup"} 2`,
			`controller_runtime_reconcile_total{controller="podgroup-validity"`,
		} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("there is no %s", want)
			}
		}

		return nil
	})
}

// One replica leads; when it is killed another takes over, and webhooks are
// served by all of them all the time.
func TestLeaderElection(t *testing.T) {
	c := newClient(t)
	forgetLease(t, c)
	a := server.StartManager(t, "--leader-elect=true")
	first := awaitHolder(t, c, "")
	server.StartManager(t, "--leader-elect=true") // ready, though it does not lead
	if now := awaitHolder(t, c, ""); now != first {
		t.Errorf("the lead went from %s to %s without need", first, now)
	}
	a.Stop() // a manager that ends well gives the lead away
	if second := awaitHolder(t, c, first); second == "" {
		t.Error("no replica leads")
	}
}

func forgetLease(t *testing.T, c client.Client) {
	t.Helper()
	must(t, client.IgnoreNotFound(c.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "arbor-system", Name: "arbor-manager"}})))
}

func awaitHolder(t *testing.T, c client.Client, not string) string {
	t.Helper()
	var holder string
	cluster.Eventually(t, "a replica leads", func() error {
		lease := &coordinationv1.Lease{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "arbor-system", Name: "arbor-manager"}, lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == not {
			return errors.New("no other replica does")
		}
		holder = *lease.Spec.HolderIdentity

		return nil
	})

	return holder
}

// A CRD of another installation is used if it fits, rejected if it does not, and changed never.
func TestCRDsOfAnotherInstallation(t *testing.T) {
	c := newClient(t)
	defer removeDefinition(t, c) // the last case's may fit nobody
	fits := func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Annotations = map[string]string{"installed-by": "somebody"}
		delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "status")
	}

	cases := map[string]struct {
		reason string
		change func(*apiextensionsv1.CustomResourceDefinition)
		args   []string
		want   string // "" means that it runs
	}{
		"Fits":       {"Another installation's CRD serves us too.", fits, nil, ""},
		"FitsCheck":  {"Checking finds the same.", fits, []string{"--crds=check"}, ""},
		"NoVersion":  {"Without our version there is nothing to work on.", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Name = "v1" }, nil, "does not serve version v2alpha2"},
		"NoStatus":   {"Without a status the condition has no place.", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources = nil }, nil, "has no status in version v2alpha2"},
		"NotThere":   {"With check, nothing is installed.", nil, []string{"--crds=check"}, "is not installed: install it, or run with --crds=install"},
		"OursIsKept": {"Without any, ours is installed.", nil, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			removeDefinition(t, c)
			var before string
			if tc.change != nil {
				crd, _ := crds.ByKind(v2alpha2.GroupVersion.Group, v2alpha2.PodGroupKind)
				tc.change(crd)
				must(t, c.Create(t.Context(), crd))
				cluster.Eventually(t, "it is served", func() error {
					must(t, c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
					for _, cond := range crd.Status.Conditions {
						if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
							return nil
						}
					}

					return errors.New("not yet")
				})
				before = strconv.FormatInt(crd.Generation, 10)
			}
			if tc.want == "" {
				server.StartManager(t, tc.args...)
			} else if m := server.LaunchManager(t, tc.args...); m.ExitCode() != 1 || !strings.Contains(m.Output(), tc.want) {
				t.Errorf("%s\nexit code %d, output %s", tc.reason, m.ExitCode(), m.Output())
			}
			if tc.change != nil {
				after := definition()
				must(t, c.Get(t.Context(), client.ObjectKeyFromObject(after), after))
				if got := strconv.FormatInt(after.Generation, 10); got != before || len(after.Labels) > 0 {
					t.Errorf("%s\nsomebody else's definition was changed: generation %s, then %s; labels %v", tc.reason, before, got, after.Labels)
				}
			}
		})
	}
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "podgroups.scheduling.run.ai"}}
}

func removeDefinition(t *testing.T, c client.Client) {
	t.Helper()
	must(t, client.IgnoreNotFound(c.Delete(t.Context(), definition())))
	cluster.Eventually(t, "the CRD is gone", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(definition()), definition()); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}

		return nil
	})
}

func newToken(t *testing.T, c client.Client, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	must(t, create(t, c, account))
	request := &authenticationv1.TokenRequest{}
	must(t, c.SubResource("token").Create(t.Context(), account, request))

	return request.Status.Token
}

func create(t *testing.T, c client.Client, o client.Object) error {
	t.Helper()
	err := c.Create(t.Context(), o)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}

	return err
}

func scrape(ctx context.Context, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate of the metrics is signed by nobody; who scrapes in a
	// cluster configures one. This is about who may read them.
	response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)

	return response.StatusCode, string(body), err
}
