package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// An object that another composition wants has moved there, and is not deleted. Who
// wants what is counted from the views. So before a view deletes anything, all
// compositions must have been read that were there when it was made: those that
// wanted something before this one let go of it are among them, after a restart too.

// With --delivery-scope=namespace, only compositions of the same namespace count: a tenant
// must not keep objects of another one by naming them, nor by a composition that cannot be
// read.

// A claim is an object that compositions of a tenant want.
type claim struct {
	decide.Identity

	tenant string
}

// count counts who wants which object.
func (r *registry) count(v *view, by int) { r.add(v.name, v.wants, by) }

// add counts objects that a composition wants.
func (r *registry) add(name types.NamespacedName, all []decide.Identity, by int) {
	for _, id := range all {
		one := r.claim(name, id)
		if r.wanted[one] += by; r.wanted[one] == 0 {
			delete(r.wanted, one)
		}
	}
}

// claim is that of a composition to an object.
func (r *registry) claim(name types.NamespacedName, id decide.Identity) claim {
	return claim{id, r.tenant(name.Namespace)}
}

// tenant returns the tenant that a namespace belongs to.
func (r *registry) tenant(namespace string) string { return r.scope.Tenant(namespace) }

// isNeighbor reports whether two compositions are of the same tenant.
func (r *registry) isNeighbor(a, b types.NamespacedName) bool {
	return r.tenant(a.Namespace) == r.tenant(b.Namespace)
}

// taken says whether another composition wants an object that this one does not.
func (r *registry) taken(own types.NamespacedName, id decide.Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.wanted[r.claim(own, id)] > 0
}

// sharer is another composition that wants an object, "" if there is none.
func (r *registry) sharer(own types.NamespacedName, id decide.Identity) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted[r.claim(own, id)] <= r.claims(own, id) {
		return ""
	}
	first := ""
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(r.views)), maps.Keys(r.broken)) {
		if text := name.String(); name != own && r.isNeighbor(name, own) && (first == "" || text < first) && r.claims(name, id) > 0 {
			first = text
		}
	}

	return first
}

// claims counts how often a composition is counted as one that wants an object. The lock
// is held.
func (r *registry) claims(name types.NamespacedName, id decide.Identity) int {
	var all []decide.Identity
	if v := r.views[name]; v != nil {
		all = v.wants
	}
	if broken := r.broken[name]; broken != nil {
		all = slices.Concat(all, broken.wants)
	}
	n := 0
	for _, one := range all {
		if one == id {
			n++
		}
	}

	return n
}

// await notes which compositions have to be read before a view deletes anything. It
// is for views that nobody works on yet. The cache is asked, which has seen them if
// it has seen the composition that lets go of something later.
func (r *registry) await(ctx context.Context, v *view) error {
	if !v.removes() {
		return nil
	}
	r.mu.Lock()
	r.backlog.beginList()
	r.mu.Unlock()
	list := &enov1.CompositionList{}
	err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.backlog.endList()
	if err != nil {
		return fmt.Errorf("cannot list compositions: %w", err)
	}
	var unread []unreadEntry
	for i := range list.Items {
		c := &list.Items[i]
		name := client.ObjectKeyFromObject(c)
		if name == v.name || !r.isNeighbor(name, v.name) || c.DeletionStarted() || c.Status.CurrentSynthesis == nil || r.backlog.hasRead(name, c.ResourceVersion) {
			continue
		}
		if !r.views[name].isRead(c) {
			unread = append(unread, unreadEntry{name: name, version: c.ResourceVersion})
		}
	}
	r.backlog.add(v, unread)

	return nil
}

// unread is a composition that has to be read before a view deletes anything, "" if
// there is none.
func (r *registry) unread(v *view) string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.backlog.unreadFor(v, r.overdue)
}

// markRead records that a version of a composition was read, and returns the views that wait for
// nothing any more.
func (r *registry) markRead(name types.NamespacedName, version string) []*view {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.backlog.read(name, version)
}
