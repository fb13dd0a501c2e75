package manager_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/test/cluster"
)

// TestLargeRequests asks the webhook server for more than it should take in, as any client in the
// cluster can: the caller of a webhook is not asked for a token.
func TestLargeRequests(t *testing.T) {
	m := server.StartManager(t, "--controllers=podgroups")
	post := func(path string, header http.Header, body []byte) (code int, answer string) {
		t.Helper()
		// The server hangs up half a second after it has rejected what it did not read to
		// the end. Who is late then does not get the answer.
		cluster.Eventually(t, "there is an answer", func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d%s", m.WebhookPort, path), bytes.NewReader(body))
			must(t, err)
			request.Header = header
			response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			code, answer = response.StatusCode, string(text)

			return err
		})

		return code, answer
	}
	path, header := "/validate-scheduling-run-ai-v2alpha2-podgroup", http.Header{"Content-Type": {"application/json"}}
	if _, answer := post(path, header, make([]byte, 8<<20)); !strings.Contains(answer, "too large") {
		t.Errorf("8 MiB were read: %.200s", answer)
	}
	if _, answer := post(path, header, []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}`)); !strings.Contains(answer, "response") {
		t.Errorf("a small one is not answered: %.200s", answer)
	}
	foreign := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"%s","namespace":"%s","object":{"metadata":{"name":"a","namespace":"other"}}}}`
	for _, namespace := range []string{"", "default"} {
		if _, answer := post(path, header, fmt.Appendf(nil, foreign, "CREATE", namespace)); !strings.Contains(answer, `"code":400`) || !strings.Contains(answer, "namespace") {
			t.Errorf("an object of another namespace than %q: %.200s", namespace, answer)
		}
	}
	for i := range 20 {
		post(path, header, fmt.Appendf(nil, foreign, fmt.Sprintf("MADE-UP-%d", i), "other"))
	}
	if other := m.Sum(t, `arbor_admission_decisions_total{operation="other"}`); other < 20 {
		t.Errorf("%v decisions about other operations are counted", other)
	}
	all, err := m.Series("arbor_admission_decisions_total")
	must(t, err)
	for labels := range all {
		if strings.Contains(labels, "MADE-UP") {
			t.Errorf("there is a time series for %s", labels)
		}
	}
	if code, _ := post(path, http.Header{"X-Large": {strings.Repeat("x", 2<<20)}}, nil); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("2 MiB of headers are answered with %d", code)
	}
}

// TestMetricsProtocol : metrics need no HTTP/2. Webhooks do: a replica that ends tells the
// API server so by it.
func TestMetricsProtocol(t *testing.T) {
	m := server.StartManager(t, "--metrics-secure=true")
	for address, want := range map[string]string{m.Metrics: "http/1.1", fmt.Sprintf("127.0.0.1:%d", m.WebhookPort): "h2"} {
		cluster.Eventually(t, want+" is spoken", func() error {
			dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}}
			conn, err := dialer.DialContext(t.Context(), "tcp", address)
			if err != nil {
				return err
			}
			defer conn.Close()
			if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != want {
				return fmt.Errorf("%s speaks %q", address, got)
			}

			return nil
		})
	}
}

// tokenFor is a token of an account for another audience than the API server.
func tokenFor(t *testing.T, name, audience string) string {
	t.Helper()
	c := newClient(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	must(t, create(t, c, account))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	must(t, c.SubResource("token").Create(t.Context(), account, request))

	return request.Status.Token
}
