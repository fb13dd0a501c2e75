package chart_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// tokenOf asks for a token of a service account.
func tokenOf(t *testing.T, account client.Object) string {
	t.Helper()
	token, err := server.Token(t.Context(), cluster.Account{Namespace: account.GetNamespace(), Name: account.GetName()})
	must(t, err)

	return token
}

// scrape reads the metrics.
func scrape(t *testing.T, address, token string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	// The certificate of the metrics is self-signed.
	response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}

	return nil
}
