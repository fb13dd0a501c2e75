package access

import (
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// Each token that is not known costs the API server a TokenReview. These limits keep
// callers with made-up tokens from sending as many as they like; a token that was valid a
// moment ago is not subject to them.
const (
	reviewsPerSecond, reviewBurst             = 20, 50
	reviewsPerSecondByHost, reviewBurstByHost = 2, 10

	// maxTokens and maxHosts are remembered.
	maxTokens, maxHosts = 4096, 1024
)

// errThrottled is that a caller sends too many tokens that are not known.
var errThrottled = errors.New("too many tokens that are not known: try again later")

// A throttle authenticates callers, and limits how often the API server is asked.
type throttle struct {
	authenticator.Request

	all     *rate.Limiter
	hosts   *cache.LRUExpireCache // *rate.Limiter by address
	valid   *cache.LRUExpireCache // by hash of the token
	invalid *cache.LRUExpireCache // by hash of the token
}

func newThrottle(r authenticator.Request) *throttle {
	return &throttle{
		Request: r, all: rate.NewLimiter(reviewsPerSecond, reviewBurst),
		hosts: cache.NewLRUExpireCache(maxHosts), valid: cache.NewLRUExpireCache(maxTokens), invalid: cache.NewLRUExpireCache(maxTokens),
	}
}

// AuthenticateRequest returns errThrottled if the API server is not asked.
func (t *throttle) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	// The same parts as the authenticator uses.
	scheme, rest, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	token, _, _ := strings.Cut(rest, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, false, nil // there is nothing to review
	}
	hash := sha256.Sum256([]byte(token))
	if _, known := t.invalid.Get(hash); known {
		return nil, false, nil
	}
	if _, known := t.valid.Get(hash); !known && !t.allow(r.RemoteAddr) {
		return nil, false, errThrottled
	}
	caller, ok, err := t.Request.AuthenticateRequest(r)
	switch {
	case err == nil && ok:
		t.valid.Add(hash, struct{}{}, 2*remember)
	case err == nil || !unreachable(err):
		t.valid.Remove(hash)
		t.invalid.Add(hash, struct{}{}, remember/6)
	}

	return caller, ok, err
}

// allow reports whether another token from this address may be reviewed.
func (t *throttle) allow(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	found, ok := t.hosts.Get(host)
	limiter, isLimiter := found.(*rate.Limiter)
	if !ok || !isLimiter {
		limiter = rate.NewLimiter(reviewsPerSecondByHost, reviewBurstByHost)
		t.hosts.Add(host, limiter, time.Hour)
	}

	return limiter.Allow() && t.all.Allow()
}
