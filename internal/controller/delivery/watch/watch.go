package watch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
)

// These annotations hold what is remembered of a watched object besides its name: informers can
// carry annotations.
const (
	keptOwn    = "own"
	keptWriter = "writer"
	// keptStatus is there if a field manager has written a status.
	keptStatus = "status"
)

// A Location is where an object is on the server.
type Location struct {
	schema.GroupVersionResource

	types.NamespacedName
}

// Watches has one metadata-only watch for each kind that was applied, as long as
// there are objects of it.
type Watches struct {
	client metadata.Interface
	// manager is the field manager of this delivery.
	manager string
	// changed is called with each key that is interested in an object.
	changed func(queue.Key)

	mu    sync.Mutex
	log   logr.Logger
	ended bool
	kinds map[schema.GroupVersionResource]*kindWatch
}

// A kindWatch is the watch of one kind.
type kindWatch struct {
	informer cache.SharedIndexInformer
	stop     chan struct{}
	// interest are the keys to queue when an object changes.
	interest map[types.NamespacedName]map[queue.Key]bool
	// lastWrites are the last that were written here to objects that several want.
	lastWrites map[types.NamespacedName]*lastWrite
	// unserved is set while the server does not know the resource.
	unserved atomic.Bool
}

// New returns watches of a field manager. changed is called with each resource whose object changed.
func New(c metadata.Interface, manager string, changed func(queue.Key)) *Watches {
	return &Watches{client: c, manager: manager, changed: changed, kinds: map[schema.GroupVersionResource]*kindWatch{}}
}

// Start lets watches run until ctx ends.
func (w *Watches) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = logr.FromContextOrDiscard(ctx)
	context.AfterFunc(ctx, w.end)
}

func (w *Watches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for gvr, k := range w.kinds {
		close(k.stop)
		delete(w.kinds, gvr)
	}
}

// Track has an object watched for a key.
func (w *Watches) Track(at Location, who queue.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	k, ok := w.kinds[at.GroupVersionResource]
	if !ok {
		k = w.watch(at.GroupVersionResource)
		w.kinds[at.GroupVersionResource] = k
	}
	if k.interest[at.NamespacedName] == nil {
		k.interest[at.NamespacedName] = map[queue.Key]bool{}
	}
	k.interest[at.NamespacedName][who] = true
}

// Untrack ends that, and the watch with its last object.
func (w *Watches) Untrack(at Location, who queue.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.kinds[at.GroupVersionResource]
	if !ok {
		return
	}
	delete(k.interest[at.NamespacedName], who)
	if len(k.interest[at.NamespacedName]) == 0 {
		delete(k.interest, at.NamespacedName)
		delete(k.lastWrites, at.NamespacedName)
	}
	if len(k.interest) == 0 {
		close(k.stop)
		delete(w.kinds, at.GroupVersionResource)
	}
}

// Observe returns what is known about an object that was last written as a version.
func (w *Watches) Observe(at Location, version string) observed.Object {
	w.mu.Lock()
	k, ok := w.kinds[at.GroupVersionResource]
	w.mu.Unlock()
	if !ok || !k.informer.HasSynced() {
		return observed.Object{}
	}
	if k.unserved.Load() {
		return observed.Object{Unserved: true}
	}
	name := at.Name
	if at.Namespace != "" {
		name = at.Namespace + "/" + name
	}
	// Read before the object: the store may be behind the watch, but not behind this.
	seen := cmp.Or(k.informer.GetIndexer().LastStoreSyncResourceVersion(), k.informer.LastSyncResourceVersion())
	found, ok, err := k.informer.GetIndexer().GetByKey(name)
	if err != nil {
		return observed.Object{}
	}
	if !ok {
		// It may be younger than what the store has seen.
		return observed.Object{Known: !observed.Older(seen, version)}
	}
	o, ok := found.(*metav1.PartialObjectMetadata)
	if !ok {
		return observed.Object{}
	}

	return observed.Object{
		Known: true, Present: true, UID: o.UID, Version: o.ResourceVersion, Deleting: o.DeletionTimestamp != nil,
		Own: o.Annotations[keptOwn], Writer: o.Annotations[keptWriter], NoStatus: o.Annotations[keptOwn] != "" && o.Annotations[keptStatus] == "",
	}
}

// watch begins the watch of a kind.
func (w *Watches) watch(gvr schema.GroupVersionResource) *kindWatch {
	k := &kindWatch{stop: make(chan struct{}), interest: map[types.NamespacedName]map[queue.Key]bool{}, lastWrites: map[types.NamespacedName]*lastWrite{}}
	k.informer = metadatainformer.NewFilteredMetadataInformer(w.client, gvr, "", 0, cache.Indexers{}, nil).Informer()
	log := w.log.WithValues("resource", gvr.String())
	// None of these fail before it is started.
	_ = k.informer.SetTransform(func(o any) (any, error) { return slim(o, w.manager) })
	_ = k.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		log.V(1).Info("cannot watch what is delivered; trying again", "error", err.Error())
		if apierrors.IsNotFound(err) && k.unserved.CompareAndSwap(false, true) {
			w.notifyAll(k) // they are applied, which fails with a reason that their compositions report
		}
	})
	tell := func(o any) {
		k.unserved.Store(false)
		w.notify(k, o)
	}
	_, _ = k.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, o any) { tell(o) },
		DeleteFunc: tell,
	})
	go k.informer.Run(k.stop)
	// Deletions before the first list were never seen.
	go func() {
		if cache.WaitForCacheSync(k.stop, k.informer.HasSynced) {
			w.notifyAll(k)
		}
	}()

	return k
}

func (w *Watches) notify(k *kindWatch, o any) {
	name, err := cache.DeletionHandlingObjectToName(o)
	if err != nil {
		return
	}
	w.mu.Lock()
	var all []queue.Key
	for who := range k.interest[types.NamespacedName{Namespace: name.Namespace, Name: name.Name}] {
		all = append(all, who)
	}
	w.mu.Unlock()
	for _, who := range all {
		w.changed(who)
	}
}

func (w *Watches) notifyAll(k *kindWatch) {
	w.mu.Lock()
	var all []queue.Key
	for _, interested := range k.interest {
		for who := range interested {
			all = append(all, who)
		}
	}
	w.mu.Unlock()
	for _, who := range all {
		w.changed(who)
	}
}

// slim keeps of an object only what drift is seen by. A cluster has many objects that were not
// delivered.
func slim(o any, manager string) (any, error) {
	full, ok := o.(*metav1.PartialObjectMetadata)
	if !ok || len(full.ManagedFields) == 0 {
		return o, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion, DeletionTimestamp: full.DeletionTimestamp,
	}}
	if decide.IsOurs(full.ManagedFields, manager) {
		kept.Annotations = map[string]string{keptOwn: OwnedFields(full.ManagedFields, manager), keptWriter: LastWriter(full.ManagedFields, manager)}
		if hasStatus(full.ManagedFields) {
			kept.Annotations[keptStatus] = "written"
		}
	}

	return kept, nil
}

// hasStatus reports whether a field manager has written a status.
func hasStatus(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:status"`))
	})
}

// OwnedFields is a digest of the fields of an object that we own. A client that changes or removes
// a value of ours takes the field away from us: so as long as the digest is the same, an apply
// would change nothing. The time distinguishes what two of us wrote, in two processes and not in
// the same second; for the rest, see lastWrite.
func OwnedFields(entries []metav1.ManagedFieldsEntry, manager string) string {
	h := sha256.New()
	for _, e := range entries {
		if e.Manager != manager || e.Subresource != "" || e.FieldsV1 == nil {
			continue
		}
		var fields any
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		// The server and Go do not order keys alike.
		data, err := json.Marshal([]any{e.Operation, e.APIVersion, fields})
		if err != nil {
			continue
		}
		_, _ = h.Write(data)
		if e.Time != nil {
			_, _ = h.Write([]byte(e.Time.UTC().Format(time.RFC3339)))
		}
	}

	return hex.EncodeToString(h.Sum(nil)[:16])
}

// LastWriter is the other field manager that wrote last.
func LastWriter(entries []metav1.ManagedFieldsEntry, manager string) string {
	last := metav1.ManagedFieldsEntry{}
	for _, e := range entries {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply || e.Subresource == "status" {
			continue
		}
		if last.Manager == "" || e.Time != nil && (last.Time == nil || !e.Time.Before(last.Time)) {
			last = e
		}
	}

	return last.Manager
}
