package scheduling_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	groupAnnotation = "pod-group-name"
	subGroupLabel   = "kai.scheduler/subgroup-name"
	gpu             = corev1.ResourceName("nvidia.com/gpu")

	// labLabel keeps the pods of a test on the nodes of that test.
	labLabel = "test.arbor/lab"
	// groupLabel and partLabel are for the tests alone.
	groupLabel = "test.arbor/group"
	partLabel  = "test.arbor/part"
)

// A lab is a cluster in the cluster: a namespace, and nodes that no other test
// uses.
type lab struct {
	testing.TB

	c         client.Client
	ns        string
	scheduler *cluster.Scheduler
	// name is the scheduler that pods ask for.
	name string
	made int // nodes
}

// newLab has n nodes with so many GPUs each.
func newLab(t testing.TB, n, gpus int) *lab {
	t.Helper()

	return newLabOn(t, server, n, gpus)
}

// newLabOn is on another control plane.
func newLabOn(t testing.TB, up *cluster.Up, n, gpus int) *lab {
	t.Helper()
	c := up.Client(t, nil)
	l := &lab{TB: t, c: c, ns: cluster.Namespace(t, c), scheduler: shared, name: sharedName}
	t.Cleanup(l.clear)
	l.addNodes(n, gpus)

	return l
}

// own gives the lab a scheduler of its own, that answers to the lab's name.
func (l *lab) own(args ...string) *lab {
	l.Helper()
	l.name = l.ns
	l.scheduler = server.StartScheduler(l, append([]string{"--scheduler-name=" + l.name, "--v=2"}, args...)...)

	return l
}

// clear leaves nothing behind that could affect other tests. The namespace is deleted later.
func (l *lab) clear() {
	ctx := context.Background()
	for _, o := range []client.Object{&v2alpha2.PodGroup{}, &corev1.Pod{}} {
		l.must(l.c.DeleteAllOf(ctx, o, client.InNamespace(l.ns), client.GracePeriodSeconds(0)))
	}
	l.must(l.c.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels{labLabel: l.ns}))
	l.must(l.c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.ns}}))
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// addNodes makes nodes and waits until pods may be placed there.
func (l *lab) addNodes(n, gpus int) {
	l.Helper()
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	if gpus > 0 {
		resources[gpu] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	var names []string
	for range n {
		name := fmt.Sprintf("%s-node-%d", l.ns, l.made)
		l.made++
		names = append(names, name)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labLabel: l.ns, corev1.LabelHostname: name}},
			Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
		}
		l.must(l.c.Create(l.Context(), node))
	}
	cluster.Eventually(l, "the nodes are ready", func() error {
		for _, name := range names {
			node := &corev1.Node{}
			if err := l.c.Get(l.Context(), client.ObjectKey{Name: name}, node); err != nil {
				return err
			}
			ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			if !ready || len(node.Spec.Taints) > 0 {
				return fmt.Errorf("node %s has conditions %v and taints %v", name, node.Status.Conditions, node.Spec.Taints)
			}
		}

		return nil
	})
}

// num is a minimum.
func num(n int) *int32 { return new(int32(n)) }

// leaf is a subgroup with pods, below another if one is named.
func leaf(name string, minimum int, parent ...string) v2alpha2.SubGroup {
	s := v2alpha2.SubGroup{Name: name, MinMember: num(minimum)}
	if len(parent) > 0 {
		s.Parent = &parent[0]
	}

	return s
}

// group makes a PodGroup.
func (l *lab) group(name string, spec v2alpha2.PodGroupSpec) *v2alpha2.PodGroup {
	l.Helper()
	pg := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: name}, Spec: spec}
	l.must(l.c.Create(l.Context(), pg))

	return pg
}

// simple is a group without subgroups.
func simple(minimum int) v2alpha2.PodGroupSpec { return v2alpha2.PodGroupSpec{MinMember: num(minimum)} }

// tree is a group of subgroups.
func tree(subGroups ...v2alpha2.SubGroup) v2alpha2.PodGroupSpec {
	return v2alpha2.PodGroupSpec{SubGroups: subGroups}
}

// change edits the newest state of an object.
func change[T client.Object](l *lab, o T, edit func(T)) {
	l.Helper()
	for {
		l.must(l.c.Get(l.Context(), client.ObjectKeyFromObject(o), o))
		edit(o)
		err := l.c.Update(l.Context(), o)
		if !apierrors.IsConflict(err) {
			l.must(err)

			return
		}
	}
}

// pod is one member of a group; a group "" has none.
func (l *lab) pod(group, part, name string, gpus int, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: name, Labels: map[string]string{groupLabel: group, partLabel: part}},
		Spec: corev1.PodSpec{
			SchedulerName: l.name,
			NodeSelector:  map[string]string{labLabel: l.ns},
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/none"}},
		},
	}
	if group != "" {
		pod.Annotations = map[string]string{groupAnnotation: group}
	}
	if part != "" {
		pod.Labels[subGroupLabel] = part
	}
	if gpus > 0 {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	}
	for _, c := range change {
		c(pod)
	}

	return pod
}

// pods makes n members of one subgroup, "" if there are none.
func (l *lab) pods(group, part string, n, gpus int, change ...func(*corev1.Pod)) []*corev1.Pod {
	l.Helper()
	var all []*corev1.Pod
	for i := range n {
		name := strings.Join(slices.DeleteFunc([]string{group, part, fmt.Sprintf("%02d", i)}, func(s string) bool { return s == "" }), "-")
		if group == "" {
			name = "plain-" + name
		}
		all = append(all, l.pod(group, part, name, gpus, change...))
	}
	l.create(all...)

	return all
}

// create makes pods, some at a time.
func (l *lab) create(pods ...*corev1.Pod) {
	l.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(pods))
	limit := make(chan struct{}, 4)
	for i, pod := range pods {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			errs[i] = l.c.Create(l.Context(), pod)
		})
	}
	wg.Wait()
	l.must(errors.Join(errs...))
}

// gang makes a group of n pods of one GPU that needs all of them.
func (l *lab) gang(name string, n int, change ...func(*corev1.Pod)) {
	l.Helper()
	l.group(name, simple(n))
	l.pods(name, "", n, 1, change...)
}

// members are the pods of a group, and of one part of it if one is named, that
// no user has deleted.
func (l *lab) members(group string, part ...string) []corev1.Pod {
	l.Helper()
	want := client.MatchingLabels{groupLabel: group}
	if len(part) > 0 {
		want[partLabel] = part[0]
	}
	list := &corev1.PodList{}
	l.must(l.c.List(l.Context(), list, client.InNamespace(l.ns), want))

	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// bound is how many of them have a node.
func (l *lab) bound(group string, part ...string) int {
	l.Helper()

	return len(l.places(group, part...))
}

// places are their nodes, by pod.
func (l *lab) places(group string, part ...string) map[string]string {
	l.Helper()
	nodes := map[string]string{}
	for _, pod := range l.members(group, part...) {
		if pod.Spec.NodeName != "" {
			nodes[pod.Name] = pod.Spec.NodeName
		}
	}

	return nodes
}

// perNode is how many of them each node has, most first.
func perNode(places map[string]string) []int {
	count := map[string]int{}
	for _, node := range places {
		count[node]++
	}

	return slices.SortedFunc(maps.Values(count), func(a, b int) int { return b - a })
}

// runs waits until exactly n members run, and no other member has a node.
func (l *lab) runs(group string, n int, part ...string) {
	l.Helper()
	cluster.Eventually(l, fmt.Sprintf("%d pods of %s run", n, strings.Join(append([]string{group}, part...), "/")), func() error {
		running, bound := 0, 0
		for _, pod := range l.members(group, part...) {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		if running != n || bound != n {
			return fmt.Errorf("%d run, %d have a node; %s", running, bound, l.said(group))
		}

		return nil
	})
}

// waits is over when every member without a node has the reason as a message that contains all of
// texts, and all the same. It returns the message. How many found room is no good text: a message
// that differs in its figures only is not written again at once.
func (l *lab) waits(group string, texts ...string) *corev1.PodCondition {
	l.Helper()
	var told *corev1.PodCondition
	cluster.Eventually(l, "the pods of "+group+" have the reason why they wait", func() error {
		told = nil
		for _, pod := range l.members(group) {
			if pod.Spec.NodeName != "" {
				continue
			}
			c := condition(&pod, corev1.PodScheduled)
			if c == nil || c.Status != corev1.ConditionFalse {
				return fmt.Errorf("pod %s has no message", pod.Name)
			}
			if told != nil && c.Message != told.Message {
				return fmt.Errorf("two pods have the messages %q and %q", told.Message, c.Message)
			}
			told = c
		}
		if told == nil {
			return errors.New("no pod waits")
		}
		for _, text := range texts {
			if !strings.Contains(told.Message, text) {
				return fmt.Errorf("they have the message %q, which does not contain %q", told.Message, text)
			}
		}

		return nil
	})

	return told
}

// says waits until the PodGroup itself reports whether it is placed, and why.
func (l *lab) says(group string, status metav1.ConditionStatus, texts ...string) {
	l.Helper()
	cluster.Eventually(l, "PodGroup "+group+" says so", func() error {
		pg := &v2alpha2.PodGroup{}
		if err := l.c.Get(l.Context(), client.ObjectKey{Namespace: l.ns, Name: group}, pg); err != nil {
			return err
		}
		for _, c := range pg.Status.Conditions {
			missing := func(text string) bool { return !strings.Contains(c.Message, text) }
			if c.Type == v2alpha2.PodGroupScheduled && c.Status == status && !slices.ContainsFunc(texts, missing) {
				return nil
			}
		}

		return fmt.Errorf("its conditions are %v", pg.Status.Conditions)
	})
}

// said is what the members were told, for errors.
func (l *lab) said(group string) string {
	said := map[string]int{}
	for _, pod := range l.members(group) {
		if c := condition(&pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
			said[c.Message]++
		}
	}

	return fmt.Sprintf("told were %v", said)
}

// key names an object.
func key(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}

	return nil
}

// none has no member of the group on a node.
func (l *lab) none(group string) {
	l.Helper()
	if places := l.places(group); len(places) > 0 {
		l.Fatalf("a part of gang %s is placed: %v", group, places)
	}
}

// holdsNothing waits until the scheduler has no place for any pod that is not bound in the API
// server.
func (l *lab) holdsNothing() {
	l.Helper()
	cluster.Eventually(l, "nothing is held", func() error {
		if n := l.scheduler.Sum(l, `scheduler_cache_size{type="assumed_pods"}`); n != 0 {
			return fmt.Errorf("%v pods are assumed", n)
		}

		return nil
	})
	if n := l.scheduler.Sum(l, "arbor_gang_pods_held"); n != 0 {
		l.Fatalf("%v pods are held", n)
	}
}

// takesAll has plain pods of one GPU each take n, which only works at once without finalizers.
func (l *lab) takesAll(n int) {
	l.Helper()
	l.pods("", "", n, 1)
	l.runs("", n)
}

// background outlives the test, for what cleans up after it.
func (*lab) background() context.Context { return context.Background() }

// end deletes a group and its pods; "" stands for the plain ones.
func (l *lab) end(group string) {
	l.Helper()
	if group != "" {
		l.must(client.IgnoreNotFound(l.c.Delete(l.Context(), &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: group}})))
	}
	l.must(l.c.DeleteAllOf(l.Context(), &corev1.Pod{}, client.InNamespace(l.ns), client.MatchingLabels{groupLabel: group}))
}
