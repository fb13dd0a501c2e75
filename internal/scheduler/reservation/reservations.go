package reservation

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
)

// Reservations keeps room on nodes for gangs, from the decision to preempt until
// the gang is bound. It is the PodNominator of every profile: to the filters of
// kube-scheduler, a reserved place is a nominated pod that has the priority of its
// gang. So pods of a higher priority pass, and all others are kept out.
//
// The gang that is being tried does not see its own places; they are never removed
// and added again, so a try that fails in the middle loses nothing.
//
// Only the scheduling goroutine adds reservations, because it has to verify them on
// its snapshot. Any goroutine may release one.
type Reservations struct {
	fwk.PodNominator // the scheduling queue

	mu    sync.Mutex // held by writers
	state atomic.Pointer[reservedRoom]
	// trying is the gang whose places are left out.
	trying atomic.Pointer[types.NamespacedName]
}

// reservedRoom is one immutable state of all reservations.
type reservedRoom struct {
	byGang map[types.NamespacedName]*Reservation
	byNode map[string][]*reservedPlace
	byPod  map[types.UID]*reservedPlace
}

// A Reservation is the room that one gang waits for.
type Reservation struct {
	gang   types.NamespacedName
	Places []*reservedPlace
}

// A reservedPlace is the place of one pod.
type reservedPlace struct {
	gang types.NamespacedName
	Node string
	// Info is a copy of the pod that has the priority of the gang.
	Info fwk.PodInfo
}

var _ fwk.PodNominator = &Reservations{}

// New returns reservations on top of the nominations of a queue.
func New(queue fwk.PodNominator) *Reservations {
	r := &Reservations{PodNominator: queue}
	r.state.Store(&reservedRoom{})

	return r
}

// NewReservation makes a reservation of the gang's effective priority. nodes has
// the node of each pod.
func NewReservation(gang types.NamespacedName, pods []*corev1.Pod, nodes []string, priority int32) *Reservation {
	r := &Reservation{gang: gang}
	for i, pod := range pods {
		c := podinfo.WithPriority(pod, priority).DeepCopy()
		c.Spec.SchedulingGroup = nil
		r.Places = append(r.Places, &reservedPlace{gang: gang, Node: nodes[i], Info: podinfo.New(c)})
	}

	return r
}

// Check makes sure that a profile asks here for nominated pods.
func (r *Reservations) Check(fw framework.Framework) error {
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "self-test", UID: "self-test"}}
	key := types.NamespacedName{Name: probe.Name}
	r.Set(NewReservation(key, []*corev1.Pod{probe}, []string{probe.Name}, 0))
	defer r.Release(key)
	if len(fw.NominatedPodsForNode(probe.Name)) != 1 {
		return fmt.Errorf("profile %s ignores reservations: this release of Kubernetes is not the one that Arbor was built for", fw.ProfileName())
	}

	return nil
}

// Set replaces the reservation of a gang.
func (r *Reservations) Set(one *Reservation) {
	r.change(one.gang, one)
}

// Release drops the reservation of a gang and returns it, nil if there was none.
func (r *Reservations) Release(gang types.NamespacedName) *Reservation {
	if r.state.Load().byGang[gang] == nil {
		return nil
	}

	return r.change(gang, nil)
}

func (r *Reservations) change(gang types.NamespacedName, to *Reservation) *Reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.state.Load().byGang)
	before := all[gang]
	delete(all, gang)
	if to != nil {
		if all == nil {
			all = map[types.NamespacedName]*Reservation{}
		}
		all[gang] = to
	}
	next := &reservedRoom{byGang: all, byNode: map[string][]*reservedPlace{}, byPod: map[types.UID]*reservedPlace{}}
	for _, one := range all {
		for _, p := range one.Places {
			next.byNode[p.Node] = append(next.byNode[p.Node], p)
			next.byPod[p.Info.GetPod().UID] = p
		}
	}
	r.state.Store(next)
	gangmetrics.ReservedPods.Set(float64(len(next.byPod)))

	return before
}

// Any reports whether any room is reserved.
func (r *Reservations) Any() bool { return len(r.state.Load().byPod) > 0 }

// On reports whether room is reserved on a node.
func (r *Reservations) On(node string) bool { return len(r.state.Load().byNode[node]) > 0 }

// Of returns the reservation of a gang, nil if it has none.
func (r *Reservations) Of(gang types.NamespacedName) *Reservation {
	return r.state.Load().byGang[gang]
}

// Node returns the reserved node of a pod, "" if it has none.
func (r *Reservations) Node(pod types.UID) string {
	if p := r.state.Load().byPod[pod]; p != nil {
		return p.Node
	}

	return ""
}

// Try leaves out the places of a gang until done is called.
func (r *Reservations) Try(gang types.NamespacedName) (done func()) {
	r.trying.Store(&gang)

	return func() { r.trying.Store(nil) }
}

// NominatedPodsForNode returns the pods that the queue nominates, and the reserved
// places. A pod that has a reserved place is not returned twice.
func (r *Reservations) NominatedPodsForNode(node string) []fwk.PodInfo {
	return r.state.Load().onto(r.PodNominator.NominatedPodsForNode(node), node, r.trying.Load())
}

// Onto adds the reserved places of a node to nominated pods, as a gang that is being tried
// sees them.
func (r *Reservations) Onto(nominated []fwk.PodInfo, node string, trying *types.NamespacedName) []fwk.PodInfo {
	return r.state.Load().onto(nominated, node, trying)
}

// onto adds the reserved places of a node to nominated pods. The gang that is being
// tried sees neither its reserved places nor its nominations: after a restart, the queue
// may have these from the status of its pods, and they must not count twice.
func (s *reservedRoom) onto(nominated []fwk.PodInfo, node string, trying *types.NamespacedName) []fwk.PodInfo {
	if len(s.byPod) == 0 && trying == nil {
		return nominated
	}
	all := slices.DeleteFunc(nominated, func(p fwk.PodInfo) bool {
		key, ok := decide.GroupOf(p.GetPod())

		return s.byPod[p.GetPod().UID] != nil || trying != nil && ok && key == *trying
	})
	for _, p := range s.byNode[node] {
		if trying == nil || p.gang != *trying {
			all = append(all, p.Info)
		}
	}

	return all
}
