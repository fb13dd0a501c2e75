package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// An object that another composition wants has moved there, and is not deleted. The compositions
// that want an object are counted from the views. So before a view deletes anything, all
// compositions must have been read that existed when it was made: those that wanted an object
// before this one released it are among them, after a restart too.

// With --delivery-scope=namespace, only compositions of the same namespace count: a tenant
// must not keep objects of another one by naming them, nor by a composition that cannot be
// read.

// A Claim is an object that compositions of a tenant want.
type Claim struct {
	decide.Identity

	tenant string
}

// count counts the compositions that want each object.
func (r *Registry) count(v *model.Composition, by int) { r.add(v.Name, v.Wants, by) }

// add counts objects that a composition wants.
func (r *Registry) add(name types.NamespacedName, all []decide.Identity, by int) {
	for _, id := range all {
		one := r.claim(name, id)
		if r.Wanted[one] += by; r.Wanted[one] == 0 {
			delete(r.Wanted, one)
		}
	}
}

// claim is that of a composition to an object.
func (r *Registry) claim(name types.NamespacedName, id decide.Identity) Claim {
	return Claim{id, r.tenant(name.Namespace)}
}

// tenant returns the tenant that a namespace belongs to.
func (r *Registry) tenant(namespace string) string { return r.Scope.Tenant(namespace) }

// isNeighbor reports whether two compositions are of the same tenant.
func (r *Registry) isNeighbor(a, b types.NamespacedName) bool {
	return r.tenant(a.Namespace) == r.tenant(b.Namespace)
}

// IsWanted reports whether another composition wants an object that this one does not.
func (r *Registry) IsWanted(own types.NamespacedName, id decide.Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.Wanted[r.claim(own, id)] > 0
}

// OtherOwner is another composition that wants an object, "" if there is none.
func (r *Registry) OtherOwner(own types.NamespacedName, id decide.Identity) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Wanted[r.claim(own, id)] <= r.claims(own, id) {
		return ""
	}
	first := ""
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(r.views)), maps.Keys(r.unreadable)) {
		if text := name.String(); name != own && r.isNeighbor(name, own) && (first == "" || text < first) && r.claims(name, id) > 0 {
			first = text
		}
	}

	return first
}

// claims counts how often a composition is counted as one that wants an object. The lock
// is held.
func (r *Registry) claims(name types.NamespacedName, id decide.Identity) int {
	var all []decide.Identity
	if v := r.views[name]; v != nil {
		all = v.Wants
	}
	if broken := r.unreadable[name]; broken != nil {
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

// AwaitOthers records which compositions have to be read before a view deletes anything. It is for
// views that nothing works on yet. The cache is asked, which has seen them if it has seen the
// composition that releases an object later.
func (r *Registry) AwaitOthers(ctx context.Context, v *model.Composition) error {
	if !v.Deletes() {
		return nil
	}
	r.mu.Lock()
	r.Backlog.beginList()
	r.mu.Unlock()
	list := &enov1.CompositionList{}
	err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.Backlog.endList()
	if err != nil {
		return fmt.Errorf("cannot list compositions: %w", err)
	}
	var unread []unreadEntry
	for i := range list.Items {
		c := &list.Items[i]
		name := client.ObjectKeyFromObject(c)
		if name == v.Name || !r.isNeighbor(name, v.Name) || c.DeletionStarted() || c.Status.CurrentSynthesis == nil || r.Backlog.hasRead(name, c.ResourceVersion) {
			continue
		}
		if !r.views[name].IsRead(c) {
			unread = append(unread, unreadEntry{name: name, version: c.ResourceVersion})
		}
	}
	r.Backlog.add(v, unread)

	return nil
}

// Unread is a composition that has to be read before a view deletes anything, "" if
// there is none.
func (r *Registry) Unread(v *model.Composition) string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.Backlog.unreadFor(v, r.overdue)
}

// MarkRead records that a version of a composition was read, and returns the views that wait for
// nothing any more.
func (r *Registry) MarkRead(name types.NamespacedName, version string) []*model.Composition {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.Backlog.read(name, version)
}
