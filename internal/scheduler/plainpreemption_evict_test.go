package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// nodeVictims is a candidate node.
type nodeVictims struct{ victims extenderv1.Victims }

func (n *nodeVictims) Victims() *extenderv1.Victims { return &n.victims }
func (*nodeVictims) Name() string                   { return "node-0000" }

// bindingHandle is a handle to which one pod is in PreBind.
type bindingHandle struct {
	fwk.Handle

	prebind types.UID
}

func (bindingHandle) GetWaitingPod(types.UID) fwk.WaitingPod { return nil }

func (h bindingHandle) GetPodInPreBind(uid types.UID) fwk.PodInPreBind {
	if uid == h.prebind {
		return struct{ fwk.PodInPreBind }{}
	}

	return nil
}

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
		evicted       []string
		after         []string
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
			reason: "a pod whose binding is canceled is a member again", prebind: "g-1", evicted: []string{"g-0", "g-1", "g-2"}, after: []string{"g-0", "g-2"},
		},
		"Gone": {
			reason: "nothing is remembered about a pod that is gone", gone: "g-2", evicted: []string{"g-0", "g-1", "g-2"}, after: []string{"g-0", "g-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := aged(crew("g", "", 3, 1, boundAt(0)))
			exist := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Name == tc.gone })
			s.show(act{groups: []*v2alpha2.PodGroup{podGroup("g", 3)}, pods: exist, leaving: tc.before})
			var evicted []string
			e := &plainEvictor{handle: bindingHandle{prebind: types.UID(tc.prebind)}, groups: s.groups}
			e.evict = func(_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *corev1.Pod, _ string) error {
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
			for _, pod := range pods {
				err := e.preemptPod(t.Context(), c, nil, pod, preemptionName)
				if (pod.Name == tc.fails) != errors.Is(err, failed) {
					t.Errorf("%s: got error %v", pod.Name, err)
				}
				if err != nil {
					break
				}
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

// leavingOf are the pods that leave, sorted.
func leavingOf(s *stage) []string {
	all := map[string]bool{}
	s.groups.leaving.Range(func(uid, _ any) bool {
		all[string(uid.(types.UID))] = true

		return true
	})

	return slices.Sorted(maps.Keys(all))
}
