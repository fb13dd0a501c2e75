package delivery

import (
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// unknownKindTTL is how long a kind that the server does not serve is not looked up
	// again.
	unknownKindTTL = 5 * time.Second
	// maxUnknownKinds is how many of them are remembered.
	maxUnknownKinds = 1000
)

// A kindCache is a RESTMapper that remembers for a short time which kinds the server does
// not serve. The mapper below it remembers only those that are served, and sends requests
// under a lock for all others: thousands of manifests whose CRD is missing would keep all
// workers waiting. It is the mapper of the client, too, so that both agree about a kind.
type kindCache struct {
	meta.RESTMapper

	now func() time.Time

	mu      sync.Mutex
	unknown map[schema.GroupKind]map[string]unknownKind
	// forgotten counts calls of forget. A lookup that began before the last one may have
	// found out what is no longer true.
	forgotten int
}

// An unknownKind is the error of a lookup, and until when it is used.
type unknownKind struct {
	err   error
	until time.Time
}

func newKindCache(m meta.RESTMapper, now func() time.Time) *kindCache {
	return &kindCache{RESTMapper: m, now: now, unknown: map[schema.GroupKind]map[string]unknownKind{}}
}

// RESTMapping implements meta.RESTMapper. Only errors that say that the kind is not served
// are remembered.
func (c *kindCache) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := strings.Join(versions, ",")
	began, err := c.recall(kind, key)
	if err != nil {
		return nil, err
	}
	mapping, err := c.RESTMapper.RESTMapping(kind, versions...)
	c.record(kind, key, err, began)

	return mapping, err
}

// recall is the error of an earlier lookup, nil if the mapper must be asked. Once the error
// is out of date, one caller asks, and others get the error until there is an answer.
func (c *kindCache) recall(kind schema.GroupKind, key string) (began int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.unknown[kind][key]
	switch now := c.now(); {
	case !ok:
		return c.forgotten, nil
	case now.Before(found.until):
		return c.forgotten, found.err
	default:
		found.until = now.Add(unknownKindTTL)
		c.unknown[kind][key] = found

		return c.forgotten, nil
	}
}

// record remembers what a lookup has found out.
func (c *kindCache) record(kind schema.GroupKind, key string, err error, began int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if began != c.forgotten {
		return
	}
	if !isUnserved(err) {
		if delete(c.unknown[kind], key); len(c.unknown[kind]) == 0 {
			delete(c.unknown, kind)
		}

		return
	}
	if len(c.unknown) >= maxUnknownKinds {
		clear(c.unknown)
	}
	if c.unknown[kind] == nil {
		c.unknown[kind] = map[string]unknownKind{}
	}
	c.unknown[kind][key] = unknownKind{err, c.now().Add(unknownKindTTL)}
}

// forget has a kind looked up again: its CRD was applied, or has become established.
func (c *kindCache) forget(kind schema.GroupKind) {
	if kind.Kind == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unknown, kind)
	c.forgotten++
}

// isUnserved reports whether the server does not serve a version of a kind. Of one that
// was served before, the path is not found, which is not the answer of any API.
func isUnserved(err error) bool {
	discovery := new(apiutil.ErrResourceDiscoveryFailed)
	if meta.IsNoMatchError(err) || errors.As(err, &discovery) {
		return true
	}

	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
