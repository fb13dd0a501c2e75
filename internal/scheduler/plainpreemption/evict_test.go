package plainpreemption

import (
	"context"
	"errors"
	"maps"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// nodeVictims is a candidate node.
type nodeVictims struct{ victims extenderv1.Victims }

func (n *nodeVictims) Victims() *extenderv1.Victims { return &n.victims }
func (*nodeVictims) Name() string                   { return "node-0000" }

// bindingHandle is a handle to which one pod is in PreBind until it is asked for.
type bindingHandle struct {
	fwk.Handle

	prebind   types.UID
	canceled  []string
	activated atomic.Int32
}

func (*bindingHandle) GetWaitingPod(types.UID) fwk.WaitingPod { return nil }

func (*bindingHandle) EventRecorder() events.EventRecorderLogger { return events.NewFakeRecorder(10) }

func (h *bindingHandle) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	h.activated.Add(int32(len(pods)))
}

func (h *bindingHandle) GetPodInPreBind(uid types.UID) fwk.PodInPreBind {
	if uid != h.prebind {
		return nil
	}
	h.prebind = "" // the gang gives up at the same time

	return &podInPreBind{h: h, name: string(uid)}
}

type podInPreBind struct {
	fwk.PodInPreBind

	h    *bindingHandle
	name string
}

func (p *podInPreBind) CancelPod(string) bool {
	p.h.canceled = append(p.h.canceled, p.name)

	return true
}

// preemptorPod is the pod that preempts.
type preemptorPod struct{ preemption.ExecutorPreemptor }

func (preemptorPod) Obj() runtime.Object          { return &corev1.Pod{} }
func (preemptorPod) SchedulerName() string        { return settings.Name }
func (preemptorPod) Type() string                 { return "Pod" }
func (preemptorPod) UID() types.UID               { return "high" }
func (preemptorPod) Pods() map[string]*corev1.Pod { return map[string]*corev1.Pod{"high": {}} }

func TestPlainEvictor(t *testing.T) {
	s := newStage(t)
	failed := errors.New("the API server does not answer")
	cases := map[string]struct {
		reason string
		// before is what another preemption evicts.
		before []string
		// fails is the victim that cannot be evicted.
		fails string
		// prebind is the victim that is being bound, and gone one that is gone.
		prebind, gone string
		// renewed is the victim that has been deleted and created again.
		renewed string
		// waiting is the victim whose gang has given up its places.
		waiting string
		evicted []string
		after   []string
		// activated means that the preemptor is activated.
		activated bool
	}{
		"All": {
			reason: "all victims leave until they are gone", evicted: []string{"g-0", "g-1", "g-2"}, after: []string{"g-0", "g-1", "g-2"},
		},
		"Fails": {
			reason: "those that were not evicted do not leave", fails: "g-1", evicted: []string{"g-0", "g-1"}, after: []string{"g-0"},
		},
		"Twice": {
			reason: "what another preemption evicts is left to it", before: []string{"g-0"}, evicted: []string{"g-1", "g-2"}, after: []string{"g-0", "g-1", "g-2"},
		},
		"PreBind": {
			reason: "a pod whose binding is canceled is a member again", prebind: "g-1", evicted: []string{"g-0", "g-2"}, after: []string{"g-0", "g-2"}, activated: true,
		},
		"Waiting": {
			reason: "a pod that has no place any more stays", waiting: "g-1", evicted: []string{"g-0", "g-2"}, after: []string{"g-0", "g-2"}, activated: true,
		},
		"Gone": {
			reason: "nothing is remembered about a pod that is gone", gone: "g-2", evicted: []string{"g-0", "g-1"}, after: []string{"g-0", "g-1"}, activated: true,
		},
		"SameName": {
			reason: "another pod that has the name of a victim by now stays", renewed: "g-2", evicted: []string{"g-0", "g-1"}, after: []string{"g-0", "g-1"}, activated: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := aged(schedulertest.Crew("g", "", 3, 1, schedulertest.BoundAt(0)))
			exist := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Name == tc.gone })
			for i, pod := range exist {
				switch pod.Name {
				case tc.waiting:
					exist[i] = pod.DeepCopy()
					exist[i].Spec.NodeName = ""
				case tc.renewed:
					exist[i] = pod.DeepCopy()
					exist[i].UID = "renewed"
				}
			}
			s.show(act{groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 3)}, pods: exist, leaving: tc.before})
			var evicted []string
			handle := &bindingHandle{prebind: types.UID(tc.prebind)}
			e := newPlainEvictor(handle, s.groups)
			e.evict = func(_ context.Context, victim *corev1.Pod, _, _ string) error {
				if evicted == nil && len(leavingOf(s)) != 3 {
					t.Errorf("before the first is evicted, %v leave", leavingOf(s))
				}
				evicted = append(evicted, victim.Name)
				if victim.Name == tc.fails {
					return failed
				}

				return nil
			}
			c := &nodeVictims{extenderv1.Victims{Pods: pods}}
			ctx, end := context.WithCancel(t.Context())
			for _, pod := range pods {
				err := e.preemptPod(ctx, c, preemptorPod{}, pod, profiles.Preemption)
				if (pod.Name == tc.fails) != errors.Is(err, failed) {
					t.Errorf("%s: got error %v", pod.Name, err)
				}
				if err != nil {
					break
				}
			}
			if n := handle.activated.Load(); n != 0 {
				t.Errorf("the preemptor is activated %d times during its preemption", n)
			}
			end()
			if tc.activated {
				for deadline := time.Now().Add(5 * time.Second); handle.activated.Load() == 0 && time.Now().Before(deadline); {
					goruntime.Gosched()
				}
			}
			if n := handle.activated.Load(); n > 1 || n > 0 != tc.activated {
				t.Errorf("%s\nthe preemptor is activated %d times after its preemption", tc.reason, n)
			}
			if want := tc.prebind != ""; want != slices.Equal(handle.canceled, []string{tc.prebind}) {
				t.Errorf("%s\ncanceled: %v", tc.reason, handle.canceled)
			}
			if diff := gocmp.Diff(tc.evicted, evicted); diff != "" {
				t.Errorf("%s\nevicted: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := gocmp.Diff(tc.after, leavingOf(s)); diff != "" {
				t.Errorf("%s\nleaving: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPlainEvictorAfterFailure has victims that a worker begins with after another one has failed.
func TestPlainEvictorAfterFailure(t *testing.T) {
	s := newStage(t)
	pods := aged(schedulertest.Crew("g", "", 3, 1, schedulertest.BoundAt(0)))
	s.show(act{groups: []*v2alpha2.PodGroup{schedulertest.PodGroup("g", 3)}, pods: pods})
	handle := &bindingHandle{prebind: "g-2"}
	e := newPlainEvictor(handle, s.groups)
	evictions := 0
	failed := errors.New("denied")
	preempt := func(ctx context.Context, c preemption.Candidate, victim int) error {
		return e.preemptPod(ctx, c, preemptorPod{}, pods[victim], profiles.Preemption)
	}
	ctx, end := context.WithCancel(t.Context())
	other, endOther := context.WithCancel(t.Context())
	c := &nodeVictims{extenderv1.Victims{Pods: pods}}
	another := &nodeVictims{extenderv1.Victims{Pods: pods[1:2]}}
	e.evict = func(context.Context, *corev1.Pod, string, string) error {
		evictions++
		if evictions == 1 { // while the first one is evicted, another preemptor needs one of the victims
			if err := preempt(other, another, 1); err != nil {
				t.Error(err)
			}
		}

		return failed
	}
	if err := preempt(ctx, c, 0); !errors.Is(err, failed) {
		t.Errorf("got error %v", err)
	}
	for _, victim := range []int{2, 1} {
		if err := preempt(ctx, c, victim); err != nil {
			t.Error(err)
		}
	}
	end()
	if err := preempt(ctx, c, 1); err != nil {
		t.Error(err)
	}
	if left := leavingOf(s); len(left) > 0 || evictions != 1 || len(handle.canceled) > 0 {
		t.Errorf("%v are marked, %d were evicted, the bindings of %v were canceled", left, evictions, handle.canceled)
	}
	ended := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()

		return e.rounds[c] == nil
	}
	for deadline := time.Now().Add(5 * time.Second); !ended() && time.Now().Before(deadline); {
		goruntime.Gosched()
	}
	if n := handle.activated.Load(); n != 0 {
		t.Errorf("%d preemptors were activated during their own preemption", n)
	}
	endOther()
	for deadline := time.Now().Add(5 * time.Second); handle.activated.Load() == 0 && time.Now().Before(deadline); {
		goruntime.Gosched()
	}
	if n := handle.activated.Load(); n != 1 {
		t.Errorf("%d preemptors were activated, want the one that waited for this preemption", n)
	}
	next := &nodeVictims{extenderv1.Victims{Pods: pods[1:2]}}
	if err := preempt(t.Context(), next, 1); !errors.Is(err, failed) {
		t.Errorf("the next preemption got %v", err)
	}
}

// leavingOf are the pods that leave, sorted.
func leavingOf(s *stage) []string {
	all := map[string]bool{}
	for _, uid := range s.groups.Leaving() {
		all[string(uid)] = true
	}

	return slices.Sorted(maps.Keys(all))
}
