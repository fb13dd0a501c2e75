package scheduling_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

var began = metav1.NewTime(time.Unix(1_700_000_000, 0))

func num(n int32) *int32 { return &n }

func group(groups ...v2alpha2.SubGroup) *v2alpha2.PodGroup {
	return &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "bert", Generation: 3},
		Spec:       v2alpha2.PodGroupSpec{MinMember: num(2), SubGroups: groups},
	}
}

func leaf(name string) v2alpha2.SubGroup { return v2alpha2.SubGroup{Name: name, MinMember: num(1)} }

func under(parent, name string) v2alpha2.SubGroup {
	return v2alpha2.SubGroup{Name: name, Parent: &parent, MinMember: num(1)}
}

// pod makes a pod of a subgroup, and changes it.
func pod(name, subGroup string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml", Name: name, CreationTimestamp: began,
			Annotations: map[string]string{scheduling.GroupAnnotation: "bert"},
		},
		Spec: corev1.PodSpec{SchedulerName: "arbor-scheduler"},
	}
	if subGroup != "" {
		p.Labels = map[string]string{scheduling.SubGroupLabel: subGroup}
	}
	for _, c := range change {
		c(p)
	}

	return p
}

func bound(p *corev1.Pod)     { p.Spec.NodeName = "node-1" }
func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
func failed(p *corev1.Pod)    { p.Status.Phase = corev1.PodFailed }
func going(p *corev1.Pod)     { p.DeletionTimestamp = &began }
func other(p *corev1.Pod)     { p.Spec.SchedulerName = "default-scheduler" }
func gated(p *corev1.Pod)     { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }
func urgent(p *corev1.Pod)    { p.Spec.Priority = num(7) }
func late(p *corev1.Pod)      { p.CreationTimestamp = metav1.NewTime(began.Add(time.Second)) }

func TestGroupOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		pod    *corev1.Pod
		want   types.NamespacedName
		ok     bool
	}{
		"Named": {reason: "the annotation names a group of the pod's namespace", pod: pod("a", ""), want: types.NamespacedName{Namespace: "ml", Name: "bert"}, ok: true},
		"Plain": {reason: "a pod without annotations is plain", pod: &corev1.Pod{}},
		"Empty": {
			reason: "so is one with an empty annotation", want: types.NamespacedName{Namespace: "ml"},
			pod: pod("a", "", func(p *corev1.Pod) { p.Annotations[scheduling.GroupAnnotation] = "" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := scheduling.GroupOf(tc.pod); got != tc.want || ok != tc.ok {
				t.Errorf("%s\nGroupOf(...) = %v, %t, want %v, %t", tc.reason, got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		group  *v2alpha2.PodGroup
		pods   []*corev1.Pod
		want   []string
	}{
		"NoSubGroups": {
			reason: "without subgroups all pods belong to the one leaf", group: group(),
			pods: []*corev1.Pod{pod("b", ""), pod("a", "default")}, want: []string{"a default waiting", "b default waiting"},
		},
		"SubGroups": {
			reason: "pods belong to the leaf that their label names", group: group(leaf("x"), under("x", "y"), leaf("z")),
			pods: []*corev1.Pod{pod("a", "y"), pod("b", "z")}, want: []string{"a y waiting", "b z waiting"},
		},
		"DefaultSubGroup": {
			reason: "a subgroup may be named default, and has the pods that name none", group: group(leaf("default"), leaf("z")),
			pods: []*corev1.Pod{pod("a", ""), pod("b", "z")}, want: []string{"a default waiting", "b z waiting"},
		},
		"Order": {
			reason: "important pods come first, then old ones, then the alphabet", group: group(),
			pods: []*corev1.Pod{pod("a", "", late), pod("c", ""), pod("b", ""), pod("d", "", late, urgent)},
			want: []string{"d default waiting", "b default waiting", "c default waiting", "a default waiting"},
		},
		"States": {
			reason: "pods on a node and finished ones have a place, gated ones may not have one yet", group: group(),
			pods: []*corev1.Pod{pod("a", "", bound), pod("b", "", succeeded), pod("c", "", gated), pod("d", "", bound, gated)},
			want: []string{"a default placed", "b default placed", "c default held", "d default placed"},
		},
		"Gone": {
			reason: "failed pods and those that are going away do not count", group: group(leaf("x")),
			pods: []*corev1.Pod{pod("a", "x", failed), pod("b", "x", bound, going), pod("c", "unknown", failed), pod("d", "x")},
			want: []string{"d x waiting"},
		},
		"OldCase": {
			reason: "lists that were stored before there was a rule are read as they always were",
			group:  group(leaf("x"), under("X", "Y")), pods: []*corev1.Pod{pod("a", "Y")}, want: []string{"a Y waiting"},
		},
		"PlacedElsewhere": {
			reason: "pods that have a place may have got it from another scheduler", group: group(),
			pods: []*corev1.Pod{pod("a", "", bound, other), pod("b", "")}, want: []string{"a default placed", "b default waiting"},
		},
		"Nobody": {reason: "a group may have no pods yet", group: group()},
		"PreferredTopology": {
			reason: "a preferred topology level refuses nothing",
			group:  group(v2alpha2.SubGroup{Name: "x", TopologyConstraint: &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "rack"}}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, refusal := scheduling.Read(tc.group, tc.pods, gang.Rules{LeavesOnly: true})
			if refusal != nil {
				t.Fatalf("%s\nRead(...) refuses: %s", tc.reason, refusal.Message)
			}
			var got []string
			for i, m := range g.Members {
				if m.Name != g.Pods[i].Name {
					t.Errorf("member %d is %s, and the pod is %s", i, m.Name, g.Pods[i].Name)
				}
				state := [...]string{"waiting", "placed", "held"}[m.State]
				got = append(got, fmt.Sprint(m.Name, " ", g.Tree.Node(m.Leaf).Name, " ", state))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRead(...): -want, +got:\n%s", tc.reason, diff)
			}
			if !g.Rules.LeavesOnly || g.Group != tc.group {
				t.Errorf("the gang has rules %v and group %v", g.Rules, g.Group)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	seven := group()
	for i := range 7 {
		seven.Spec.SubGroups = append(seven.Spec.SubGroups, leaf("s"+strconv.Itoa(i)))
	}
	deleted := group()
	deleted.DeletionTimestamp = &began
	rack := group(leaf("x"))
	rack.Spec.TopologyConstraint.RequiredTopologyLevel = "rack"
	near := v2alpha2.SubGroup{Name: "near", TopologyConstraint: &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "host"}}
	cases := map[string]struct {
		reason string
		group  *v2alpha2.PodGroup
		pods   []*corev1.Pod
		want   scheduling.Refusal
	}{
		"Topology": {
			reason: "a required topology level is not dropped silently", group: rack,
			want: scheduling.Refusal{Reason: "TopologyNotSupported", Message: `PodGroup "bert" requires the topology level "rack", which this scheduler cannot guarantee: remove spec.topologyConstraint.requiredTopologyLevel, or use preferredTopologyLevel`},
		},
		"SubGroupTopology": {
			reason: "nor is that of a subgroup", group: group(leaf("x"), near),
			want: scheduling.Refusal{Reason: "TopologyNotSupported", Message: `subgroup "near" requires the topology level "host", which this scheduler cannot guarantee: remove spec.subGroups[1].topologyConstraint.requiredTopologyLevel, or use preferredTopologyLevel`},
		},
		"Deleted": {
			reason: "a group that goes away places nothing more", group: deleted,
			want: scheduling.Refusal{Reason: "Terminating", Message: `PodGroup "bert" is being deleted: create it again once it is gone`},
		},
		"MissingParent": {
			reason: "a bad tree is never read as a weaker one", group: group(leaf("workers"), under("mastre", "x")),
			want: scheduling.Refusal{Reason: "Invalid", Message: `cannot use subgroup "x" (subGroups[1]): its parent "mastre" is not in the list; add a subgroup named "mastre" or remove the parent`},
		},
		"Cycle": {
			reason: "whatever is wrong with it", group: group(under("b", "a"), under("a", "b")),
			want: scheduling.Refusal{Reason: "Invalid", Message: `cannot use subgroup "a" (subGroups[0]): it is its own ancestor; remove the parent of one of them`},
		},
		"NoLabel": {
			reason: "a pod that names no subgroup belongs nowhere", group: seven, pods: []*corev1.Pod{pod("a", "s0"), pod("b", "")},
			want: scheduling.Refusal{Reason: "NoSubGroup", Message: `pod "b" names no subgroup of PodGroup "bert": set its label kai.scheduler/subgroup-name to one of "s0", "s1", "s2", "s3", "s4" and 2 more`},
		},
		"Unknown": {
			reason: "nor does one that names another", group: group(leaf("x"), leaf("y")), pods: []*corev1.Pod{pod("a", "X")},
			want: scheduling.Refusal{Reason: "UnknownSubGroup", Message: `pod "a" names the subgroup "X", which PodGroup "bert" does not have: set its label kai.scheduler/subgroup-name to one of "x", "y"`},
		},
		"UnknownPlaced": {
			reason: "also if it has a place: nobody could say what it counts for", group: group(leaf("x")), pods: []*corev1.Pod{pod("a", "z", bound)},
			want: scheduling.Refusal{Reason: "UnknownSubGroup", Message: `pod "a" names the subgroup "z", which PodGroup "bert" does not have: set its label kai.scheduler/subgroup-name to "x"`},
		},
		"Inner": {
			reason: "pods belong to leaves, and those below are proposed", group: group(leaf("x"), under("x", "y"), leaf("z")),
			pods: []*corev1.Pod{pod("a", "x")},
			want: scheduling.Refusal{Reason: "UnknownSubGroup", Message: `pod "a" names the subgroup "x" of PodGroup "bert", which has subgroups instead of pods: set its label kai.scheduler/subgroup-name to "y"`},
		},
		"LabelWithoutSubGroups": {
			reason: "a label that means nothing is a mistake", group: group(), pods: []*corev1.Pod{pod("a", "x")},
			want: scheduling.Refusal{Reason: "UnknownSubGroup", Message: `pod "a" names the subgroup "x", but PodGroup "bert" has no subgroups: remove its label kai.scheduler/subgroup-name`},
		},
		"Schedulers": {
			reason: "two schedulers would each see a part", group: group(), pods: []*corev1.Pod{pod("a", ""), pod("b", "", gated, other)},
			want: scheduling.Refusal{Reason: "SchedulersDiffer", Message: `pod "a" asks for the scheduler "arbor-scheduler" and pod "b" for "default-scheduler": give all pods of PodGroup "bert" the same schedulerName`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, refusal := scheduling.Read(tc.group, tc.pods, gang.Rules{})
			if g != nil || refusal == nil {
				t.Fatalf("%s\nRead(...) = %v, want a refusal", tc.reason, g)
			}
			if diff := cmp.Diff(tc.want, *refusal); diff != "" {
				t.Errorf("%s\nRead(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// full is a pod that has everything that a shape is about.
func full(change ...func(*corev1.Pod)) *corev1.Pod {
	p := pod("a", "x", change...)
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
		Name: "main", Image: "one",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	})

	return p
}

func TestShape(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	cases := map[string]struct {
		reason string
		change func(*corev1.Pod)
		same   bool
		unique bool
	}{
		"Nothing":     {reason: "equal pods are alike", change: func(*corev1.Pod) {}, same: true},
		"Name":        {reason: "names do not matter", change: func(p *corev1.Pod) { p.Name = "other" }, same: true},
		"Image":       {reason: "nor images", change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "two" }, same: true},
		"Annotations": {reason: "nor annotations", change: func(p *corev1.Pod) { p.Annotations["a"] = "b" }, same: true},
		"Port":        {reason: "nor ports inside", change: func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}} }, same: true},
		"ConfigMap": {reason: "nor volumes that are on every node", change: func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
		}, same: true},
		"Quantity":     {reason: "an amount can be written in two ways", change: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000m") }, same: true},
		"Namespace":    {reason: "affinity is about namespaces", change: func(p *corev1.Pod) { p.Namespace = "other" }},
		"Labels":       {reason: "and labels", change: func(p *corev1.Pod) { p.Labels["a"] = "b" }},
		"Affinity":     {reason: "affinity matters", change: func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }},
		"NodeSelector": {reason: "selectors matter", change: func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }},
		"Tolerations":  {reason: "tolerations matter", change: func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} }},
		"Spread": {reason: "spreading matters", change: func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
		}},
		"HostPort":    {reason: "ports of the node matter", change: func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }},
		"HostNetwork": {reason: "so does its network", change: func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
		"Requests":    {reason: "amounts matter", change: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }},
		"PodResources": {reason: "also of the pod", change: func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}
		}},
		"Overhead":  {reason: "and of its runtime", change: func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("1")} }},
		"Init":      {reason: "and of what begins", change: func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{}} }},
		"Sidecar":   {reason: "and stays", change: func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{RestartPolicy: &always}} }},
		"Scheduler": {reason: "schedulers differ", change: other},
		"Priority":  {reason: "so do priorities", change: urgent},
		"Claim": {reason: "a volume of its own makes a pod unique", unique: true, change: func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
		}},
		"ResourceClaim": {reason: "so does a device of its own", unique: true, change: func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{}} }},
		"Nominated":     {reason: "a nominated node is tried first, and changes nothing else", same: true, change: func(p *corev1.Pod) { p.Status.NominatedNodeName = "node-1" }},
	}
	seen := map[string]string{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plain, p := scheduling.Shape(full(), true), full()
			tc.change(p)
			got := scheduling.Shape(p, true)
			if (got == plain) != tc.same || (got == "") != tc.unique || plain == "" {
				t.Errorf("%s\nShape(...) = %q, that of the plain pod is %q", tc.reason, got, plain)
			}
			if twin := seen[got]; !tc.same && !tc.unique && twin != "" {
				t.Errorf("%s has the shape of %s", name, twin)
			}
			seen[got] = name
		})
	}
}

func BenchmarkRead(b *testing.B) {
	pods := make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = full()
		pods[i].Name = "pod-" + strconv.Itoa(i)
	}
	pg := group(leaf("x"))
	for b.Loop() {
		if _, refusal := scheduling.Read(pg, pods, gang.Rules{}); refusal != nil {
			b.Fatal(refusal.Message)
		}
	}
}
