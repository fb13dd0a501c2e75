package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
)

// reviews counts what the API server is asked. It knows one token.
type reviews struct {
	asked int
	fail  error
}

func (r *reviews) AuthenticateRequest(request *http.Request) (*authenticator.Response, bool, error) {
	r.asked++
	switch {
	case r.fail != nil:
		return nil, false, r.fail
	case !strings.HasSuffix(strings.TrimSpace(request.Header.Get("Authorization")), "earer good"):
		return nil, false, errors.New("invalid bearer token")
	}

	return &authenticator.Response{User: &user.DefaultInfo{Name: "prometheus"}}, true, nil
}

func TestThrottle(t *testing.T) {
	server := &reviews{}
	gate := &Gate{who: newThrottle(server), may: authorizerfactory.NewAlwaysAllowAuthorizer()}
	served := gate.Protect(logr.Discard(), http.NotFoundHandler(), func(_ *http.Request, u user.Info) (authorizer.Attributes, error) {
		return authorizer.AttributesRecord{User: u}, nil
	})
	ask := func(host, token string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.RemoteAddr = host + ":4321"
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)

		return w.Code
	}

	if code := ask("10.0.0.1", ""); code != http.StatusUnauthorized || server.asked != 0 {
		t.Errorf("without a token: %d after %d reviews", code, server.asked)
	}
	if code := ask("10.0.0.1", "good"); code != http.StatusNotFound {
		t.Errorf("a valid token: %d", code)
	}
	for range 100 {
		if code := ask("10.0.0.2", "bad"); code != http.StatusUnauthorized {
			t.Fatalf("an invalid token: %d", code)
		}
	}
	if server.asked != 2 {
		t.Errorf("%d reviews of a valid token and of one that is sent again and again", server.asked)
	}
	codes := map[int]int{}
	for i := range 1000 {
		codes[ask("10.0.0.2", fmt.Sprintf("made-up-%d", i))]++
	}
	if server.asked > 2+2*reviewBurstByHost || codes[http.StatusTooManyRequests] < 900 {
		t.Errorf("%d reviews of 1000 made-up tokens: %v", server.asked, codes)
	}
	if code := ask("10.0.0.3", "new"); code != http.StatusUnauthorized {
		t.Errorf("a token from another address: %d", code)
	}
	for i := range 1000 {
		ask(fmt.Sprintf("10.1.%d.%d", i/200, i%200), fmt.Sprintf("many-%d", i))
	}
	if server.asked > 2*reviewBurst+2*reviewBurstByHost {
		t.Errorf("%d reviews of made-up tokens from many addresses", server.asked)
	}
	if code := ask("10.0.0.2", "good"); code != http.StatusNotFound {
		t.Errorf("a valid token that is known, among many that are not: %d", code)
	}
}

// An API server that does not answer has not rejected the token.
func TestThrottleUnreachable(t *testing.T) {
	away := apierrors.NewServiceUnavailable("away")
	cases := map[string]struct {
		reason string
		fail   error
	}{
		"Status":    {"The API server answers with an error.", away},
		"Aggregate": {"The authenticator of Kubernetes collects errors.", utilerrors.NewAggregate([]error{away})},
		"Canceled":  {"The caller has gone.", utilerrors.NewAggregate([]error{context.Canceled})},
		"Network":   {"The connection is refused.", utilerrors.NewAggregate([]error{&net.OpError{Op: "dial", Err: errors.New("refused")}})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &reviews{fail: tc.fail}
			gate := newThrottle(server)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			r.Header.Set("Authorization", "Bearer good")
			if _, _, err := gate.AuthenticateRequest(r); err == nil {
				t.Error("no error")
			}
			server.fail = nil
			if _, ok, err := gate.AuthenticateRequest(r); !ok || err != nil {
				t.Errorf("%s It is back: %t, %v", tc.reason, ok, err)
			}
		})
	}
}

func TestThrottleSchemes(t *testing.T) {
	cases := map[string]struct {
		reason, header string
		ok             bool
		asked          int
	}{
		"Usual":   {"As most clients write it.", "Bearer good", true, 1},
		"Lower":   {"The case of a scheme does not matter.", "bearer good", true, 1},
		"Spaces":  {"Spaces around it are no part of it.", "  Bearer good ", true, 1},
		"Invalid": {"The API server decides.", "bearer bad", false, 1},
		"Basic":   {"There is no token.", "Basic Z29vZA==", false, 0},
		"Nothing": {"There is none here, too.", "Bearer ", false, 0},
		"Scheme":  {"Or here.", "Bearergood", false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &reviews{}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			r.Header.Set("Authorization", tc.header)
			_, ok, _ := newThrottle(server).AuthenticateRequest(r) // the error is the server's
			if ok != tc.ok || server.asked != tc.asked {
				t.Errorf("%s\n%t after %d reviews, want %t after %d", tc.reason, ok, server.asked, tc.ok, tc.asked)
			}
		})
	}
}
