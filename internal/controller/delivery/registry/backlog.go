package registry

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
)

// A backlog has the compositions that are not read yet, and the views that must not
// delete anything before they are. Tenants do not wait for each other, so each has its own
// queues. Callers hold the lock of the Deliverer.
type backlog struct {
	// tenant returns the tenant that a namespace belongs to.
	tenant func(namespace string) string
	// tenants are the queues of those tenants that have views in them.
	tenants map[string]*waitingQueues
	// Lists counts the lists of compositions that are being read, and since has the
	// versions that were read while there were any: they may be newer than what a list
	// has, and are not read again.
	Lists int
	Since map[types.NamespacedName]string
}

// waitingQueues are the compositions of one tenant that are not read yet, and the views that wait
// for them. A view waits for those that were in the queue when it came in, and for none that
// came later: to enter costs as much as what is new, and to leave costs the same for each,
// however many wait.
type waitingQueues struct {
	// number counts the views that came in.
	number int
	// unread are the compositions, and views the views, in the order of their numbers.
	unread, views *list.List
	byName        map[types.NamespacedName]*list.Element
	byView        map[*model.Composition]*list.Element
}

// An unreadEntry is a composition that is not read yet.
type unreadEntry struct {
	name types.NamespacedName
	// version that has to be read, or a later one.
	version string
	// number of the first view that waits for it.
	number int
}

// A waitingView is a view, and its number.
type waitingView struct {
	*model.Composition

	number int
}

func newBacklog(tenant func(namespace string) string) *backlog {
	return &backlog{tenant: tenant, tenants: map[string]*waitingQueues{}, Since: map[types.NamespacedName]string{}}
}

func newQueues() *waitingQueues {
	return &waitingQueues{unread: list.New(), views: list.New(), byName: map[types.NamespacedName]*list.Element{}, byView: map[*model.Composition]*list.Element{}}
}

// beginList has versions remembered that are read from now on until endList. Between the
// two, the lock is not held: other compositions are read and deleted.
func (b *backlog) beginList() { b.Lists++ }

func (b *backlog) endList() {
	if b.Lists--; b.Lists == 0 {
		clear(b.Since)
	}
}

// hasRead reports whether a version of a composition, or a later one, was read since the
// list began, or the composition was found to be gone.
func (b *backlog) hasRead(name types.NamespacedName, version string) bool {
	read, ok := b.Since[name]

	return ok && !observed.Older(read, version)
}

// add has a view wait for compositions of its tenant, each with the version that it has now.
func (b *backlog) add(v *model.Composition, unread []unreadEntry) {
	b.remove(v)
	if len(unread) == 0 {
		return
	}
	tenant := b.tenant(v.Name.Namespace)
	if b.tenants[tenant] == nil {
		b.tenants[tenant] = newQueues()
	}
	b.tenants[tenant].add(v, unread)
}

// remove forgets a view.
func (b *backlog) remove(v *model.Composition) {
	tenant := b.tenant(v.Name.Namespace)
	if q := b.tenants[tenant]; q != nil {
		q.remove(v)
		b.tidy(tenant)
	}
}

// tidy drops the queues of a tenant without views: what is left in them is waited for by none.
func (b *backlog) tidy(tenant string) {
	if b.tenants[tenant].views.Len() == 0 {
		delete(b.tenants, tenant)
	}
}

// read notes that a version of a composition was read, and returns the views that wait
// for nothing any more.
func (b *backlog) read(name types.NamespacedName, version string) []*model.Composition {
	if b.Lists > 0 {
		b.Since[name] = version
	}
	tenant := b.tenant(name.Namespace)
	q := b.tenants[tenant]
	if q == nil {
		return nil
	}
	released := q.read(name, version)
	b.tidy(tenant)

	return released
}

// unreadFor returns the first composition that a view waits for and that is not passed
// over, "" if there is none.
func (b *backlog) unreadFor(v *model.Composition, passed func(types.NamespacedName) bool) string {
	q := b.tenants[b.tenant(v.Name.Namespace)]
	if q == nil {
		return ""
	}

	return q.unreadFor(v, passed)
}

func (q *waitingQueues) add(v *model.Composition, unread []unreadEntry) {
	q.number++
	q.byView[v] = q.views.PushBack(waitingView{v, q.number})
	for _, one := range unread {
		at, ok := q.byName[one.name]
		if !ok {
			q.byName[one.name] = q.unread.PushBack(&unreadEntry{one.name, one.version, q.number})

			continue
		}
		if e, ok := at.Value.(*unreadEntry); ok && e.version != one.version && observed.Older(e.version, one.version) {
			e.version = one.version
		}
	}
}

func (q *waitingQueues) remove(v *model.Composition) {
	if at, ok := q.byView[v]; ok {
		q.views.Remove(at)
		delete(q.byView, v)
	}
}

func (q *waitingQueues) read(name types.NamespacedName, version string) []*model.Composition {
	at, ok := q.byName[name]
	if !ok {
		return nil
	}
	if e, ok := at.Value.(*unreadEntry); ok && observed.Older(version, e.version) {
		return nil
	}
	q.unread.Remove(at)
	delete(q.byName, name)
	var released []*model.Composition
	for first := q.views.Front(); first != nil; first = q.views.Front() {
		v, ok := first.Value.(waitingView)
		if !ok || q.waits(v.number) {
			break
		}
		q.remove(v.Composition)
		released = append(released, v.Composition)
	}

	return released
}

// waits reports whether a view with a number waits for anything.
func (q *waitingQueues) waits(number int) bool {
	if q.unread.Len() == 0 {
		return false
	}
	e, ok := q.unread.Front().Value.(*unreadEntry)

	return ok && e.number <= number
}

func (q *waitingQueues) unreadFor(v *model.Composition, passed func(types.NamespacedName) bool) string {
	at, ok := q.byView[v]
	if !ok {
		return ""
	}
	w, _ := at.Value.(waitingView)
	for next := q.unread.Front(); next != nil; next = next.Next() {
		e, ok := next.Value.(*unreadEntry)
		if !ok || e.number > w.number {
			break
		}
		if e.name != v.Name && !passed(e.name) {
			return e.name.String()
		}
	}

	return ""
}
