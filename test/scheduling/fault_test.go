package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// A crew is some gangs of one size, whose pods a user creates again when they are
// gone, as a Job would.
type crew struct {
	*lab

	names []string
	size  int
}

// hire makes gangs of one-GPU pods. The groups come last, so that all of them are
// placed from then on.
func (l *lab) hire(prefix string, gangs, size int) *crew {
	l.Helper()
	c := &crew{lab: l, size: size}
	for i := range gangs {
		name := fmt.Sprintf("%s%d", prefix, i)
		c.names = append(c.names, name)
		l.pods(name, "", size, 1)
	}
	for _, name := range c.names {
		l.group(name, simple(size))
	}

	return c
}

// count makes pods again that are gone, and returns how many of each gang have a
// place.
func (c *crew) count() ([]int, error) {
	list := &corev1.PodList{}
	if err := c.c.List(c.Context(), list, client.InNamespace(c.ns)); err != nil {
		return nil, err
	}
	bound, there := map[string]int{}, map[string]bool{}
	for _, pod := range list.Items {
		there[pod.Name] = true
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			bound[pod.Labels[groupLabel]]++
		}
	}
	counts := make([]int, len(c.names))
	for i, name := range c.names {
		counts[i] = bound[name]
		for k := range c.size {
			if pod := c.pod(name, "", fmt.Sprintf("%s-%02d", name, k), 1); !there[pod.Name] {
				if err := c.c.Create(c.Context(), pod); err != nil {
					return nil, err
				}
			}
		}
	}

	return counts, nil
}

// settles waits until so many gangs are whole, and the rest have nothing.
func (c *crew) settles(whole int) {
	c.Helper()
	cluster.Eventually(c, fmt.Sprintf("%d of %d gangs are whole, and no other has a part", whole, len(c.names)), func() error {
		counts, err := c.count()
		if err != nil {
			return err
		}
		got := 0
		for _, n := range counts {
			switch n {
			case c.size:
				got++
			case 0:
			default:
				return fmt.Errorf("there is a part of a gang: %v", counts)
			}
		}
		if got != whole {
			return fmt.Errorf("%d are whole: %v", got, counts)
		}

		return nil
	})
}

// reaches waits until so many pods of all gangs have a place.
func (c *crew) reaches(n int) {
	c.Helper()
	cluster.Eventually(c, fmt.Sprintf("%d pods have a place", n), func() error {
		counts, err := c.count()
		if err != nil {
			return err
		}
		if sum(counts) < n {
			return fmt.Errorf("%v have", counts)
		}

		return nil
	})
}

func sum(all []int) int {
	total := 0
	for _, n := range all {
		total += n
	}

	return total
}

func (c *crew) dismiss() {
	c.Helper()
	for _, name := range c.names {
		c.end(name)
	}
}

// The scheduler is killed twenty times while it binds gangs, of which two of
// three have room. Whatever it leaves behind, in the end two are whole and the
// third has nothing.
func TestKilled(t *testing.T) {
	const (
		times = 20
		size  = 10
	)
	l := newLab(t, 3, 8)
	l.name = l.ns
	proxy := server.NewProxy(t, "", 0)
	start := func() *cluster.Scheduler {
		s, err := server.Scheduler("--kubeconfig="+proxy.Kubeconfig, "--scheduler-name="+l.name, "--stale-grace=1s")
		l.must(err)

		return s
	}
	random := rand.New(rand.NewPCG(1, 1))
	s := start()
	t.Cleanup(func() { s.Kill() })
	for i := range times {
		prefix := fmt.Sprintf("r%d-g", i)
		// The last members, at least one and not all, do not come through. Which
		// gangs are placed is up to the scheduler.
		bound := 1 + random.IntN(size-1)
		release := proxy.Hold(t, fmt.Sprintf("^POST /api/v1/namespaces/%s/pods/%s.-0[%d-9]/binding", l.ns, prefix, bound))
		c := l.hire(prefix, 3, size)
		cluster.Eventually(t, fmt.Sprintf("two gangs have %d of their pods placed", bound), func() error {
			counts, err := c.count()
			if err != nil {
				return err
			}
			if slices.Sort(counts); !slices.Equal(counts, []int{0, bound, bound}) {
				return fmt.Errorf("they have %v", counts)
			}

			return nil
		})
		s.Kill()
		release()
		s = start()
		c.settles(2)
		c.dismiss()
	}
}

// Of two replicas the one that leads is killed while it binds. The other has done
// nothing until then, and brings to an end what was begun.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 8)
	l.name = l.ns
	proxy := server.NewProxy(t, "", 0)
	start := func() *cluster.Scheduler {
		return server.StartScheduler(t, "--kubeconfig="+proxy.Kubeconfig, "--scheduler-name="+l.name, "--stale-grace=1s",
			"--leader-elect=true", "--leader-elect-resource-name="+l.name,
			// A leader that hears nothing for some seconds is still the leader.
			"--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=25s", "--leader-elect-retry-period=1s")
	}
	leader := start()
	lease := &coordinationv1.Lease{}
	cluster.Eventually(t, "it leads", func() error {
		return l.c.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: l.name}, lease)
	})
	t.Cleanup(func() { _ = l.c.Delete(l.background(), lease) })
	standby := start()

	release := proxy.Hold(t, fmt.Sprintf("^POST /api/v1/namespaces/%s/pods/g.-0[4-9]/binding", l.ns))
	c := l.hire("g", 3, 10)
	c.reaches(8)
	if n := standby.Sum(t, "arbor_gang_cycles_total"); n != 0 {
		t.Errorf("the one that does not lead has tried %v gangs", n)
	}
	leader.Kill()
	release()
	c.settles(2)
	if n := standby.Sum(t, "arbor_gang_pods_placed_total"); n == 0 {
		t.Error("the other has placed no pod")
	}
}

// refuse has the API server reject bindings of the pods that an expression chooses, until the
// function that it returns is called.
func (l *lab) refuse(expression string) (allow func()) {
	l.Helper()
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: l.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("request.namespace != %q || !(%s)", l.ns, expression), Message: "not this one"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: l.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: l.ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	l.must(l.c.Create(l.Context(), policy))
	l.must(l.c.Create(l.Context(), binding))
	allow = func() {
		l.must(client.IgnoreNotFound(l.c.Delete(l.background(), binding)))
		l.must(client.IgnoreNotFound(l.c.Delete(l.background(), policy)))
	}
	l.Cleanup(allow)

	// It counts from when it rejects a pod of ours.
	probe := l.pod("", "", "refused-probe", 0)
	probe.Spec.SchedulerName = "nobody"
	l.create(probe)
	cluster.Eventually(l, "the API server rejects", func() error {
		err := l.c.SubResource("binding").Create(l.Context(), probe, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: l.ns + "-node-0"}},
			&client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: []string{metav1.DryRunAll}}})
		if err == nil || !strings.Contains(err.Error(), "not this one") {
			return fmt.Errorf("it does not: %w", err)
		}

		return nil
	})
	l.must(l.c.Delete(l.Context(), probe))

	return allow
}

// Some members cannot be bound for a while. The gang is fixed with them, where
// the rest are, as soon as they can.
func TestBindRejected(t *testing.T) {
	l := newLab(t, 2, 4)
	l.scheduler = shared
	allow := l.refuse(`request.name.startsWith("refused") || request.name in ["g-02", "g-05"]`)
	before := l.scheduler.Sum(t, "arbor_gang_bind_failures_total")
	l.gang("g", 6)
	cluster.Eventually(t, "four of six are bound, and two were rejected more than once", func() error {
		refused := l.scheduler.Sum(t, "arbor_gang_bind_failures_total") - before
		if n := l.bound("g"); n != 4 || refused < 4 {
			return fmt.Errorf("%d are bound, and %v were rejected", n, refused)
		}

		return nil
	})
	first := l.places("g")
	allow()
	l.runs("g", 6)
	now := l.places("g")
	for pod, node := range first {
		if now[pod] != node {
			t.Errorf("pod %s was on %s and is on %s", pod, node, now[pod])
		}
	}
	l.holdsNothing()
	l.takesAll(2)
}

// Some members can never be bound: the rest do not stay.
func TestBindRejectedForever(t *testing.T) {
	l := newLab(t, 2, 4).own("--stale-grace=500ms")
	allow := l.refuse(`request.name.startsWith("refused") || request.name in ["g-02", "g-05"]`)
	l.gang("g", 6)
	cluster.Eventually(t, "those that were bound are gone, and those that were rejected are there", func() error {
		if left := l.names("g"); len(left) != 2 || l.bound("g") != 0 {
			return fmt.Errorf("%v are there, %d have a place", left, l.bound("g"))
		}

		return nil
	})
	l.holdsNothing()
	l.takesAll(8)
	l.none("g")

	// They can, and those that are gone come back.
	allow()
	l.end("")
	c := &crew{lab: l, names: []string{"g"}, size: 6}
	c.settles(1)
}

// The API server dies while gangs are bound, and comes back.
func TestAPIServerKilled(t *testing.T) {
	l := newLab(t, 3, 8).own("--stale-grace=2s")
	c := l.hire("g", 3, 10)
	c.reaches(1)
	pid, err := server.Child("kube-apiserver")
	l.must(err)
	l.must(syscall.Kill(pid, syscall.SIGKILL))
	cluster.Eventually(t, "the API server is back", func() error {
		if now, err := server.Child("kube-apiserver"); err != nil || now == pid {
			return fmt.Errorf("its process is %d (%w)", now, err)
		}

		return l.c.List(t.Context(), &corev1.NamespaceList{})
	})
	c.settles(2)
	for _, name := range c.names {
		if l.bound(name) > 0 {
			l.end(name)
			c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == name })

			break
		}
	}
	c.settles(2)
}

// Two schedulers believe that the same gangs are theirs. They get into each
// other's way, and may both give away one place, but no gang stays in parts, and
// all that fit run.
func TestTwoSchedulers(t *testing.T) {
	// Each sees the gangs of the other one below their minimums while they are bound. On a busy
	// machine, that takes seconds: with less time, they would evict each other's gangs forever.
	const grace = "--stale-grace=10s"
	l := newLab(t, 6, 8).own(grace)
	server.StartScheduler(t, "--scheduler-name="+l.name, grace)
	l.group("never", tree(leaf("large", 1), leaf("small", 4)))
	l.pods("never", "small", 4, 1)
	l.pods("never", "large", 1, 9)
	c := l.hire("g", 12, 4)
	c.settles(12)
	l.waits("never", `subgroup "large"`)
	l.none("never")
	c.dismiss()
	c = l.hire("again", 12, 4)
	c.settles(12)
	l.none("never")
}

// Of two replicas the leader is suspended for longer than its lease, in the middle of evictions:
// some are under way, and some are not sent yet. The gang that needed the room is deleted in the
// meantime. The leader resumes as a former leader, and must not write.
func TestLeaderSuspended(t *testing.T) {
	const (
		pods     = 20
		underWay = 16 // of one gang, at the same time
	)
	l := newLab(t, 1, pods)
	l.name = l.ns
	low, high := l.classes()
	proxy := server.NewProxy(t, "", 0)
	start := func(args ...string) *cluster.Scheduler {
		return server.StartScheduler(t, append(args, "--scheduler-name="+l.name, "--leader-elect=true", "--leader-elect-resource-name="+l.name,
			"--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=500ms")...)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: l.name}}
	t.Cleanup(func() { _ = l.c.Delete(l.background(), lease) })
	holder := func(other string) string {
		cluster.Eventually(t, "a replica leads", func() error {
			if err := l.c.Get(t.Context(), key(lease), lease); err != nil {
				return err
			}
			if is := lease.Spec.HolderIdentity; is == nil || *is == "" || *is == other {
				return fmt.Errorf("the lease is %+v", lease.Spec)
			}

			return nil
		})

		return *lease.Spec.HolderIdentity
	}
	leader := start("--kubeconfig=" + proxy.Kubeconfig)
	first := holder("")
	start()
	l.placed("low", pods, low)
	l.runs("", pods)

	marks := fmt.Sprintf(`^PATCH /api/v1/namespaces/%s/pods/low-[^/]+/status$`, l.ns)
	sent := proxy.Record(t, marks)
	_, release := proxy.Stall(t, marks, http.StatusInternalServerError)
	l.gang("high", pods, high)
	cluster.Eventually(t, "evictions are under way", func() error {
		if n := len(sent()); n < underWay {
			return fmt.Errorf("%d are", n)
		}

		return nil
	})
	leader.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { leader.Signal(syscall.SIGCONT) })
	l.end("high")
	holder(first)
	writes := proxy.Record(t, `^(POST|PUT|PATCH|DELETE) .*/(pods|podgroups)\b`)
	leader.Signal(syscall.SIGCONT)
	release()
	select {
	case <-leader.Done():
	case <-time.After(time.Minute):
		t.Error("a leader that was suspended continues as if nothing had happened")
	}
	if w := writes(); len(w) > 0 {
		t.Errorf("the former leader has sent %q", w)
	}
	l.hadItsTurn()
	if n := len(l.members("")); n != pods {
		t.Errorf("%d of %d pods are left", n, pods)
	}
}
