package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// ErrNoUser is the error of a request that was not sent because its context names no user.
var ErrNoUser = errors.New("there is no user to send it as")

// userKey is the key of the user in a context.
type userKey struct{}

// AsUser returns a context whose requests are sent as a user by a client with Impersonate.
func AsUser(ctx context.Context, username string) context.Context {
	return context.WithValue(ctx, userKey{}, username)
}

// Impersonate returns a RoundTripper that sends every request as the user of its context, and
// no request without one. Use it with rest.Config.Wrap, and make the http.Client of the
// config: client-go drops Impersonate of a config silently if a client is made from an
// http.Client that exists.
//
// It sends no groups. The API server adds those of a ServiceAccount itself; a client that
// sends groups needs the permission to impersonate groups, too, which is always cluster-wide.
func Impersonate(next http.RoundTripper) http.RoundTripper { return &impersonator{next} }

type impersonator struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i *impersonator) RoundTrip(r *http.Request) (*http.Response, error) {
	user, _ := r.Context().Value(userKey{}).(string)
	if user == "" {
		if r.Body != nil {
			_ = r.Body.Close()
		}

		return nil, fmt.Errorf("%s %s was not sent: %w", r.Method, r.URL.Path, ErrNoUser)
	}
	r = r.Clone(r.Context())
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			r.Header.Del(name)
		}
	}
	r.Header.Set(authenticationv1.ImpersonateUserHeader, user)

	return i.next.RoundTrip(r)
}

// WrappedRoundTripper returns the next RoundTripper, for client-go.
func (i *impersonator) WrappedRoundTripper() http.RoundTripper { return i.next }
