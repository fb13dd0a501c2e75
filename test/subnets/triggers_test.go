package subnets_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/test/cluster"
)

// lastLook is when the status of a pool was last checked.
func lastLook(t *testing.T, m *cluster.Manager, ns string) float64 {
	t.Helper()

	return m.Sum(t, fmt.Sprintf("subnetpool_parent_status_last_timestamp_seconds{name=\"p\",ns=%q}", ns))
}

// Each of the six events that make a pool be counted again does so by itself:
// nothing else happens to the pool during that time.
func TestTriggers(t *testing.T) {
	c := newClient(t)
	m := startAdmission(t, c)
	ns := cluster.Namespace(t, c)
	pool := newPool(ns, "p", "10.0.0.0/16")
	must(t, c.Create(t.Context(), pool))
	awaitStatus(t, c, pool, 0, map[string]int64{"24": 256})
	// Other output of kubectl, such as warnings of a slow server, is ignored.
	out, errs, code := server.Arbor(t, "kubectl", "get", "subnetpool", "p", "-n", ns, "-o", "jsonpath={.status.allocatedCount}/{.status.utilizationPercent}")
	if out != "0/0" || code != 0 {
		t.Errorf("an empty pool reports %q, not that it has nothing: %s", out, errs)
	}
	// A pool that nothing happens to.
	quiet := newPool(cluster.Namespace(t, c), "p", "10.0.0.0/16")
	must(t, c.Create(t.Context(), quiet))
	awaitStatus(t, c, quiet, 0, map[string]int64{"24": 256})
	delegated := func(n int64) {
		t.Helper()
		cluster.Eventually(t, "the parent counts its children", func() error {
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
			if pool.Status.DelegatedCount != 1 || pool.Status.AllocatableCountBySize["24"] != n {
				return fmt.Errorf("status is %+v", pool.Status)
			}

			return nil
		})
	}

	t.Run("1SubnetCreatedUpdatedDeleted", func(t *testing.T) {
		s := newSubnet(ns, "one", "10.0.0.0/24")
		must(t, c.Create(t.Context(), s))
		awaitStatus(t, c, pool, 1, map[string]int64{"24": 255})
		awaitSubnet(t, c, s, v1alpha1.SubnetAllocated)
		s.Status.Phase = v1alpha1.SubnetFailed // no client does that, but it is an update
		must(t, c.Status().Update(t.Context(), s))
		awaitStatus(t, c, pool, 0, map[string]int64{"24": 256})
		must(t, c.Delete(t.Context(), s))

		s = newSubnet(ns, "two", "10.0.0.0/24")
		must(t, c.Create(t.Context(), s))
		awaitStatus(t, c, pool, 1, map[string]int64{"24": 255})
		must(t, c.Delete(t.Context(), s))
		awaitStatus(t, c, pool, 0, map[string]int64{"24": 256})
		for _, kind := range []string{"create", "update", "delete"} {
			if n := m.Sum(t, fmt.Sprintf("subnetpool_parent_requeue_total{event_type=%q}", kind)); n < 1 {
				t.Errorf("%v %ss are counted", n, kind)
			}
		}
	})
	kid := child(ns, "kid", "10.0.0.0/17", "p")
	t.Run("3ChildPoolChanged", func(t *testing.T) {
		must(t, c.Create(t.Context(), kid))
		awaitStatus(t, c, kid, 0, map[string]int64{"24": 128})
		delegated(128)
		before := lastLook(t, m, ns)
		resize(t, c, kid, "10.0.0.0/18") // its block in the parent stays the same
		cluster.Eventually(t, "the parent is counted again", func() error {
			if now := lastLook(t, m, ns); now <= before {
				return fmt.Errorf("last at %f, before that at %f", now, before)
			}

			return nil
		})
		delegated(128)
	})
	t.Run("2ChildPoolDeleted", func(t *testing.T) {
		must(t, c.Delete(t.Context(), kid))
		cluster.Eventually(t, "what it had is free", func() error {
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
			if pool.Status.DelegatedCount != 0 || pool.Status.AllocatableCountBySize["24"] != 256 {
				return fmt.Errorf("status is %+v", pool.Status)
			}

			return nil
		})
	})
	t.Run("4OwnSpecChanged", func(t *testing.T) {
		resize(t, c, pool, "10.0.0.0/15")
		awaitStatus(t, c, pool, 0, map[string]int64{"24": 512})
	})
	t.Run("5External", func(t *testing.T) {
		before := lastLook(t, m, quiet.Namespace)
		call := newCaller(t, c, m)
		call.awaitRight(quiet.Namespace, call.token(quiet.Namespace, "subnetpools/recalculate"))
		cluster.Eventually(t, "it is checked", func() error {
			if now := lastLook(t, m, quiet.Namespace); now <= before {
				return fmt.Errorf("last at %f, before that at %f", now, before)
			}

			return nil
		})
	})
	t.Run("6FailedBefore", func(t *testing.T) {
		policy := forbidStatus(t, c, ns)
		must(t, c.Create(t.Context(), newSubnet(ns, "unseen", "10.0.0.0/24")))
		cluster.Eventually(t, "looks fail", func() error {
			if n := m.Sum(t, `subnetpool_parent_reconcile_duration_seconds_count{result="error"}`); n < 2 {
				return fmt.Errorf("%v failed", n)
			}

			return nil
		})
		must(t, c.Delete(t.Context(), policy))
		awaitStatus(t, c, pool, 1, map[string]int64{"24": 511})
	})
}

// forbidStatus keeps every client from writing the status of the pools of a namespace, and waits
// until it does.
func forbidStatus(t *testing.T, c client.Client, ns string) client.Object {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"subnetpools/status"},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "not now"}},
		},
	}
	must(t, c.Create(t.Context(), policy))
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        ns,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			},
		},
	}
	must(t, c.Create(t.Context(), binding))
	t.Cleanup(func() { _ = client.IgnoreNotFound(c.Delete(context.Background(), policy)) })
	cluster.Eventually(t, "statuses cannot be written", func() error {
		pool := newPool(ns, "p", "")
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)) // each time, since an old one is rejected for that
		if err := c.Status().Update(t.Context(), pool, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("they can: %w", err)
		}

		return nil
	})

	return binding
}

// A caller asks a manager over HTTPS.
type caller struct {
	t      *testing.T
	c      client.Client
	url    string
	client *http.Client
}

// newCaller trusts the authority that the manager keeps in the cluster.
func newCaller(t *testing.T, c client.Client, m *cluster.Manager) *caller {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "arbor-system", Name: names.WebhookSecret}, secret))
	roots := x509.NewCertPool()
	found := false
	for _, data := range secret.Data {
		found = roots.AppendCertsFromPEM(data) || found
	}
	if !found {
		t.Fatal("there is no certificate in the Secret")
	}

	return &caller{
		t: t, c: c, url: fmt.Sprintf("https://127.0.0.1:%d/recalculate", m.WebhookPort),
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
	}
}

// token is that of a new service account in a namespace, which may create a
// resource there, if one is given.
func (a *caller) token(ns, resource string) string {
	a.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "caller-"}}
	must(a.t, a.c.Create(a.t.Context(), account))
	if resource != "" {
		must(a.t, a.c.Create(a.t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account.Name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{resource}, Verbs: []string{"create"}}},
		}))
		must(a.t, a.c.Create(a.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account.Name}},
		}))
	}
	request := &authenticationv1.TokenRequest{}
	must(a.t, a.c.SubResource("token").Create(a.t.Context(), account, request))

	return request.Status.Token
}

func (a *caller) post(query, token string) (int, string) {
	a.t.Helper()

	return a.do(http.MethodPost, query, token)
}

// awaitRight asks for pool p until that is accepted: the API server hears of a new
// right a little later.
func (a *caller) awaitRight(ns, token string) {
	a.t.Helper()
	cluster.Eventually(a.t, "the right has arrived", func() error {
		if code, body := a.post("?namespace="+ns+"&pool=p", token); code != http.StatusAccepted {
			return fmt.Errorf("%d %s", code, body)
		}

		return nil
	})
}

func (a *caller) do(method, query, token string) (int, string) {
	a.t.Helper()
	code, body, err := a.try(method, query, token)
	must(a.t, err)

	return code, body
}

func (a *caller) try(method, query, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.url+query, bytes.NewReader(nil))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)

	return response.StatusCode, string(body), err
}

// A recalculation needs authentication and permission, and is rate-limited.
func TestRecalculate(t *testing.T) {
	c := newClient(t)
	m := startAdmission(t, c)
	ns, elsewhere := cluster.Namespace(t, c), cluster.Namespace(t, c)
	for i, name := range []string{"p", "q"} {
		must(t, c.Create(t.Context(), newPool(ns, name, fmt.Sprintf("10.%d.0.0/16", i))))
	}
	awaitStatus(t, c, newPool(ns, "q", ""), 0, nil) // then the manager knows both
	call := newCaller(t, c, m)
	good, poor := call.token(ns, "subnetpools/recalculate"), call.token(ns, "subnetpools")
	call.awaitRight(ns, good)

	cases := map[string]struct {
		reason, method, query, token string
		code                         int
		want                         string
	}{
		"One":         {"One pool.", "", "?namespace=" + ns + "&pool=p", good, http.StatusAccepted, ns + "/p"},
		"All":         {"All of a namespace.", "", "?namespace=" + ns, good, http.StatusAccepted, ns + "/q"},
		"NoToken":     {"A request without a token.", "", "?namespace=" + ns, "", http.StatusUnauthorized, "send a token"},
		"WrongToken":  {"A caller that the API server does not know.", "", "?namespace=" + ns, "wrong", http.StatusUnauthorized, "send a token"},
		"Forbidden":   {"A caller with another permission.", "", "?namespace=" + ns, poor, http.StatusForbidden, "may not create subnetpools/recalculate"},
		"Elsewhere":   {"A caller with the permission in another namespace.", "", "?namespace=" + elsewhere, good, http.StatusForbidden, elsewhere},
		"Unknown":     {"A pool that is not there.", "", "?namespace=" + ns + "&pool=none", good, http.StatusNotFound, "there is no SubnetPool " + ns + "/none"},
		"NoNamespace": {"Nothing named at all.", "", "", good, http.StatusBadRequest, "namespace is missing"},
		"Typing":      {"A parameter that does not exist.", "", "?namespace=" + ns + "&name=p", good, http.StatusBadRequest, `unknown parameter "name"`},
		"Method":      {"GET does not recalculate.", http.MethodGet, "?namespace=" + ns, good, http.StatusMethodNotAllowed, "only POST"},
		"Anonymous":   {"Nor is an anonymous request.", http.MethodGet, "?namespace=" + ns, "", http.StatusUnauthorized, ""},
		"UnknownPool": {"A caller without permission does not learn which pools exist.", "", "?namespace=" + elsewhere + "&pool=none", good, http.StatusForbidden, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodPost
			}
			code, body := call.do(tc.method, tc.query, tc.token)
			if code != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("%s\ngot  %d %s\nwant %d %s", tc.reason, code, body, tc.code, tc.want)
			}
			if queued := map[string][]string{}; code == http.StatusAccepted && json.Unmarshal([]byte(body), &queued) != nil {
				t.Errorf("%s\nit is not JSON: %s", tc.reason, body)
			}
		})
	}

	t.Run("TooOften", func(t *testing.T) {
		// Many at once: one after the other may be slow enough to be let through.
		const many = 30
		cluster.Eventually(t, "it is too often", func() error {
			var refused atomic.Bool
			err := inParallel(many, many, func(int) error {
				code, _, err := call.try(http.MethodPost, "?namespace="+ns, good)
				if code == http.StatusTooManyRequests {
					refused.Store(true)
				}

				return err
			})()
			if err == nil && !refused.Load() {
				return errors.New("all were accepted")
			}

			return err
		})
	})
}
