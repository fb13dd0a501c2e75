package scheduling_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// evicted waits until a group, or a part of it, has no pods.
func (l *lab) evicted(group string, part ...string) {
	l.Helper()
	cluster.Eventually(l, "the pods of "+strings.Join(append([]string{group}, part...), "/")+" are evicted", func() error {
		if left := l.members(group, part...); len(left) > 0 {
			return fmt.Errorf("%d of them are left", len(left))
		}

		return nil
	})
}

// patience is a grace period.
func patience(d time.Duration) *v2alpha2.Duration { return &v2alpha2.Duration{Duration: d} }

// elapse returns when a grace period that starts now is over for a gang of the
// shared scheduler. Grace periods of the lab's scheduler that started before are
// over by then too.
func (l *lab) elapse(grace time.Duration) {
	l.Helper()
	l.made++
	name := fmt.Sprintf("canary-%d", l.made)
	l.group(name, v2alpha2.PodGroupSpec{MinMember: num(2), StalenessGracePeriod: patience(grace)})
	pods := l.pods(name, "", 2, 0, func(p *corev1.Pod) { p.Spec.SchedulerName = sharedName })
	l.runs(name, 2)
	l.must(l.c.Delete(l.Context(), pods[0]))
	l.evicted(name)
}

// staleness is the annotation of group g.
func (l *lab) staleness() string {
	l.Helper()
	pg := &v2alpha2.PodGroup{}
	l.must(l.c.Get(l.Context(), client.ObjectKey{Namespace: l.ns, Name: "g"}, pg))

	return pg.Annotations[v2alpha2.StalenessAnnotation]
}

// clock waits until the clock of group g is stored.
func (l *lab) clock() string {
	l.Helper()
	var text string
	cluster.Eventually(l, "the clock of g is stored", func() error {
		if text = l.staleness(); !strings.Contains(text, "since") {
			return fmt.Errorf("the annotation is %q", text)
		}

		return nil
	})

	return text
}

// evictedByClock waits until group g has no pods. Until then, its clock is the one that
// was stored before: one that starts again is another annotation for a whole grace period.
func (l *lab) evictedByClock(text string) {
	l.Helper()
	l.within(longest, "the pods of g are evicted", func() error {
		if now := l.staleness(); now != text && now != "" {
			return fmt.Errorf("the annotation was %s and is %s: %w", text, now, errNever)
		}
		if left := l.members("g"); len(left) > 0 {
			return fmt.Errorf("%d of them are left, the first since %v; the annotation is %q", len(left), left[0].DeletionTimestamp, l.staleness())
		}

		return nil
	})
}

// A change of the spec evicts nothing that runs. A loss afterwards does.
func TestSpecIsNotStale(t *testing.T) {
	t.Parallel()
	const grace = 500 * time.Millisecond
	cases := map[string]struct {
		reason string
		edit   func(*v2alpha2.PodGroupSpec)
	}{
		"MinMemberRaised": {
			"A larger minimum is for the pods that come.",
			func(s *v2alpha2.PodGroupSpec) { s.MinMember = num(9) },
		},
		"MinSubGroupMistyped": {
			"A gang cannot lose subgroups that it never had.",
			func(s *v2alpha2.PodGroupSpec) { s.MinSubGroup = num(30) },
		},
		"SubGroupAdded": {
			"A further subgroup has no pods yet.",
			func(s *v2alpha2.PodGroupSpec) { s.SubGroups = append(s.SubGroups, leaf("c", 2)) },
		},
		"SubGroupRaised": {
			"The same holds for a subgroup as for the gang.",
			func(s *v2alpha2.PodGroupSpec) { s.SubGroups[1].MinMember = num(5) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 1, 4)
			spec := tree(leaf("a", 2), leaf("b", 2))
			spec.MinMember, spec.StalenessGracePeriod = num(4), patience(grace)
			pg := l.group("g", spec)
			a := l.pods("g", "a", 2, 1)
			l.pods("g", "b", 2, 1)
			l.runs("g", 4)
			l.says("g", metav1.ConditionTrue)
			change(l, pg, func(pg *v2alpha2.PodGroup) { tc.edit(&pg.Spec) })
			l.says("g", metav1.ConditionFalse)
			l.elapse(grace)
			l.elapse(grace)
			if left := l.names("g"); len(left) != 4 {
				t.Fatalf("%s\nof four pods %v are left", tc.reason, left)
			}

			l.must(l.c.Delete(t.Context(), a[0]))
			l.evicted("g")
		})
	}
}

// Gangs that never met their minimum under Arbor are not stale.
func TestTakenOverIsNotStale(t *testing.T) {
	const grace = 500 * time.Millisecond
	l := newLab(t, 1, 8)
	placed := func(p *corev1.Pod) { p.Spec.NodeName = l.ns + "-node-0" }
	// KAI counts minMember for leaves only.
	spec := tree(leaf("a", 2), leaf("b", 2))
	spec.MinMember, spec.StalenessGracePeriod = num(6), patience(grace)
	l.group("kai", spec)
	l.pods("kai", "a", 2, 1, placed)
	l.pods("kai", "b", 2, 1, placed)
	// Pods that are annotated one by one join the group one by one.
	late := l.pods("", "", 3, 1, placed)
	l.group("late", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: patience(grace)})
	for _, pod := range late {
		change(l, pod, func(p *corev1.Pod) { p.Annotations = map[string]string{groupAnnotation: "late"} })
	}
	l.says("late", metav1.ConditionFalse)
	l.says("kai", metav1.ConditionFalse)
	l.elapse(grace)
	l.must(l.c.Delete(t.Context(), late[0]))
	l.elapse(grace)
	if kai, left := l.names("kai"), l.names(""); len(kai) != 4 || len(left) != 2 {
		t.Errorf("of four pods %v are left, and of two %v", kai, left)
	}
}

// Each replica has a grace period of its own.
func TestStaleClocksApart(t *testing.T) {
	const grace = 6 * time.Second
	l := newLab(t, 1, 6)
	spec := tree(leaf("r0", 2), leaf("r1", 2), leaf("r2", 2))
	spec.MinSubGroup, spec.StalenessGracePeriod = num(1), patience(grace)
	l.group("g", spec)
	var replicas [][]*corev1.Pod
	for _, r := range []string{"r0", "r1", "r2"} {
		replicas = append(replicas, l.pods("g", r, 2, 1))
	}
	l.runs("g", 6)

	l.must(l.c.Delete(t.Context(), replicas[0][0]))
	l.elapse(grace / 3)
	broken := time.Now()
	l.must(l.c.Delete(t.Context(), replicas[1][0]))
	l.evicted("g", "r0")
	l.evicted("g", "r1")
	if had := time.Since(broken); had < grace {
		t.Errorf("the second replica was evicted after %s, when the grace period of the first was over", had)
	}
	l.runs("g", 2, "r2")
}

// A pod that is lost as soon as its replica is bound is a loss, although the
// replicas were placed one after the other.
func TestStaleFromTheStart(t *testing.T) {
	l := newLab(t, 1, 6)
	spec := tree(leaf("r0", 2), leaf("r1", 2), leaf("r2", 2))
	spec.MinSubGroup, spec.StalenessGracePeriod = num(1), patience(500*time.Millisecond)
	l.group("g", spec)
	first := l.pods("g", "r0", 2, 1)
	l.pods("g", "r1", 2, 1)
	l.pods("g", "r2", 2, 1)
	cluster.Eventually(t, "the first replica is bound", func() error {
		if n := l.bound("g", "r0"); n != 2 {
			return fmt.Errorf("%d of 2 pods are", n)
		}

		return nil
	})
	l.must(l.c.Delete(t.Context(), first[0], client.GracePeriodSeconds(0)))
	l.evicted("g", "r0")
	l.runs("g", 2, "r1")
	l.runs("g", 2, "r2")
}

// A scheduler that starts continues with the clock of the one before.
func TestStaleRestart(t *testing.T) {
	const grace = 12 * time.Second
	l := newLab(t, 1, 4).own("--stale-grace=" + grace.String())
	l.group("g", simple(4))
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)
	// A gang that takes long to be bound may have it until all of its pods are seen.
	cluster.Eventually(t, "a healthy gang has no annotation", func() error {
		if text := l.staleness(); text != "" {
			return fmt.Errorf("it has %s", text)
		}

		return nil
	})
	broken := time.Now()
	l.must(l.c.Delete(t.Context(), pods[0]))
	text := l.clock()
	l.scheduler.Kill()
	l.elapse(grace / 3)

	l.own("--stale-grace=" + grace.String())
	l.evictedByClock(text)
	if had := time.Since(broken); had < grace {
		t.Errorf("the gang was evicted after %s", had)
	}
}

// A scheduler that starts learns from the status what was lost before.
func TestStaleLostWhileDown(t *testing.T) {
	l := newLab(t, 1, 8).own("--stale-grace=1s")
	l.group("lost", simple(4))
	lost := l.pods("lost", "", 4, 1)
	raised := l.group("raised", simple(4))
	l.pods("raised", "", 4, 1)
	l.runs("lost", 4)
	l.runs("raised", 4)
	l.says("lost", metav1.ConditionTrue)
	l.says("raised", metav1.ConditionTrue)
	l.scheduler.Kill()
	l.must(l.c.Delete(t.Context(), lost[0]))
	change(l, raised, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(6) })
	l.own("--stale-grace=1s")
	l.evicted("lost")
	l.elapse(time.Second)
	l.runs("raised", 4)
}

// An edit of a broken gang does not start its clock again.
func TestStaleEdited(t *testing.T) {
	const grace = 9 * time.Second
	l := newLab(t, 1, 4)
	pg := l.group("g", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: patience(grace)})
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)
	l.must(l.c.Delete(t.Context(), pods[0]))
	text := l.clock()
	l.elapse(grace / 3)
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "system-cluster-critical" })
	l.evictedByClock(text)
	cluster.Eventually(t, "the annotation is removed", func() error {
		if now := l.staleness(); now != "" {
			return fmt.Errorf("it is %s", now)
		}

		return nil
	})
}

// A grace period of 0 is over at once, which is no reason to evict a gang while
// it is being bound.
func TestStaleAtOnce(t *testing.T) {
	l := newLab(t, 2, 32)
	l.group("g", v2alpha2.PodGroupSpec{MinMember: num(64), StalenessGracePeriod: patience(0)})
	pods := l.pods("g", "", 64, 1)
	l.runs("g", 64)
	l.elapse(500 * time.Millisecond)
	l.runs("g", 64)
	l.must(l.c.Delete(t.Context(), pods[0]))
	l.evicted("g")
}

// A replacement that cannot be bound does not count: the gang stays below its
// minimum, and is not left like that.
func TestStaleWhileBinding(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 4)
	late := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: l.ns}, Provisioner: "example.com/none", VolumeBindingMode: &late}
	l.must(l.c.Create(t.Context(), class))
	t.Cleanup(func() { l.must(l.c.Delete(l.background(), class)) })
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "never"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	l.must(l.c.Create(t.Context(), claim))
	l.group("g", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: patience(time.Second)})
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)

	l.create(l.pod("g", "", "spare", 1, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}
	}))
	l.waits("g")
	l.must(l.c.Delete(t.Context(), pods[0]))
	cluster.Eventually(t, "all that were bound are evicted", func() error {
		if left := l.names("g"); !slices.Equal(left, []string{"spare"}) {
			return fmt.Errorf("%v are left", left)
		}

		return nil
	})
}

// An annotation that is not valid is replaced.
func TestStaleAnnotationInvalid(t *testing.T) {
	l := newLab(t, 1, 4)
	pg := l.group("g", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: patience(-time.Second)})
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)
	spoil := func() {
		change(l, pg, func(pg *v2alpha2.PodGroup) {
			pg.Annotations = map[string]string{v2alpha2.StalenessAnnotation: "{"}
		})
	}
	spoil()
	cluster.Eventually(t, "it is removed", func() error {
		if l.staleness() != "" {
			return errors.New("it is there")
		}

		return nil
	})
	l.must(l.c.Delete(t.Context(), pods[0]))
	text := l.clock()
	spoil()
	if now := l.clock(); now != text {
		t.Errorf("the annotation was %s and is %s", text, now)
	}
	l.runs("g", 3)
}

// A gang that lost pods and does not get them back is evicted when its grace
// period is over; one whose grace period never ends stays.
func TestStale(t *testing.T) {
	l := newLab(t, 1, 8)
	l.group("patient", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: &v2alpha2.Duration{Duration: -time.Second}})
	patient := l.pods("patient", "", 4, 1)
	l.group("broken", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: &v2alpha2.Duration{Duration: 500 * time.Millisecond}})
	broken := l.pods("broken", "", 4, 1, lingering)
	l.runs("patient", 4)
	l.runs("broken", 4)

	l.must(l.c.Delete(t.Context(), patient[0]))
	change(l, broken[0], func(p *corev1.Pod) { p.Finalizers = nil })
	l.must(l.c.Delete(t.Context(), broken[0]))
	l.evicted("broken")
	for _, pod := range broken[1:] {
		l.must(l.c.Get(t.Context(), key(pod), pod))
		if c := condition(pod, corev1.DisruptionTarget); c == nil || c.Reason != "GangBelowMinimum" {
			t.Errorf("pod %s has conditions %v", pod.Name, pod.Status.Conditions)
		}
		change(l, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	}
	l.runs("patient", 3)
}

// A gang that gets its pods back within the grace period stays.
func TestStaleRecovered(t *testing.T) {
	l := newLab(t, 1, 4)
	const grace = 30 * time.Second // a slow machine recovers in time, too
	l.group("mended", v2alpha2.PodGroupSpec{MinMember: num(4), StalenessGracePeriod: &v2alpha2.Duration{Duration: grace}})
	pods := l.pods("mended", "", 4, 1)
	l.runs("mended", 4)
	l.create(l.pod("mended", "", "spare", 1))
	l.waits("mended")
	l.must(l.c.Delete(t.Context(), pods[0]))
	l.runs("mended", 4)

	// Another gang is broken later. When it is evicted, the first would have been.
	l.group("later", v2alpha2.PodGroupSpec{MinMember: num(2), StalenessGracePeriod: &v2alpha2.Duration{Duration: grace}})
	later := l.pods("later", "", 2, 0)
	l.runs("later", 2)
	l.must(l.c.Delete(t.Context(), later[0]))
	l.evicted("later")
	l.runs("mended", 4)
}

// Succeeded pods are not evicted.
func TestFinishedIsNotStale(t *testing.T) {
	l := newLab(t, 1, 8)
	// Until it is seen in its new phase, a pod may be missing: pods that have succeeded come
	// by another watch.
	short := patience(5 * time.Second)
	l.group("done", v2alpha2.PodGroupSpec{MinMember: num(3), StalenessGracePeriod: short})
	done := l.pods("done", "", 3, 1)
	l.runs("done", 3)
	for _, pod := range done {
		l.phase(pod, corev1.PodSucceeded)
	}
	l.must(l.c.Delete(t.Context(), done[0]))

	// Another gang is broken later. When it is evicted, the first would have been.
	l.group("later", v2alpha2.PodGroupSpec{MinMember: num(2), StalenessGracePeriod: short})
	later := l.pods("later", "", 2, 1)
	l.runs("later", 2)
	l.must(l.c.Delete(t.Context(), later[0]))
	l.evicted("later")
	if left := l.names("done"); len(left) != 2 {
		t.Errorf("of two pods that have succeeded, %v are left", left)
	}
}

// A broken optional replica is evicted alone; when too few replicas are left, all
// are evicted.
func TestStaleBySubGroup(t *testing.T) {
	l := newLab(t, 1, 8)
	spec := v2alpha2.PodGroupSpec{MinSubGroup: num(1), StalenessGracePeriod: &v2alpha2.Duration{Duration: 500 * time.Millisecond}}
	for _, r := range []string{"r0", "r1"} {
		spec.SubGroups = append(spec.SubGroups, v2alpha2.SubGroup{Name: r}, leaf(r+"-leader", 1, r), leaf(r+"-workers", 3, r))
	}
	l.group("g", spec)
	var all []*corev1.Pod
	for _, r := range []string{"r0", "r1"} {
		all = slices.Concat(all, l.pods("g", r+"-leader", 1, 1), l.pods("g", r+"-workers", 3, 1))
	}
	l.runs("g", 8)

	l.must(l.c.Delete(t.Context(), all[7])) // a worker of r1
	l.evicted("g", "r1-leader")
	l.evicted("g", "r1-workers")
	l.runs("g", 4)

	l.must(l.c.Delete(t.Context(), all[0])) // the leader of r0
	l.evicted("g")
}
