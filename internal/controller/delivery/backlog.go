package delivery

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"
)

// A backlog has the compositions that are not read yet, and the views that must not
// delete anything before they are. A view waits for those that were in the backlog when
// it came in, and for none that came later, so that both are two queues: to enter costs
// as much as what is new, and to leave costs the same for each, however many wait.
// Whoever uses it holds the lock of the Deliverer.
type backlog struct {
	// number counts the views that came in.
	number int
	// unread are the compositions, and views the views, in the order of their numbers.
	unread, views *list.List
	byName        map[types.NamespacedName]*list.Element
	byView        map[*view]*list.Element
	// lists counts the lists of compositions that are being read, and since has the
	// versions that were read while there were any: they may be newer than what a list
	// has, and are not read again.
	lists int
	since map[types.NamespacedName]string
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
	*view

	number int
}

func newBacklog() *backlog {
	return &backlog{unread: list.New(), views: list.New(), byName: map[types.NamespacedName]*list.Element{}, byView: map[*view]*list.Element{}, since: map[types.NamespacedName]string{}}
}

// beginList has versions remembered that are read from now on until endList. Between the
// two, the lock is not held: other compositions are read and deleted.
func (b *backlog) beginList() { b.lists++ }

func (b *backlog) endList() {
	if b.lists--; b.lists == 0 {
		clear(b.since)
	}
}

// hasRead reports whether a version of a composition, or a later one, was read since the
// list began, or the composition was found to be gone.
func (b *backlog) hasRead(name types.NamespacedName, version string) bool {
	read, ok := b.since[name]

	return ok && !older(read, version)
}

// add has a view wait for compositions, each with the version that it has now.
func (b *backlog) add(v *view, unread []unreadEntry) {
	b.remove(v)
	if len(unread) == 0 {
		return
	}
	b.number++
	b.byView[v] = b.views.PushBack(waitingView{v, b.number})
	for _, one := range unread {
		at, ok := b.byName[one.name]
		if !ok {
			b.byName[one.name] = b.unread.PushBack(&unreadEntry{one.name, one.version, b.number})

			continue
		}
		if e, ok := at.Value.(*unreadEntry); ok && e.version != one.version && older(e.version, one.version) {
			e.version = one.version
		}
	}
}

// remove forgets a view.
func (b *backlog) remove(v *view) {
	if at, ok := b.byView[v]; ok {
		b.views.Remove(at)
		delete(b.byView, v)
	}
	if b.views.Len() == 0 { // nobody waits for what is left
		b.unread.Init()
		clear(b.byName)
	}
}

// read notes that a version of a composition was read, and returns the views that wait
// for nothing any more.
func (b *backlog) read(name types.NamespacedName, version string) []*view {
	if b.lists > 0 {
		b.since[name] = version
	}
	at, ok := b.byName[name]
	if !ok {
		return nil
	}
	if e, ok := at.Value.(*unreadEntry); ok && older(version, e.version) {
		return nil
	}
	b.unread.Remove(at)
	delete(b.byName, name)
	var released []*view
	for first := b.views.Front(); first != nil; first = b.views.Front() {
		v, ok := first.Value.(waitingView)
		if !ok || b.waits(v.number) {
			break
		}
		b.remove(v.view)
		released = append(released, v.view)
	}

	return released
}

// waits reports whether a view with a number waits for anything.
func (b *backlog) waits(number int) bool {
	if b.unread.Len() == 0 {
		return false
	}
	e, ok := b.unread.Front().Value.(*unreadEntry)

	return ok && e.number <= number
}

// unreadFor returns the first composition that a view waits for and that is not passed
// over, "" if there is none.
func (b *backlog) unreadFor(v *view, passed func(types.NamespacedName) bool) string {
	at, ok := b.byView[v]
	if !ok {
		return ""
	}
	w, _ := at.Value.(waitingView)
	for next := b.unread.Front(); next != nil; next = next.Next() {
		e, ok := next.Value.(*unreadEntry)
		if !ok || e.number > w.number {
			break
		}
		if e.name != v.name && !passed(e.name) {
			return e.name.String()
		}
	}

	return ""
}
