package scheduler

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
)

// reservations keeps room on nodes for gangs, from the decision to preempt until
// the gang is bound. It is the PodNominator of every profile: to the filters of
// kube-scheduler, a reserved place is a nominated pod that has the priority of its
// gang. So pods of a higher priority pass, and all others are kept out.
//
// The gang that is being tried does not see its own places; they are never removed
// and added again, so a try that fails in the middle loses nothing.
//
// Only the scheduling goroutine adds reservations, because it has to verify them on
// its snapshot. Any goroutine may release one.
type reservations struct {
	fwk.PodNominator // the scheduling queue

	mu    sync.Mutex // held by writers
	state atomic.Pointer[reservedRoom]
	// trying is the gang whose places are left out.
	trying atomic.Pointer[types.NamespacedName]
}

// reservedRoom is one immutable state of all reservations.
type reservedRoom struct {
	byGang map[types.NamespacedName]*reservation
	byNode map[string][]*reservedPlace
	byPod  map[types.UID]*reservedPlace
}

// A reservation is the room that one gang waits for.
type reservation struct {
	gang   types.NamespacedName
	places []*reservedPlace
}

// A reservedPlace is the place of one pod.
type reservedPlace struct {
	gang types.NamespacedName
	node string
	// info is a copy of the pod that has the priority of the gang.
	info fwk.PodInfo
}

var _ fwk.PodNominator = &reservations{}

func newReservations(queue fwk.PodNominator) *reservations {
	r := &reservations{PodNominator: queue}
	r.state.Store(&reservedRoom{})

	return r
}

// newReservation makes a reservation of the gang's effective priority. nodes has
// the node of each pod.
func newReservation(gang types.NamespacedName, pods []*corev1.Pod, nodes []string, priority int32) *reservation {
	r := &reservation{gang: gang}
	for i, pod := range pods {
		c := withPriority(pod, priority).DeepCopy()
		c.Spec.SchedulingGroup = nil
		r.places = append(r.places, &reservedPlace{gang: gang, node: nodes[i], info: podInfo(c)})
	}

	return r
}

// check makes sure that a profile asks here for nominated pods.
func (r *reservations) check(fw framework.Framework) error {
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "self-test", UID: "self-test"}}
	key := types.NamespacedName{Name: probe.Name}
	r.set(newReservation(key, []*corev1.Pod{probe}, []string{probe.Name}, 0))
	defer r.release(key)
	if len(fw.NominatedPodsForNode(probe.Name)) != 1 {
		return fmt.Errorf("profile %s ignores reservations: this release of Kubernetes is not the one that Arbor was built for", fw.ProfileName())
	}

	return nil
}

// set replaces the reservation of a gang.
func (r *reservations) set(one *reservation) {
	r.change(one.gang, one)
}

// release drops the reservation of a gang and returns it, nil if there was none.
func (r *reservations) release(gang types.NamespacedName) *reservation {
	if r.state.Load().byGang[gang] == nil {
		return nil
	}

	return r.change(gang, nil)
}

func (r *reservations) change(gang types.NamespacedName, to *reservation) *reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.state.Load().byGang)
	before := all[gang]
	delete(all, gang)
	if to != nil {
		if all == nil {
			all = map[types.NamespacedName]*reservation{}
		}
		all[gang] = to
	}
	next := &reservedRoom{byGang: all, byNode: map[string][]*reservedPlace{}, byPod: map[types.UID]*reservedPlace{}}
	for _, one := range all {
		for _, p := range one.places {
			next.byNode[p.node] = append(next.byNode[p.node], p)
			next.byPod[p.info.GetPod().UID] = p
		}
	}
	r.state.Store(next)
	reservedPods.Set(float64(len(next.byPod)))

	return before
}

// any reports whether any room is reserved.
func (r *reservations) any() bool { return len(r.state.Load().byPod) > 0 }

// on reports whether room is reserved on a node.
func (r *reservations) on(node string) bool { return len(r.state.Load().byNode[node]) > 0 }

// of returns the reservation of a gang, nil if it has none.
func (r *reservations) of(gang types.NamespacedName) *reservation {
	return r.state.Load().byGang[gang]
}

// node returns the reserved node of a pod, "" if it has none.
func (r *reservations) node(pod types.UID) string {
	if p := r.state.Load().byPod[pod]; p != nil {
		return p.node
	}

	return ""
}

// try leaves out the places of a gang until done is called.
func (r *reservations) try(gang types.NamespacedName) (done func()) {
	r.trying.Store(&gang)

	return func() { r.trying.Store(nil) }
}

// NominatedPodsForNode returns the pods that the queue nominates, and the reserved
// places. A pod that has a reserved place is not returned twice.
func (r *reservations) NominatedPodsForNode(node string) []fwk.PodInfo {
	return r.state.Load().onto(r.PodNominator.NominatedPodsForNode(node), node, r.trying.Load())
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
			all = append(all, p.info)
		}
	}

	return all
}
