package release_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Names of objects. The SubnetPoolClaim, the claim for its block and its pool are all
// called lab. The new claim comes first in the order of names.
const (
	network = "net"
	root    = "p"
	lab     = "lab"
	fresh   = "0-new"
)

// backedUp is when blocks were taken before the backup, restoredAt when the objects of
// the backup are created again.
var (
	restoredAt = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	backedUp   = restoredAt.Add(-24 * time.Hour)
)

// An id is an object in one state. 0 means that there is no object.
type id uint16

// Slots are the names that objects can have. Those of Subnets get theirs when they are
// first created.
const (
	rootSlot = iota
	labSlot
	poolClaimSlot
	firstClaim
)

const (
	firstSubnet = firstClaim + 4
	maxSlots    = firstSubnet + 12
)

// objects is what the API server has, by slot.
type objects [maxSlots]id

// A store knows every object in every state that occurred, so that a state of the API
// server is a few small numbers. Stored objects are never changed.
type store struct {
	all   []metav1.Object
	facts []fact
	ids   map[string]id
	slots map[string]int
	// taken are the slots of the Subnets of each pool, and used those of all Subnets.
	taken map[string]uint32
	used  int
}

// A fact is what the checks ask about an object.
type fact struct {
	name, pool, cidr string
	block            netip.Prefix
	// has means that a claim is bound, or a Subnet Allocated.
	has bool
	// claim is the slot of a Subnet's claim, -1 if it is for none, holder the UID of the claim that has it.
	claim  int
	holder types.UID
}

func newStore() *store {
	s := &store{all: []metav1.Object{nil}, facts: make([]fact, 1), ids: map[string]id{}, slots: map[string]int{}, taken: map[string]uint32{}, used: firstSubnet}
	for i, key := range []string{"pool/" + root, "pool/" + lab, "poolclaim/" + lab, "claim/a", "claim/c", "claim/" + lab, "claim/" + fresh} {
		s.slots[key] = i
	}

	return s
}

// intern returns the id of an object.
func (s *store) intern(o metav1.Object) id {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	key := fmt.Sprintf("%T %s", o, text)
	if known, ok := s.ids[key]; ok {
		return known
	}
	next := id(len(s.all))
	s.all, s.ids[key] = append(s.all, o), next
	f := fact{name: o.GetName()}
	switch x := o.(type) {
	case *v1alpha1.SubnetClaim:
		f.pool, f.cidr, f.has = x.Spec.PoolRef, x.Status.AllocatedCIDR, x.Status.Phase == v1alpha1.ClaimBound
	case *v1alpha1.Subnet:
		f.pool, f.cidr, f.has = x.Spec.PoolRef, x.Spec.CIDR, allocated(x)
		f.claim, f.holder = -1, x.Status.ClaimUID
		if x.Spec.ClaimRef != nil {
			f.claim = s.slots["claim/"+x.Spec.ClaimRef.Name]
		}
	}
	f.block, _ = netip.ParsePrefix(f.cidr)
	s.facts = append(s.facts, f)

	return next
}

// slot returns the slot for an object of this kind and name.
func (s *store) slot(o metav1.Object) int {
	key := ""
	switch o.(type) {
	case *v1alpha1.SubnetPool:
		key = "pool/" + o.GetName()
	case *v1alpha1.SubnetPoolClaim:
		key = "poolclaim/" + o.GetName()
	case *v1alpha1.SubnetClaim:
		key = "claim/" + o.GetName()
	case *v1alpha1.Subnet:
		key = "subnet/" + o.GetName()
	}
	at, ok := s.slots[key]
	if of, is := o.(*v1alpha1.Subnet); is && !ok {
		at, ok = s.used, s.used < maxSlots
		s.slots[key] = at
		s.taken[of.Spec.PoolRef] |= 1 << at
		s.used++
	}
	if !ok {
		panic("no slot for " + key)
	}

	return at
}

// A server is the API server in one state, and what a step may know besides.
type server struct {
	*model

	objects objects
	// quiet means that everything of the pool which the step is about has arrived,
	// complete that everything has.
	quiet, complete bool
	// deleted are the claims that users have deleted since the restore, by slot.
	deleted uint32
}

func get[T metav1.Object](s *server, slot int) (o T, ok bool) {
	if s.objects[slot] == 0 {
		return o, false
	}
	o, ok = s.store.all[s.objects[slot]].(T)

	return o, ok
}

// pool returns a pool, nil if there is none.
func (s *server) pool(name string) *v1alpha1.SubnetPool {
	slot, ok := s.store.slots["pool/"+name]
	if !ok {
		return nil
	}
	p, _ := get[*v1alpha1.SubnetPool](s, slot)

	return p
}

// claim returns a claim, nil if there is none.
func (s *server) claim(name string) *v1alpha1.SubnetClaim {
	slot, ok := s.store.slots["claim/"+name]
	if !ok {
		return nil
	}
	c, _ := get[*v1alpha1.SubnetClaim](s, slot)

	return c
}

// claims returns the claims of a pool.
func (s *server) claims(pool string) []*v1alpha1.SubnetClaim {
	var all []*v1alpha1.SubnetClaim
	for i := firstClaim; i < firstSubnet; i++ {
		if c, ok := get[*v1alpha1.SubnetClaim](s, i); ok && c.Spec.PoolRef == pool {
			all = append(all, c)
		}
	}

	return all
}

// subnets returns the Subnets of a pool, by name.
func (s *server) subnets(pool string) []*v1alpha1.Subnet {
	var all []*v1alpha1.Subnet
	for i := firstSubnet; i < s.store.used; i++ {
		if o, ok := get[*v1alpha1.Subnet](s, i); ok && o.Spec.PoolRef == pool {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.Subnet) int { return strings.Compare(a.Name, b.Name) })

	return all
}

// write stores an object, which must not be changed afterwards. A Subnet without a
// verdict is younger than those that it conflicts with; other versions do not matter.
func (s *server) write(o metav1.Object) {
	at := s.store.slot(o)
	if sub, ok := o.(*v1alpha1.Subnet); ok {
		version := 1
		for _, other := range s.subnets(sub.Spec.PoolRef) {
			if other.Name != sub.Name && undecided(other) && (overlap(other.Spec.CIDR, sub.Spec.CIDR) || other.Spec.ClusterID == sub.Spec.ClusterID) {
				v, _ := strconv.Atoi(other.ResourceVersion)
				version = max(version, v+1)
			}
		}
		if !undecided(sub) {
			version = 1
		}
		sub.ResourceVersion = strconv.Itoa(version)
	}
	s.objects[at] = s.store.intern(o)
}

func undecided(s *v1alpha1.Subnet) bool {
	return s.Status.Phase == "" || s.Status.Phase == v1alpha1.SubnetPending
}

// create stores an object that a controller makes. It returns the object that has the
// name, if there is one.
func (s *server) create(o metav1.Object) metav1.Object {
	at := s.store.slot(o)
	if s.objects[at] != 0 {
		return s.store.all[s.objects[at]]
	}
	o.SetUID(types.UID(o.GetName() + s.suffix))
	o.SetCreationTimestamp(metav1.NewTime(s.now))
	o.SetGeneration(1)
	s.write(o)

	return nil
}

// remove deletes an object, which stays as long as it has a finalizer.
func (s *server) remove(o metav1.Object) {
	at := s.store.slot(o)
	if sub, ok := o.(*v1alpha1.Subnet); ok && len(sub.Finalizers) > 0 {
		sub = sub.DeepCopy()
		sub.DeletionTimestamp = new(metav1.NewTime(s.now))
		s.write(sub)

		return
	}
	s.objects[at] = 0
}

// A form is how a backup comes back. All forms give objects new UIDs.
type form int

const (
	// kubectl keeps ownerReferences and drops the status. An object that exists gets
	// the metadata of the backup.
	kubectl form = iota
	// velero drops ownerReferences and the status. An object that exists stays as it is.
	velero
	// veleroStatus is velero with restoreStatus.
	veleroStatus
)

// restore creates an object of the backup again.
func (s *server) restore(backup metav1.Object, f form, suffix string) {
	o := copyOf(backup)
	if there := s.objects[s.store.slot(o)]; there != 0 {
		if f == kubectl {
			s.merge(copyOf(s.store.all[there]), o)
		}

		return
	}
	o.SetUID(types.UID(o.GetName() + suffix))
	o.SetCreationTimestamp(metav1.NewTime(s.now))
	if f != kubectl {
		o.SetOwnerReferences(nil)
	}
	if f != veleroStatus {
		dropStatus(o)
	} else if s.rules.statusOfBackup {
		ownStatus(o)
	}
	s.write(o)
}

// merge applies the metadata of a backup to an object, as kubectl apply does. An object
// with an immutable spec that differs is left alone: the API server rejects the change.
func (s *server) merge(o, backup metav1.Object) {
	switch x := o.(type) {
	case *v1alpha1.Subnet:
		if b, ok := backup.(*v1alpha1.Subnet); !ok || !equality.Semantic.DeepEqual(x.Spec, b.Spec) {
			return
		}
	case *v1alpha1.SubnetClaim:
		if b, ok := backup.(*v1alpha1.SubnetClaim); !ok || !equality.Semantic.DeepEqual(x.Spec, b.Spec) {
			return
		}
	case *v1alpha1.SubnetPool:
		if b, ok := backup.(*v1alpha1.SubnetPool); ok && !equality.Semantic.DeepEqual(x.Spec, b.Spec) {
			x.Spec = *b.Spec.DeepCopy()
			x.Generation++
		}
	}
	add := func(to, more map[string]string) map[string]string {
		if to == nil {
			to = map[string]string{}
		}
		maps.Copy(to, more)

		return to
	}
	o.SetAnnotations(add(o.GetAnnotations(), backup.GetAnnotations()))
	o.SetLabels(add(o.GetLabels(), backup.GetLabels()))
	for _, f := range backup.GetFinalizers() {
		if !slices.Contains(o.GetFinalizers(), f) {
			o.SetFinalizers(append(o.GetFinalizers(), f))
		}
	}
	s.write(o)
}

// collectGarbage deletes an object whose owner does not exist, as the garbage collector
// does: an owner of the same name with another UID is another object.
func (s *server) collectGarbage() {
	for _, there := range s.objects {
		if there == 0 || len(s.store.all[there].GetOwnerReferences()) == 0 {
			continue
		}
		o := s.store.all[there]
		if !slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return s.exists(r.UID) }) {
			s.remove(o)
		}
	}
}

func (s *server) exists(uid types.UID) bool {
	for _, there := range s.objects {
		if there != 0 && s.store.all[there].GetUID() == uid {
			return true
		}
	}

	return false
}

// copyOf returns a copy that can be changed.
func copyOf(o metav1.Object) metav1.Object {
	switch x := o.(type) {
	case *v1alpha1.SubnetPool:
		return x.DeepCopy()
	case *v1alpha1.SubnetPoolClaim:
		return x.DeepCopy()
	case *v1alpha1.SubnetClaim:
		return x.DeepCopy()
	case *v1alpha1.Subnet:
		return x.DeepCopy()
	}
	panic(fmt.Sprintf("unknown kind %T", o))
}

// dropStatus removes the status of an object.
func dropStatus(o metav1.Object) {
	switch x := o.(type) {
	case *v1alpha1.SubnetPool:
		x.Status = v1alpha1.SubnetPoolStatus{}
	case *v1alpha1.SubnetPoolClaim:
		x.Status = v1alpha1.SubnetPoolClaimStatus{}
	case *v1alpha1.SubnetClaim:
		x.Status = v1alpha1.SubnetClaimStatus{}
	case *v1alpha1.Subnet:
		x.Status = v1alpha1.SubnetStatus{}
	}
}

// ownStatus makes the status of a backup look like the object's own.
func ownStatus(o metav1.Object) {
	switch x := o.(type) {
	case *v1alpha1.SubnetPool:
		x.Status.UID = x.UID
	case *v1alpha1.Subnet:
		x.Status.UID = x.UID
	}
}

func overlap(a, b string) bool {
	x, err := netip.ParsePrefix(a)
	if err != nil {
		return false
	}
	y, err := netip.ParsePrefix(b)

	return err == nil && x.Overlaps(y)
}
