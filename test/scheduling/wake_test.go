package scheduling_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// A wakeUp is one row of the table of what wakes a gang.
type wakeUp struct {
	reason string
	gpus   int // of the node
	// wait has gang g wait, and returns the event that lets it in.
	wait func(l *lab) (event func())
	// bound is how many members are bound in the end.
	bound int
}

// wakes runs rows. Nothing happens next to the event, so a gang that it does not
// wake waits for a minute at least.
func wakes(t *testing.T, rows map[string]wakeUp) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, row.gpus)
			event := row.wait(l)
			if l.bound("g") == row.bound {
				t.Fatal("the gang does not wait")
			}
			event()
			l.bindsSoon("g", row.bound)
			l.noLostWakeups()
		})
	}
}

// Changes of a PodGroup wake its gang.
func TestWokenByItsGroup(t *testing.T) {
	wakes(t, map[string]wakeUp{
		"Created": {
			reason: "Pods wait for a PodGroup that comes after them.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.pods("g", "", 4, 1)
				l.waits("g", "does not exist")

				return func() { l.group("g", simple(4)) }
			},
		},
		"CreatedAgain": {
			reason: "A PodGroup was deleted while its pods waited for room, and comes back when there is some.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				pg := l.group("g", simple(6))
				l.pods("g", "", 6, 1)
				l.waits("g", "of min 6 pods")
				l.must(l.c.Delete(l.Context(), pg))
				l.waits("g", "does not exist")

				return func() { l.group("g", simple(4)) }
			},
		},
		"MinimumLowered": {
			reason: "A smaller gang fits.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				pg := l.group("g", simple(6))
				l.pods("g", "", 6, 1)
				l.waits("g", "of min 6 pods")

				return func() { change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(4) }) }
			},
		},
		"MinimumLoweredToThePodsThatExist": {
			reason: "The gang was incomplete, and was never tried.",
			gpus:   4, bound: 3,
			wait: func(l *lab) func() {
				pg := l.group("g", simple(4))
				l.pods("g", "", 3, 1)
				l.waits("g", "3 of min 4 pods")

				return func() { change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(3) }) }
			},
		},
		"PriorityRaised": {
			reason: "A gang that becomes more important may preempt.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				low, _ := l.classes()
				l.gang("low", 4, low)
				l.runs("low", 4)
				pg := l.group("g", simple(4))
				l.pods("g", "", 4, 1)
				l.waits("g", "of min 4 pods")

				return func() { change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = l.ns + "-high" }) }
			},
		},
		"SubGroupRemoved": {
			reason: "The gang does not wait any more for pods that are not created.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				pg := l.group("g", tree(leaf("a", 4), leaf("b", 1)))
				l.pods("g", "a", 4, 1)
				l.waits("g", `subgroup "b"`)

				return func() {
					change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups = pg.Spec.SubGroups[:1] })
				}
			},
		},
	})
}

// A subgroup is added to a group that waits as Unschedulable, and its pods come later.
func TestSubGroupAdded(t *testing.T) {
	l := newLab(t, 1, 4).own()
	pg := l.group("g", tree(leaf("a", 5)))
	l.pods("g", "a", 5, 1)
	l.waits("g", "of min 5 pods")
	l.says("g", metav1.ConditionFalse, "of min 5 pods")
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups = append(pg.Spec.SubGroups, leaf("b", 1)) })
	l.within(soon, "the PodGroup says that a subgroup has no pods", func() error {
		select {
		case <-l.scheduler.Done():
			return fmt.Errorf("the scheduler ended: %w", errNever)
		default:
		}
		if says := l.message("g"); !strings.Contains(says, `"b"`) {
			return fmt.Errorf("it reports %q", says)
		}

		return nil
	})
	l.pods("g", "b", 1, 1)
	l.addNodes(1, 4)
	l.bindsSoon("g", 6)
}

// Changes of its pods wake a gang.
func TestWokenByItsPods(t *testing.T) {
	gate := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} }
	wakes(t, map[string]wakeUp{
		"Created": {
			reason: "The last pod makes the gang complete.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.group("g", simple(4))
				l.pods("g", "", 3, 1)
				l.waits("g", "3 of min 4 pods")

				return func() { l.create(l.pod("g", "", "last", 1)) }
			},
		},
		"Relabelled": {
			reason: "A pod is moved from a subgroup that does not exist to the one that it was meant for.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.group("g", tree(leaf("workers", 4)))
				l.pods("g", "workers", 3, 1)
				bad := l.pods("g", "wrokers", 1, 1)[0]
				l.waits("g", `"wrokers"`)

				return func() { change(l, bad, func(p *corev1.Pod) { p.Labels[subGroupLabel] = "workers" }) }
			},
		},
		"MovedToTheGroup": {
			reason: "A pod names another PodGroup from now on.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.group("g", simple(4))
				l.pods("g", "", 3, 1)
				other := l.pod("g", "", "other", 1)
				other.Annotations[groupAnnotation] = "another"
				l.create(other)
				l.says("g", metav1.ConditionFalse, "3 of min 4 pods")

				return func() { change(l, other, func(p *corev1.Pod) { p.Annotations[groupAnnotation] = "g" }) }
			},
		},
		"MovedToNoGroup": {
			reason: "A pod waits for a PodGroup that does not exist, and then names none.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.group("g", simple(3))
				l.pods("g", "", 3, 1)
				l.runs("g", 3)
				lost := l.pod("g", "", "lost", 1)
				lost.Annotations[groupAnnotation] = "another"
				l.create(lost)
				l.told(lost, "PodGroupNotFound", "another")

				return func() { change(l, lost, func(p *corev1.Pod) { delete(p.Annotations, groupAnnotation) }) }
			},
		},
		"Ungated": {
			reason: "The last scheduling gate of a member that is needed is removed.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.group("g", simple(4))
				l.pods("g", "", 3, 1)
				gated := l.pod("g", "", "gated", 1, gate)
				l.create(gated)
				l.hadItsTurn()

				return func() { change(l, gated, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }) }
			},
		},
	})
}

// A surplus pod takes the place of a member that is deleted.
func TestWokenByTheDeletionOfAMember(t *testing.T) {
	l := newLab(t, 1, 4)
	l.group("g", simple(2))
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)
	l.create(l.pod("g", "", "fifth", 1))
	l.waits("g", "minimum")
	l.must(l.c.Delete(t.Context(), pods[1]))
	l.within(soon, "the fifth is bound", func() error {
		if l.places("g")["fifth"] == "" {
			return errors.New("it waits")
		}

		return nil
	})
	l.noLostWakeups()
}

// A gang is not placed because of one pod that does not belong there. It is when
// that pod is deleted, which is all that happens.
func TestWokenByTheDeletionOfABadPod(t *testing.T) {
	cases := map[string]struct {
		reason string
		part   string
		name   string // of the bad pod's scheduler
		says   string
	}{
		"UnknownSubGroup":  {"Its label has a typo.", "wrokers", "", `"wrokers"`},
		"NoSubGroup":       {"It has no label.", "", "", subGroupLabel},
		"SchedulersDiffer": {"It asks for another scheduler.", "workers", "somebody-else", "scheduler"},
	}
	for name, tc := range cases {
		for _, order := range []string{"First", "Last"} {
			t.Run(name+order, func(t *testing.T) {
				l := newLab(t, 1, 8)
				bad := l.pod("g", tc.part, "bad", 1)
				if tc.name != "" {
					bad.Spec.SchedulerName = tc.name
				}
				l.group("g", tree(leaf("workers", 3)))
				if order == "First" {
					l.create(bad)
					l.pods("g", "workers", 3, 1)
				} else {
					l.pods("g", "workers", 2, 1)
					l.create(bad)
					l.create(l.pod("g", "workers", "third", 1))
				}
				l.says("g", metav1.ConditionFalse, tc.says)
				l.hadItsTurn()
				l.none("g")
				l.must(l.c.Delete(t.Context(), bad))
				l.bindsSoon("g", 3)
				l.noLostWakeups()
			})
		}
	}
}

// What happens in the cluster wakes gangs that it may help.
func TestWokenByTheCluster(t *testing.T) {
	wakes(t, map[string]wakeUp{
		"NodeAdded": {
			reason: "A node is room.",
			gpus:   4, bound: 6,
			wait: func(l *lab) func() {
				l.gang("g", 6)
				l.waits("g", "of min 6 pods")

				return func() { l.addNodes(1, 4) }
			},
		},
		"NodeUncordoned": {
			reason: "A node may be used again.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.ns + "-node-0"}}
				change(l, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
				l.within(soon, "the node is tainted", func() error {
					if err := l.c.Get(l.Context(), key(node), node); err != nil || len(node.Spec.Taints) == 0 {
						return fmt.Errorf("it is not: %w", err)
					}

					return nil
				})
				l.gang("g", 4)
				l.waits("g", "of min 4 pods")

				return func() { change(l, node, func(n *corev1.Node) { n.Spec.Unschedulable = false }) }
			},
		},
		"OtherGangDeleted": {
			reason: "Another gang ends.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.gang("other", 4)
				l.runs("other", 4)
				l.gang("g", 4)
				l.waits("g", "of min 4 pods")

				return func() { l.end("other") }
			},
		},
		"OtherGangSucceeded": {
			reason: "Another gang has run to its end, and its pods are still there.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				l.group("other", simple(4))
				other := l.pods("other", "", 4, 1)
				l.runs("other", 4)
				l.gang("g", 4)
				l.waits("g", "of min 4 pods")

				return func() {
					for _, pod := range other {
						l.phase(pod, corev1.PodSucceeded)
					}
				}
			},
		},
		"VictimsGone": {
			reason: "The pods that were evicted for the gang have ended.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				low, high := l.classes()
				k := l.keep(nil)
				l.group("low", simple(4))
				l.pods("low", "", 4, 1, low, lingering)
				l.runs("low", 4)
				l.gang("g", 4, high)
				k.evicts(4)
				l.waits("g")

				return l.freeAll
			},
		},
		"PreemptionDelayOver": {
			reason: "The time is over during which the gang evicts no pod.",
			gpus:   4, bound: 4,
			wait: func(l *lab) func() {
				low, high := l.classes()
				l.gang("low", 4, low)
				l.runs("low", 4)
				spec := simple(4)
				// Long enough to see the gang wait, and short enough for soon.
				spec.PreemptionDelay = &v2alpha2.Duration{Duration: 20 * time.Second}
				l.group("g", spec)
				l.pods("g", "", 4, 1, high)
				l.waits("g", "of min 4 pods")

				return func() {}
			},
		},
	})
}

// Room that is reserved for a gang is free for other gangs as soon as that gang is gone.
func TestWokenByAReservationThatIsGivenUp(t *testing.T) {
	l := newLab(t, 2, 4)
	low, high := l.classes()
	k := l.keep(nil)
	l.placed("low", 4, low, lingering)
	l.runs("", 8)
	// It waits before any pod is evicted: a reservation is given up when victims have not
	// ended for half a minute.
	l.gang("g", 4, low)
	l.waits("g", "of min 4 pods")
	l.group("high", simple(2))
	l.pods("high", "", 2, 4, high)
	k.evicts(8)

	// One node is empty, and is kept for the gang that needs two.
	for _, s := range k.evicted() {
		if s.pod.Spec.NodeName == l.ns+"-node-0" {
			l.free(l.Context(), s.pod)
		}
	}
	l.within(soon, "the pods of one node have ended", func() error {
		if n := len(k.stories(func(s *story) bool { return s.gone })); n != 4 {
			return fmt.Errorf("%d have", n)
		}

		return nil
	})
	l.hadItsTurn()
	l.after(time.Second)
	l.none("high")
	l.none("g")

	l.end("high")
	l.bindsSoon("g", 4)
	l.noLostWakeups()
}

// raise gives the PriorityClass "own" a value of 20, which is only possible by
// creating it again.
func (l *lab) raise() {
	l.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.ns + "-own"}, Value: 20}
	l.must(l.c.Delete(l.Context(), class.DeepCopy()))
	l.must(l.c.Create(l.Context(), class))
}

// The value of a PriorityClass is that of all gangs that name it.
func TestWokenByAPriorityClass(t *testing.T) {
	t.Run("Preempts", func(t *testing.T) {
		l := newLab(t, 1, 4)
		low, _ := l.classes()
		l.class("own", 5, corev1.PreemptLowerPriority)
		l.gang("low", 4, low)
		l.runs("low", 4)
		l.group("g", v2alpha2.PodGroupSpec{MinMember: num(4), PriorityClassName: l.ns + "-own"})
		l.pods("g", "", 4, 1)
		l.waits("g", "of min 4 pods")
		l.raise()
		l.bindsSoon("g", 4)
		l.noLostWakeups()
	})
	t.Run("ComesFirst", func(t *testing.T) {
		l := newLab(t, 1, 4)
		_, high := l.classes()
		l.class("own", 5, corev1.PreemptLowerPriority)
		l.class("rival", 10, corev1.PreemptLowerPriority)
		// One pod has all the room, so that all of it comes at once.
		l.create(l.pod("", "", "blocker", 4, high))
		l.runs("", 1)
		for _, group := range []string{"rival", "own"} {
			l.group(group, v2alpha2.PodGroupSpec{MinMember: num(4), PriorityClassName: l.ns + "-" + group})
			l.pods(group, "", 4, 1)
			l.waits(group, "of min 4 pods")
		}
		l.raise()
		l.after(13 * time.Second) // the scheduler knows the new value, and no pod backs off any more
		l.end("")
		l.bindsSoon("own", 4)
		l.none("rival")
	})
	t.Run("Created", func(t *testing.T) {
		l := newLab(t, 1, 4)
		low, _ := l.classes()
		l.gang("low", 4, low)
		l.runs("low", 4)
		l.group("g", v2alpha2.PodGroupSpec{MinMember: num(4), PriorityClassName: l.ns + "-late"})
		l.pods("g", "", 4, 1)
		l.says("g", metav1.ConditionFalse)
		l.hadItsTurn()
		l.none("g")
		l.class("late", 20, corev1.PreemptLowerPriority)
		l.bindsSoon("g", 4)
		l.noLostWakeups()
	})
}

// claimTemplate creates the template "late" of claims of a device.
func (l *lab) claimTemplate() {
	l.Helper()
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "late"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: l.ns, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
	}}
	l.must(l.c.Create(l.Context(), template))
}

// fromTemplate has a pod use a claim of its own.
func fromTemplate(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimTemplateName: &name}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
}

// Pods wait for claims that are made from a template which comes later.
func TestWokenByAClaimTemplate(t *testing.T) {
	l := newLab(t, 1, 0)
	l.devices(l.ns+"-node-0", 4)
	l.group("g", simple(3))
	l.pods("g", "", 3, 0, fromTemplate("late"))
	l.hadItsTurn()
	l.none("g")
	l.claimTemplate()
	l.bindsSoon("g", 3)
	l.noLostWakeups()
}

// Pods wait for volumes that are provisioned later.
func TestWokenByAVolume(t *testing.T) {
	l := newLab(t, 1, 0)
	mode := storagev1.VolumeBindingImmediate
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: l.ns}, Provisioner: "example.com/none", VolumeBindingMode: &mode}
	l.must(l.c.Create(t.Context(), class))
	t.Cleanup(func() { _ = l.c.Delete(l.background(), class) })
	l.group("g", simple(2))
	for i := range 2 {
		name := fmt.Sprintf("g-%d", i)
		l.create(l.pod("g", "", name, 0, l.disk(name)))
	}
	l.waits("g", "PersistentVolumeClaims")
	l.none("g")
	for i := range 2 {
		pvc := &corev1.PersistentVolumeClaim{}
		l.must(l.c.Get(t.Context(), client.ObjectKey{Namespace: l.ns, Name: fmt.Sprintf("g-%d", i)}, pvc))
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", l.ns, i)}, Spec: corev1.PersistentVolumeSpec{
			StorageClassName: l.ns, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: l.ns, Name: pvc.Name, UID: pvc.UID},
		}}
		l.must(l.c.Create(t.Context(), pv))
		t.Cleanup(func() { _ = l.c.Delete(l.background(), pv) })
	}
	l.bindsSoon("g", 2)
	l.noLostWakeups()
}

// Members that the gang can do without are held by another plugin, since their
// claims are not there. Those that are ready are woken all the same.
func TestWokenBesideMembersThatAreHeld(t *testing.T) {
	wakes(t, map[string]wakeUp{
		"ByTheGroup": {
			reason: "The group comes last, so it has to wake pods that are known.",
			gpus:   4, bound: 1,
			wait: func(l *lab) func() {
				l.pods("g", "held", 12, 0, fromTemplate("never"))
				l.pods("g", "ready", 1, 1)
				l.hadItsTurn()

				return func() { l.group("g", tree(leaf("held", 0), leaf("ready", 1))) }
			},
		},
		"ByTheEndOfABackOff": {
			reason: "The gang did not fit and backs off when the room comes: its members wait for the end of the back-off.",
			gpus:   4, bound: 2,
			wait: func(l *lab) func() {
				other := l.pods("", "", 4, 1)
				l.runs("", 4)
				l.group("g", tree(leaf("held", 0), leaf("ready", 2)))
				l.pods("g", "ready", 2, 2)
				l.waits("g", "of min 2 pods")
				l.pods("g", "held", 12, 0, fromTemplate("never"))
				l.hadItsTurn()

				return func() {
					for _, pod := range other {
						l.must(l.c.Delete(l.Context(), pod))
					}
				}
			},
		},
	})
}
