// Package access authenticates and authorizes callers of Arbor's own HTTPS endpoints, by requests
// to the API server.
package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// Answers are kept for a short while, so that a busy caller does not make the
// API server busy. A right that is taken away is gone after that.
const (
	remember      = time.Minute
	reviewTimeout = 10 * time.Second
)

// A Gate passes requests of callers that have the permission for them.
type Gate struct {
	who authenticator.Request
	may authorizer.Authorizer
}

// New returns a Gate that asks the API server of config.
func New(config *rest.Config, c *http.Client) (*Gate, error) {
	reviews, err := authenticationv1.NewForConfigAndClient(config, c)
	if err != nil {
		return nil, fmt.Errorf("cannot authenticate callers: %w", err)
	}
	access, err := authorizationv1.NewForConfigAndClient(config, c)
	if err != nil {
		return nil, fmt.Errorf("cannot authorize callers: %w", err)
	}
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
	who, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                &apiserver.AnonymousAuthConfig{Enabled: false},
		CacheTTL:                 remember,
		TokenAccessReviewClient:  reviews,
		TokenAccessReviewTimeout: reviewTimeout,
		WebhookRetryBackoff:      backoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("cannot authenticate callers: %w", err)
	}
	may, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: access,
		AllowCacheTTL:             remember,
		DenyCacheTTL:              remember / 6,
		WebhookRetryBackoff:       backoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("cannot ask what callers may do: %w", err)
	}

	return &Gate{who: newThrottle(who), may: may}, nil
}

// An Ask returns the permission that a request needs. An error is the caller's: the request is
// invalid.
type Ask func(r *http.Request, u user.Info) (authorizer.Attributes, error)

// Path asks for the URL itself, as rules with nonResourceURLs grant it.
func Path(r *http.Request, u user.Info) (authorizer.Attributes, error) {
	return authorizer.AttributesRecord{User: u, Verb: strings.ToLower(r.Method), Path: r.URL.Path}, nil
}

// Protect passes requests on whose callers have the permission. It answers 401 to
// callers without a valid token, 403 to those without the permission, 429 to those that
// send too many unknown tokens, and 503 while the API server cannot be asked.
func (g *Gate) Protect(log logr.Logger, next http.Handler, ask Ask) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, known, err := g.who.AuthenticateRequest(r)
		switch {
		case errors.Is(err, errThrottled):
			w.Header().Set("Retry-After", "5")
			http.Error(w, err.Error(), http.StatusTooManyRequests)

			return
		case err != nil && unreachable(err):
			log.Error(err, "Cannot authenticate a caller")
			http.Error(w, "the API server did not answer the TokenReview: try again", http.StatusServiceUnavailable)

			return
		case err != nil || !known:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthorized: send a token that the API server knows, such as one of `kubectl create token`, as `Authorization: Bearer TOKEN`", http.StatusUnauthorized)

			return
		}
		wish, err := ask(r, caller.User)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}
		decision, _, err := g.may.Authorize(r.Context(), wish)
		switch {
		case err != nil:
			log.Error(err, "Cannot ask what a caller may do", "user", caller.User.GetName())
			http.Error(w, "the API server cannot be asked what you may do: try again", http.StatusServiceUnavailable)
		case decision != authorizer.DecisionAllow:
			http.Error(w, fmt.Sprintf("forbidden: user %q may not %s", caller.User.GetName(), describe(wish)), http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// unreachable distinguishes an API server that did not answer from one that does not know the
// token.
func unreachable(err error) bool {
	// Authenticators that are joined return an aggregate, which errors.As does not look into.
	if all, ok := err.(utilerrors.Aggregate); ok { //nolint:errorlint // see above
		return slices.ContainsFunc(all.Errors(), unreachable)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return true
	}
	_, ok := errors.AsType[net.Error](err)

	return ok
}

// describe puts a right into the words of a rule that would grant it.
func describe(a authorizer.Attributes) string {
	if !a.IsResourceRequest() {
		return fmt.Sprintf("%s %s", a.GetVerb(), a.GetPath())
	}
	what := a.GetResource()
	if a.GetSubresource() != "" {
		what += "/" + a.GetSubresource()
	}

	return fmt.Sprintf("%s %s in API group %q in the namespace %q", a.GetVerb(), what, a.GetAPIGroup(), a.GetNamespace())
}
