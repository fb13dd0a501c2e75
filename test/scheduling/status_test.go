package scheduling_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// shows waits until the status of a group is as check wants it.
func (l *lab) shows(group, what string, check func(*v2alpha2.PodGroupStatus) bool) {
	l.Helper()
	cluster.Eventually(l, "PodGroup "+group+" "+what, func() error {
		pg := &v2alpha2.PodGroup{}
		if err := l.c.Get(l.Context(), client.ObjectKey{Namespace: l.ns, Name: group}, pg); err != nil {
			return err
		}
		if !check(&pg.Status) {
			text, err := json.Marshal(pg.Status)

			return fmt.Errorf("its status is %s (%w)", text, err)
		}

		return nil
	})
}

// hasReason waits until a condition of a group has a reason.
func (l *lab) hasReason(group string, kind v2alpha2.PodGroupConditionType, reason string) {
	l.Helper()
	l.shows(group, "has the reason "+reason, func(status *v2alpha2.PodGroupStatus) bool {
		return slices.ContainsFunc(status.Conditions, func(c v2alpha2.PodGroupCondition) bool { return c.Type == kind && c.Reason == reason })
	})
}

// told waits until a pod has the condition PodScheduled with a reason and a text.
func (l *lab) told(pod *corev1.Pod, reason, text string) {
	l.Helper()
	cluster.Eventually(l, "pod "+pod.Name+" has the reason "+reason, func() error {
		if err := l.c.Get(l.Context(), key(pod), pod); err != nil {
			return err
		}
		if c := condition(pod, corev1.PodScheduled); c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("its condition is %v", c)
		}

		return nil
	})
}

// A decision that was made before an edit is not shown with the new tree: the
// scheduler survives the edit and reports what the group lacks now.
func TestSubGroupAddedToUnschedulable(t *testing.T) {
	l := newLab(t, 1, 8).own()
	pg := l.group("g", tree(leaf("a", 9)))
	l.pods("g", "a", 9, 1)
	l.says("g", "False", `subgroup "a": room for 8 of min 9 pods`)

	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups = append(pg.Spec.SubGroups, leaf("b", 1)) })
	l.hasReason("g", v2alpha2.PodGroupScheduled, v2alpha2.ReasonTooFewPods)
	l.says("g", "False", `subgroup "b" has 0 of min 1 pods`)

	// The same process places it once there is room.
	l.addNodes(1, 8)
	l.pods("g", "b", 1, 1)
	l.runs("g", 10)
	l.says("g", "True")
	if n := l.scheduler.Sum(l, "arbor_gang_panics_total"); n != 0 {
		t.Errorf("%v panics were recovered from", n)
	}
}

// No node helps a pod that waits for its siblings, so autoscalers must not see it
// as Unschedulable: neither in an optional subgroup of a gang that runs, nor in a
// gang whose other pods have scheduling gates.
func TestWaitingForSiblings(t *testing.T) {
	l := newLab(t, 1, 8)
	spec := tree(leaf("r0", 2), leaf("r1", 3))
	spec.MinSubGroup = num(1)
	l.group("replicas", spec)
	l.pods("replicas", "r0", 2, 1)
	alone := l.pods("replicas", "r1", 1, 1)[0]
	l.runs("replicas", 2, "r0")
	l.told(alone, "SubGroupIncomplete", `subgroup "r1" has 1 of min 3 pods; the gang itself is scheduled`)
	l.says("replicas", "True")

	l.group("gated", simple(3))
	open := l.pods("gated", "", 2, 1)[0]
	closed := l.pod("gated", "", "gated-closed", 1, func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	})
	l.create(closed)
	l.told(open, v2alpha2.ReasonTooFewPods, "pods with scheduling gates: 1")
	l.told(closed, corev1.PodReasonSchedulingGated, "")

	change(l, closed, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
	l.runs("gated", 3)
}

// A group that is satisfied is Scheduled, whatever the last attempt to place it
// has found.
func TestSatisfiedAfterAFailedAttempt(t *testing.T) {
	l := newLab(t, 1, 4)
	pg := l.group("g", simple(4))
	pods := l.pods("g", "", 4, 1)
	l.runs("g", 4)
	l.must(l.c.Delete(t.Context(), pods[3], client.GracePeriodSeconds(0)))
	l.takesAll(1)
	last := l.pod("g", "", "last", 1)
	l.create(last)
	l.says("g", "False", "missing to min 4")

	l.must(l.c.Delete(t.Context(), last))
	change(l, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(3) })
	l.says("g", "True")
}

// A required topology level is not dropped silently.
func TestRequiredTopology(t *testing.T) {
	l := newLab(t, 1, 4)
	spec := tree(leaf("a", 2))
	spec.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "dc", RequiredTopologyLevel: "rack"}
	pg := l.group("g", spec)
	pods := l.pods("g", "a", 2, 1)
	l.hasReason("g", v2alpha2.PodGroupScheduled, v2alpha2.ReasonTopologyNotSupported)
	l.told(pods[0], v2alpha2.ReasonTopologyNotSupported, `subgroup "a" requires the topology level "rack"`)
	l.takesAll(4)
	l.none("g")
	l.end("")

	change(l, pg, func(pg *v2alpha2.PodGroup) {
		pg.Spec.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "dc", PreferredTopologyLevel: "rack"}
	})
	l.runs("g", 2)
}

// A group that names a PriorityClass which does not exist is placed, and has a
// condition until it does.
func TestPriorityClassMissing(t *testing.T) {
	l := newLab(t, 1, 4)
	spec := simple(2)
	spec.PriorityClassName = l.ns
	l.group("g", spec)
	l.pods("g", "", 2, 1)
	l.runs("g", 2)
	l.hasReason("g", v2alpha2.PodGroupPriorityClassFound, v2alpha2.ReasonPriorityClassNotFound)

	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.ns}, Value: 7}
	l.must(l.c.Create(t.Context(), class))
	t.Cleanup(func() { l.must(l.c.Delete(l.background(), class)) })
	l.shows("g", "has its PriorityClass", func(status *v2alpha2.PodGroupStatus) bool {
		return !slices.ContainsFunc(status.Conditions, func(c v2alpha2.PodGroupCondition) bool { return c.Type == v2alpha2.PodGroupPriorityClassFound })
	})
}

// KAI's tools find what they read: an entry of status.schedulingConditions while
// there is no room, and the sums of resources.
func TestStatusForKAI(t *testing.T) {
	l := newLab(t, 1, 2)
	l.gang("g", 3)
	is := func(list corev1.ResourceList, n int64) bool {
		q, ok := list[gpu]

		return ok == (n > 0) && q.Value() == n
	}
	l.shows("g", "is unschedulable", func(s *v2alpha2.PodGroupStatus) bool {
		if len(s.SchedulingConditions) != 1 {
			return false
		}
		c := s.SchedulingConditions[0]

		return c.Type == v2alpha2.UnschedulableOnNodePool && c.NodePool == "default" && c.Status == corev1.ConditionTrue && c.TransitionID == "1" &&
			c.Reason == v2alpha2.ReasonUnschedulable && len(c.Reasons) == 1 && strings.Contains(c.Reasons[0].Message, "of min 3 pods") &&
			is(s.ResourcesStatus.Requested, 3) && is(s.ResourcesStatus.Allocated, 0)
	})

	l.addNodes(1, 1)
	l.runs("g", 3)
	l.shows("g", "is placed", func(s *v2alpha2.PodGroupStatus) bool {
		return len(s.SchedulingConditions) == 0 && is(s.ResourcesStatus.Requested, 3) && is(s.ResourcesStatus.Allocated, 3) &&
			is(s.ResourcesStatus.AllocatedNonPreemptible, 0)
	})
	// What a merge patch does not mention would stay.
	l.must(l.c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(l.ns), client.GracePeriodSeconds(0)))
	l.shows("g", "has nothing", func(s *v2alpha2.PodGroupStatus) bool {
		return is(s.ResourcesStatus.Requested, 0) && is(s.ResourcesStatus.Allocated, 0)
	})
}

// A pod that has a node and is not bound to it yet is not placed.
func TestBindingIsNotScheduled(t *testing.T) {
	l := newLab(t, 1, 4)
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: l.ns}, Provisioner: "example.com/none", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	l.must(l.c.Create(t.Context(), class))
	t.Cleanup(func() { l.must(l.c.Delete(l.background(), class)) })
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: "never"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	l.must(l.c.Create(t.Context(), claim))
	l.group("g", simple(2))
	l.create(l.pod("g", "", "quick", 1), l.pod("g", "", "hangs", 1, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}
	}))
	l.hasReason("g", v2alpha2.PodGroupScheduled, v2alpha2.ReasonBinding)
}

// kubectl get podgroups shows whether a group is scheduled, in lines that fit on
// a terminal, and with -o wide why it is not.
func TestColumns(t *testing.T) {
	l := newLab(t, 1, 1)
	l.group("llama-70b-pretraining-run-0042", v2alpha2.PodGroupSpec{MinMember: num(512), Queue: "research-team-a"})
	l.hasReason("llama-70b-pretraining-run-0042", v2alpha2.PodGroupScheduled, v2alpha2.ReasonTooFewPods)
	clients, err := kubernetes.NewForConfig(server.Config)
	l.must(err)
	raw, err := clients.RESTClient().Get().AbsPath("/apis/scheduling.run.ai/v2alpha2/namespaces/"+l.ns+"/podgroups").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	l.must(err)
	table := &metav1.Table{}
	l.must(json.Unmarshal(raw, table))
	width := -3 // after the last column comes nothing
	shown := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		shown[column.Name] = table.Rows[0].Cells[i]
		if column.Priority == 0 {
			width += max(len(column.Name), len(fmt.Sprint(table.Rows[0].Cells[i]))) + 3
		}
	}
	if width > 100 || shown["Scheduled"] != "False" || shown["Message"] != "it has 0 of min 512 pods" {
		t.Errorf("the columns are %v, %d characters wide", shown, width)
	}
	if _, ok := shown["Valid"]; !ok {
		t.Errorf("the column Valid is missing in %v", shown)
	}
}
