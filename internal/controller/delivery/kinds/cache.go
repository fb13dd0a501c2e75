package kinds

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
	// UnknownKindTTL is how long a kind that the server does not serve is not looked up
	// again.
	UnknownKindTTL = 5 * time.Second
	// MaxUnknownKinds is how many of them are remembered.
	MaxUnknownKinds = 1000
)

// A Cache is a RESTMapper that remembers for a short time which kinds the server does not serve.
// The mapper below it remembers only those that are served, and sends requests under a lock for all
// other kinds: thousands of manifests whose CRD is missing would keep all workers waiting. It is
// the mapper of the client, too, so that both agree about a kind.
type Cache struct {
	meta.RESTMapper

	now func() time.Time

	mu      sync.Mutex
	Unknown map[schema.GroupKind]map[string]unknownKind
	// forgotten counts calls of forget. A lookup that began before the last one may have
	// found out what is no longer true.
	forgotten int
}

// An unknownKind is the error of a lookup, and until when it is used.
type unknownKind struct {
	err   error
	until time.Time
}

// NewCache returns a cache of a mapper.
func NewCache(m meta.RESTMapper, now func() time.Time) *Cache {
	return &Cache{RESTMapper: m, now: now, Unknown: map[schema.GroupKind]map[string]unknownKind{}}
}

// RESTMapping implements meta.RESTMapper. Only the error that the kind is not served is remembered.
func (c *Cache) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := strings.Join(versions, ",")
	began, err := c.recall(kind, key)
	if err != nil {
		return nil, err
	}
	mapping, err := c.RESTMapper.RESTMapping(kind, versions...)
	c.record(kind, key, err, began)

	return mapping, err
}

// recall is the error of an earlier lookup, nil if the mapper must be asked. Once the error is out
// of date, one caller asks, and all other callers get the error until there is an answer.
func (c *Cache) recall(kind schema.GroupKind, key string) (began int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.Unknown[kind][key]
	switch now := c.now(); {
	case !ok:
		return c.forgotten, nil
	case now.Before(found.until):
		return c.forgotten, found.err
	default:
		found.until = now.Add(UnknownKindTTL)
		c.Unknown[kind][key] = found

		return c.forgotten, nil
	}
}

// record remembers what a lookup has found out.
func (c *Cache) record(kind schema.GroupKind, key string, err error, began int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if began != c.forgotten {
		return
	}
	if !IsUnserved(err) {
		if delete(c.Unknown[kind], key); len(c.Unknown[kind]) == 0 {
			delete(c.Unknown, kind)
		}

		return
	}
	if len(c.Unknown) >= MaxUnknownKinds {
		clear(c.Unknown)
	}
	if c.Unknown[kind] == nil {
		c.Unknown[kind] = map[string]unknownKind{}
	}
	c.Unknown[kind][key] = unknownKind{err, c.now().Add(UnknownKindTTL)}
}

// Forget has a kind looked up again: its CRD was applied, or has become established.
func (c *Cache) Forget(kind schema.GroupKind) {
	if kind.Kind == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.Unknown, kind)
	c.forgotten++
}

// IsUnserved reports whether the server does not serve a version of a kind. Of one that
// was served before, the path is not found, which is not the answer of any API.
func IsUnserved(err error) bool {
	discovery := new(apiutil.ErrResourceDiscoveryFailed)
	if meta.IsNoMatchError(err) || errors.As(err, &discovery) {
		return true
	}

	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
