package scheduling_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// soon is how long a gang may take that something has woken up. The scheduler's
// own safety nets take a minute and more, so they cannot hide a wake-up that is
// lost; a back-off, a pause after a search, an event that is late and a slow machine
// are within it.
const soon = 50 * time.Second

// longest is how long anything may take whose speed the test is not about.
const longest = 2 * time.Minute

// errNever ends a wait at once: what is waited for cannot come any more.
var errNever = errors.New("this cannot come right any more")

// within waits for a condition, but not for longer than limit, and not when the
// error wraps errNever.
func (l *lab) within(limit time.Duration, what string, condition func() error) {
	l.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		if errors.Is(err, errNever) {
			l.Fatalf("in vain: %s: %v", what, err)
		}
		select {
		case <-deadline:
			l.Fatalf("waited %s in vain: %s: %v", limit, what, err)
		case <-tick.C:
		}
	}
}

// after waits for a moment that is part of the test, such as the length of an outage.
func (l *lab) after(d time.Duration) {
	l.Helper()
	select {
	case <-time.After(d):
	case <-l.Context().Done():
	}
}

// bindsSoon waits until exactly n members of a gang are bound, and no longer
// than a gang takes that was woken.
func (l *lab) bindsSoon(group string, n int) {
	l.Helper()
	l.within(soon, fmt.Sprintf("%d pods of %s are bound", n, group), func() error {
		if bound := l.bound(group); bound != n {
			return fmt.Errorf("%d are bound; %s", bound, l.said(group))
		}

		return nil
	})
}

// hadItsTurn waits until the scheduler has placed a pod that was created last, so
// that it has seen whatever happened before.
func (l *lab) hadItsTurn() {
	l.Helper()
	probe := l.pod("probe", "", "", 0)
	probe.GenerateName, probe.Annotations = "probe-", nil
	l.create(probe)
	l.within(soon, "a plain pod is placed", func() error {
		if err := l.c.Get(l.Context(), key(probe), probe); err != nil {
			return err
		}
		if probe.Spec.NodeName == "" {
			return errors.New("it waits")
		}

		return nil
	})
}

// noLostWakeups fails when the scheduler had to wake a gang that nothing had woken.
func (l *lab) noLostWakeups() {
	l.Helper()
	if n := l.scheduler.Sum(l, "arbor_gang_lost_wakeups_total"); n != 0 {
		l.Errorf("%v wake-ups were lost", n)
	}
}

// replicaSet has Kubernetes keep n plain pods of one GPU, which it creates again as
// soon as they are deleted, however long they take to terminate.
func (l *lab) replicaSet(n int, change ...func(*corev1.Pod)) {
	l.Helper()
	const name = "low"
	pod := l.pod("", "", name, 1, change...)
	pod.Labels["app"] = name
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: num(n), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations, Finalizers: pod.Finalizers},
				Spec:       pod.Spec,
			},
		},
	}
	l.must(l.c.Create(l.Context(), rs))
	l.Cleanup(func() { _ = l.c.Delete(l.background(), rs, client.PropagationPolicy(metav1.DeletePropagationOrphan)) })
}

// A story is what a pod has been through.
type story struct {
	pod *corev1.Pod // as it was last
	// When it was first seen bound, and terminating although the test did not delete it.
	bound, evicted time.Time
	gone           bool
}

// A keeper watches the pods of a lab. It records the evicted pods, and plays the part of kubelets
// that take their time: pods that have the finalizer of lingering are there until they have taken
// the time that takes returns.
type keeper struct {
	*lab

	// takes is asked once for each pod that terminates: the node is the how
	// manyeth on which pods terminate, and the pod the how manyeth there.
	takes func(node, nth int) time.Duration

	mu      sync.Mutex
	all     map[types.UID]*story
	ours    map[string]bool // names of pods that the test itself deletes
	nodes   []string        // on which pods terminate, in the order in which they began
	ending  map[string]int  // pods that terminate or did, by node
	changed time.Time
	lost    bool
}

// keep watches from now on. Without takes, pods terminate when the test lets them.
func (l *lab) keep(takes func(node, nth int) time.Duration) *keeper {
	l.Helper()
	k := &keeper{lab: l, takes: takes, all: map[types.UID]*story{}, ours: map[string]bool{}, ending: map[string]int{}}
	c, err := kubernetes.NewForConfig(server.Config)
	l.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	w, err := c.CoreV1().Pods(l.ns).Watch(ctx, metav1.ListOptions{})
	l.must(err)
	var done sync.WaitGroup
	done.Go(func() {
		for event := range w.ResultChan() {
			k.see(ctx, event)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.lost = ctx.Err() == nil
	})
	l.Cleanup(func() {
		cancel()
		w.Stop()
		done.Wait()
		k.freeAll()
	})

	return k
}

// see takes one event of the watch.
func (k *keeper) see(ctx context.Context, event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	is := k.all[pod.UID]
	if is == nil {
		is = &story{}
		k.all[pod.UID] = is
	}
	now := time.Now()
	ends := pod.DeletionTimestamp != nil
	if ends && (is.pod == nil || is.pod.DeletionTimestamp == nil) {
		k.terminates(ctx, pod)
	}
	is.pod, is.gone = pod, event.Type == watch.Deleted
	if is.bound.IsZero() && pod.Spec.NodeName != "" {
		is.bound, k.changed = now, now
	}
	if is.evicted.IsZero() && (ends || is.gone) && !k.ours[pod.Name] {
		is.evicted, k.changed = now, now
	}
}

// terminates has a pod end in its time.
func (k *keeper) terminates(ctx context.Context, pod *corev1.Pod) {
	if k.takes == nil || len(pod.Finalizers) == 0 {
		return
	}
	if !slices.Contains(k.nodes, pod.Spec.NodeName) {
		k.nodes = append(k.nodes, pod.Spec.NodeName)
	}
	nth := k.ending[pod.Spec.NodeName]
	k.ending[pod.Spec.NodeName]++
	time.AfterFunc(k.takes(slices.Index(k.nodes, pod.Spec.NodeName), nth), func() {
		if ctx.Err() == nil {
			k.free(ctx, pod)
		}
	})
}

// free removes the finalizers of a pod. The API server may be gone with the test.
func (l *lab) free(ctx context.Context, pod *corev1.Pod) {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for err := l.c.Patch(ctx, pod.DeepCopy(), patch); apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err); {
		err = l.c.Patch(ctx, pod.DeepCopy(), patch)
	}
}

// freeAll lets all pods end.
func (l *lab) freeAll() {
	list := &corev1.PodList{}
	_ = l.c.List(l.background(), list, client.InNamespace(l.ns))
	for i := range list.Items {
		if len(list.Items[i].Finalizers) > 0 {
			l.free(l.background(), &list.Items[i])
		}
	}
}

// stories are all of them that a function chooses.
func (k *keeper) stories(which func(*story) bool) []story {
	k.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost {
		k.Fatal("the watch of the pods broke")
	}
	var all []story
	for _, s := range k.all {
		if which(s) {
			all = append(all, *s)
		}
	}

	return all
}

// evicted are the pods that were evicted so far, by UID and not by name: a pod
// that was created again counts again.
func (k *keeper) evicted() []story {
	k.Helper()

	return k.stories(func(s *story) bool { return !s.evicted.IsZero() })
}

// podNames are the names of pods, sorted.
func podNames(all []story) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.pod.Name)
	}
	slices.Sort(names)

	return names
}

// expect has the deletion of a pod not count as an eviction.
func (k *keeper) expect(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ours[pod.Name] = true
}

// delete deletes a pod for a reason of the test's own.
func (k *keeper) delete(pod *corev1.Pod) {
	k.Helper()
	k.expect(pod)
	k.must(client.IgnoreNotFound(k.c.Delete(k.Context(), pod)))
}

// evicts waits until n pods were evicted, and are the only ones.
func (k *keeper) evicts(n int) {
	k.Helper()
	k.within(soon, fmt.Sprintf("%d pods are evicted", n), func() error { return k.count(n) })
}

// count returns an error unless n pods were evicted so far.
func (k *keeper) count(n int) error {
	k.Helper()
	all := k.evicted()
	switch {
	case len(all) > n:
		return fmt.Errorf("%d pods were evicted instead of %d (%s): %w", len(all), n, strings.Join(podNames(all), " "), errNever)
	case len(all) < n:
		return fmt.Errorf("%d of %d pods were evicted", len(all), n)
	default:
		return nil
	}
}

// evictsFor waits until gangs are bound, by name with their sizes, for which exactly n
// pods have to be evicted. It fails as soon as another one is.
func (k *keeper) evictsFor(n int, gangs map[string]int) {
	k.Helper()
	k.within(longest, fmt.Sprintf("gangs %v are placed", gangs), func() error {
		if err := k.count(n); errors.Is(err, errNever) {
			return err
		}
		for name, size := range gangs {
			if bound := k.bound(name); bound != size {
				return fmt.Errorf("%d of gang %s are bound, %d pods were evicted; %s", bound, name, len(k.evicted()), k.said(name))
			}
		}

		return nil
	})
	k.hadItsTurn()
	k.must(k.count(n))
}

// evictsNobody gives the scheduler time to do it, and fails if any pod is evicted.
func (k *keeper) evictsNobody(d time.Duration) {
	k.Helper()
	k.after(d)
	k.hadItsTurn()
	k.must(k.count(0))
}

// message is what a PodGroup reports about its placement.
func (l *lab) message(group string) string {
	l.Helper()
	pg := &v2alpha2.PodGroup{}
	l.must(l.c.Get(l.Context(), client.ObjectKey{Namespace: l.ns, Name: group}, pg))
	for _, c := range pg.Status.Conditions {
		if c.Type == v2alpha2.PodGroupScheduled {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}

	return ""
}

// start starts a scheduler that answers to the lab's own name, and is killed at
// the end of the test. own is for those that are not killed before.
func (l *lab) start(args ...string) {
	l.Helper()
	l.name = l.ns
	s, err := server.Scheduler(append([]string{"--scheduler-name=" + l.name, "--v=2"}, args...)...)
	l.must(err)
	l.scheduler = s
	l.Cleanup(func() {
		s.Kill()
		if l.Failed() {
			l.Logf("--- arbor-scheduler %d\n%s", s.PID(), tail(s.Output()))
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-16<<10):] }
