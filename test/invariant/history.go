package invariant

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// A History is what a watch reported about some objects: a snapshot does not show what
// was deleted and created again, or overwritten and corrected.
type History struct {
	// Hook is a ConfigMap that a Patch deletes once per synthesis, before the same synthesis
	// creates it again. Its data.synthesis is the UUID of the synthesis that created it.
	Hook Object
	// Raised is an object whose spec.replicas another writer raises, and nothing lowers
	// while the annotation "scale" is set.
	Raised Object
	// Lasting are objects that are in every synthesis of a Composition that is never deleted.
	Lasting map[Object]bool

	mu       sync.Mutex
	created  map[string][]types.UID
	complete map[string]bool
	// blind is set until a creation of the hook is seen: before, some may have been missed.
	blind    bool
	uids     map[Object]types.UID
	replicas int64
	found    []Finding
}

// Resume records objects as a list shows them, because a watch begins. Events before that
// are not known.
func (h *History) Resume(kind string, all []unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range all {
		h.observe(watch.Added, &all[i])
	}
	if kind == h.Hook.Kind {
		h.blind = true
		maps.DeleteFunc(h.complete, func(synthesis string, _ bool) bool { return len(h.created[synthesis]) == 0 })
	}
}

// Observe records an event of a watch.
func (h *History) Observe(event watch.EventType, o *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observe(event, o)
}

func (h *History) observe(event watch.EventType, o *unstructured.Unstructured) {
	key := Object{o.GetKind(), o.GetNamespace(), o.GetName()}
	if h.Lasting[key] {
		h.lasts(key, event, o.GetUID())
	}
	switch {
	case event == watch.Deleted:
	case key == h.Hook:
		h.hook(event, o)
	case key == h.Raised && o.GetAnnotations()["scale"] != "":
		now, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if now < h.replicas {
			h.addf(NothingUndone, key, "had %d replicas from another writer, and then %d", h.replicas, now)
		}
		h.replicas = now
	}
}

// lasts records that an object exists, and whether it is another one than before.
func (h *History) lasts(key Object, event watch.EventType, uid types.UID) {
	if h.uids == nil {
		h.uids = map[Object]types.UID{}
	}
	if before, known := h.uids[key]; event == watch.Deleted || known && before != uid {
		h.addf(NothingDeleted, key, "was deleted, and every synthesis has it")
	}
	if h.uids[key] = uid; event == watch.Deleted {
		delete(h.uids, key)
	}
}

// hook records which syntheses have created the hook.
func (h *History) hook(event watch.EventType, o *unstructured.Unstructured) {
	synthesis, _, _ := unstructured.NestedString(o.Object, "data", "synthesis")
	if event != watch.Added || slices.Contains(h.created[synthesis], o.GetUID()) {
		return
	}
	if h.created == nil {
		h.created = map[string][]types.UID{}
	}
	h.created[synthesis] = append(h.created[synthesis], o.GetUID())
	h.blind = false
}

// Complete records that a synthesis has delivered everything.
func (h *History) Complete(synthesis string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blind {
		return
	}
	if h.complete == nil {
		h.complete = map[string]bool{}
	}
	h.complete[synthesis] = true
}

// Hooks is how many syntheses have run the hook.
func (h *History) Hooks() int {
	h.mu.Lock()
	defer h.mu.Unlock()

	return len(h.created)
}

// Broken reports whether something has happened that cannot become right any more.
func (h *History) Broken() bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return len(h.found) > 0 || slices.ContainsFunc(slices.Collect(maps.Values(h.created)), func(uids []types.UID) bool { return len(uids) > 1 })
}

// Forget drops all findings, so that one failure is reported once.
func (h *History) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found, h.created, h.complete, h.blind = nil, nil, nil, true
}

// findings are those so far.
func (h *History) findings() []Finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.found)
	for synthesis, uids := range h.created {
		if len(uids) > 1 {
			all = append(all, Finding{HookOnce, h.Hook, fmt.Sprintf("was deleted and created %d times in synthesis %s", len(uids), synthesis)})
		}
	}
	for synthesis := range h.complete {
		if len(h.created[synthesis]) == 0 {
			all = append(all, Finding{HookOnce, h.Hook, "was not deleted and created in synthesis " + synthesis})
		}
	}

	return all
}

func (h *History) addf(i Invariant, o Object, format string, args ...any) {
	h.found = append(h.found, Finding{i, o, fmt.Sprintf(format, args...)})
}
