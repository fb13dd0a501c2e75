package scheduling_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster/network"
)

// The API server answers with errors while victims are evicted. The gang is placed
// all the same, and no pod is evicted beyond those that are needed.
func TestEvictionFails(t *testing.T) {
	t.Parallel()
	const (
		marks   = `^PATCH /api/v1/namespaces/%s/pods/low-[^/]+/status$`
		deletes = `^DELETE /api/v1/namespaces/%s/pods/low-[^/]+$`
	)
	cases := map[string]struct {
		reason      string
		like        string
		skip, times int
		outage      time.Duration // instead of times
		code        int
	}{
		"SecondMark":   {"The second victim cannot be marked, once.", marks, 1, 1, 0, http.StatusInternalServerError},
		"FirstDelete":  {"The first victim cannot be deleted, once.", deletes, 0, 1, 0, http.StatusInternalServerError},
		"SecondDelete": {"The second of four victims cannot be deleted, once: the first one is gone by then.", deletes, 1, 1, 0, http.StatusInternalServerError},
		"LastDelete":   {"The last victim cannot be deleted, three times.", deletes, 3, 3, 0, http.StatusInternalServerError},
		"Outage":       {"No victim can be deleted for a while.", deletes, 0, 0, 10 * time.Second, http.StatusInternalServerError},
		"HalfAnOutage": {"Two victims are gone before no other can be deleted for a while.", deletes, 2, 0, 10 * time.Second, http.StatusInternalServerError},
		"Webhook":      {"A webhook rejects two deletions with a conflict, which does not mean that those pods are gone.", deletes, 1, 2, 0, http.StatusConflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 1, 8)
			proxy := server.NewProxy(t, "", 0)
			l.start("--kubeconfig=" + proxy.Kubeconfig)
			low, high := l.classes()
			k := l.keep(nil)
			l.replicaSet(8, low)
			l.runs("", 8)
			stop := proxy.Reject(t, fmt.Sprintf(tc.like, l.ns), tc.code, tc.skip, tc.times)
			if tc.outage > 0 {
				defer time.AfterFunc(tc.outage, stop).Stop()
			}
			l.gang("high", 4, high)
			k.evictsFor(4, map[string]int{"high": 4})
		})
	}
}

// pin has pods run on one node of the lab.
func (l *lab) pin(node int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector[corev1.LabelHostname] = fmt.Sprintf("%s-node-%d", l.ns, node) }
}

// A victim never ends. Its gang reports it, and gangs that need other room get it.
func TestVictimNeverEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 4)
	low, high := l.classes()
	k := l.keep(nil)
	quick := func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1)) }
	l.placed("low", 4, low, quick, func(p *corev1.Pod) {
		if strings.HasPrefix(p.Name, "low-2-") {
			lingering(p) // one on each node
		}
	})
	l.runs("", 12)
	for i := 1; i < 3; i++ { // except on the rest
		stuck := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: fmt.Sprintf("low-2-%03d", i)}}
		l.free(l.Context(), stuck)
	}
	l.group("stuck", simple(4))
	l.pods("stuck", "", 4, 1, high, l.pin(0))
	k.evicts(4)

	l.group("other", simple(4))
	l.pods("other", "", 4, 1, high, l.pin(1))
	l.bindsSoon("other", 4)
	l.none("stuck")

	// The scheduler looks every half a minute, and the first look may be too early.
	l.within(3*time.Minute, "the PodGroup says which victim does not end", func() error {
		if says := l.message("stuck"); !strings.Contains(says, "low-2-000") {
			return fmt.Errorf("it reports %q", says)
		}

		return nil
	})
	l.group("third", simple(4))
	l.pods("third", "", 4, 1, high, l.pin(2))
	l.bindsSoon("third", 4)
	l.must(k.count(12))
	l.within(3*time.Minute, "the PodGroup still says so after the back-off, when there is no pod left to evict", func() error {
		says := l.message("stuck")
		if !strings.Contains(says, v2alpha2.ReasonPreemptionBlocked) || !strings.Contains(says, "low-2-000") || strings.Contains(says, "backs off") {
			return fmt.Errorf("it reports %q", says)
		}

		return nil
	})
	l.must(k.count(12))
	l.freeAll()
	l.bindsSoon("stuck", 4)
	l.must(k.count(12))
}

// Candidates come and end all the time, while the search for victims runs. It finds
// those that are needed, and evicts none of the rest.
func TestCandidatesEndDuringTheSearch(t *testing.T) {
	l := newLab(t, 2, 8)
	low, high := l.classes()
	k := l.keep(nil)
	l.placed("low", 8, low)
	l.runs("", 16)

	done := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				pod := l.pod("churn", "", fmt.Sprintf("churn-%d-%d", worker, i), 0, low)
				pod.Annotations = nil
				pod.Spec.NodeName = fmt.Sprintf("%s-node-%d", l.ns, i%2)
				if err := l.c.Create(t.Context(), pod); err != nil {
					return
				}
				k.expect(pod)
				_ = l.c.Delete(t.Context(), pod, client.GracePeriodSeconds(0))
				l.after(10 * time.Millisecond) // so that kwok keeps up, which ends the victims
			}
		})
	}
	defer func() {
		close(done)
		wg.Wait()
	}()
	for i := range 4 {
		name := fmt.Sprintf("high-%d", i)
		l.gang(name, 3, high)
		k.evictsFor(3*(i+1), map[string]int{name: 3})
	}
	marked := k.stories(func(s *story) bool {
		return strings.HasPrefix(s.pod.Name, "churn") && condition(s.pod, corev1.DisruptionTarget) != nil
	})
	if len(marked) > 0 {
		t.Errorf("pods without a GPU were evicted: %v", podNames(marked))
	}
}

// An extender is asked which nodes a pod may use.
type extender struct {
	url string
	// down has it answer with errors, and hangs has it not answer at all.
	down, hangs atomic.Bool

	mu      sync.Mutex
	refused map[string]bool // nodes, for pods of gangs
}

func newExtender(t *testing.T) *extender {
	t.Helper()
	e := &extender{refused: map[string]bool{}}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.url = s.URL

	return e
}

// ServeHTTP answers a scheduler.
func (e *extender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	args := &extenderv1.ExtenderArgs{}
	if err := json.NewDecoder(r.Body).Decode(args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}
	if e.hangs.Load() {
		<-r.Context().Done()

		return
	}
	if e.down.Load() {
		http.Error(w, "down", http.StatusInternalServerError)

		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	gang := args.Pod.Annotations[groupAnnotation] != ""
	names := []string{}
	failed := extenderv1.FailedNodesMap{}
	for _, node := range *args.NodeNames {
		if gang && e.refused[node] {
			failed[node] = "the extender refuses it"
		} else {
			names = append(names, node)
		}
	}
	if err := json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: &names, FailedNodes: failed}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// refuse has the extender reject these nodes only.
func (e *extender) refuse(nodes ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = map[string]bool{}
	for _, node := range nodes {
		e.refused[node] = true
	}
}

// startWith starts a scheduler for the lab that asks an extender.
func (l *lab) startWith(e *extender, args ...string) {
	l.Helper()
	l.name = l.ns
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": server.Kubeconfig, "qps": 500, "burst": 1000},
		"profiles":         []any{map[string]any{"schedulerName": l.name}},
		"extenders": []any{map[string]any{
			"urlPrefix": e.url, "filterVerb": "filter", "nodeCacheCapable": true, "httpTimeout": "2s",
			"managedResources": []any{map[string]any{"name": string(gpu)}},
		}},
	})
	l.must(err)
	config := filepath.Join(l.TempDir(), "scheduler.yaml")
	l.must(os.WriteFile(config, data, 0o600))
	l.scheduler = server.StartScheduler(l, append([]string{"--config=" + config, "--v=2"}, args...)...)
}

// No pod is evicted on a node that an extender rejects.
func TestExtenderRejects(t *testing.T) {
	e := newExtender(t)
	l := newLab(t, 2, 4)
	l.startWith(e)
	low, high := l.classes()
	k := l.keep(nil)
	l.placed("low", 4, low)
	l.runs("", 8)
	first, second := l.ns+"-node-0", l.ns+"-node-1"
	e.refuse(first, second)
	l.group("high", simple(1))
	l.pods("high", "", 1, 4, high)
	l.says("high", metav1.ConditionFalse)
	l.addNodes(1, 0) // which has gangs tried again
	k.evictsNobody(3 * time.Second)

	e.refuse(first)
	l.addNodes(1, 0) // which has gangs tried again
	k.evictsFor(4, map[string]int{"high": 1})
	for _, s := range k.evicted() {
		if s.pod.Spec.NodeName != second {
			t.Errorf("pod %s was evicted, on a node that the extender rejects", s.pod.Name)
		}
	}
}

// An extender that fails, or does not answer, is no reason to evict a pod, and least of all
// where gangs may not. The PodGroup reports what is wrong, other gangs are not delayed, and
// the gang is placed once the extender answers, although nothing else happens.
func TestExtenderDown(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason         string
		args           []string
		running        int // pods of 4: if there is room, the extender is asked about the first member
		hangs          bool
		evicted, bound int // once it answers
	}{
		"Preemption":   {"Which nodes will do is not known.", nil, 3, false, 3, 4},
		"NoPreemption": {"Errors are no way around --gang-preemption=false.", []string{"--gang-preemption=false"}, 3, false, 0, 0},
		"Search":       {"The extender is asked by the search for victims only.", nil, 4, false, 4, 4},
		"Hangs":        {"The size of the group is not the reason.", nil, 3, true, 3, 4},
		"SearchHangs":  {"The search did not take too long.", nil, 4, true, 4, 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExtender(t)
			l := newLab(t, 1, 4)
			l.startWith(e, tc.args...)
			low, high := l.classes()
			k := l.keep(nil)
			l.placed("low", tc.running, low)
			l.runs("", tc.running)
			e.down.Store(!tc.hangs)
			e.hangs.Store(tc.hangs)
			l.gang("high", 4, high)
			l.within(soon, "the PodGroup reports the extender", func() error {
				says := l.message("high")
				if strings.Contains(says, "smaller") || strings.Contains(says, v2alpha2.ReasonPreemptionSearchTooLong) {
					return fmt.Errorf("it reports %q: %w", says, errNever)
				}
				if !strings.Contains(says, "extender") {
					return fmt.Errorf("it reports %q", says)
				}

				return nil
			})
			l.group("other", simple(2))
			l.pods("other", "", 2, 0)
			l.bindsSoon("other", 2) // the extender is not asked about pods without GPUs
			l.must(k.count(0))

			e.down.Store(false)
			e.hangs.Store(false)
			k.evictsFor(tc.evicted, map[string]int{"high": tc.bound})
		})
	}
}

// The class of a PodGroup reports whether its gang preempts, as that of pods does.
func TestGroupsThatDoNotPreempt(t *testing.T) {
	cases := map[string]struct {
		reason        string
		group, member bool // the class is named there
	}{
		"Group":   {"The pods have no class.", true, false},
		"Pods":    {"The group has no class.", false, true},
		"Both":    {"Both have it.", true, true},
		"PodHigh": {"The pods might preempt, and the group does not.", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 4)
			low, high := l.classes()
			polite := l.class("polite", 50, corev1.PreemptNever)
			k := l.keep(nil)
			l.gang("low", 4, low)
			l.runs("low", 4)
			spec := simple(2)
			if tc.group {
				spec.PriorityClassName = l.ns + "-polite"
			}
			use := func(*corev1.Pod) {}
			switch {
			case tc.member:
				use = polite
			case name == "PodHigh":
				use = high
			}
			l.group("g", spec)
			l.pods("g", "", 2, 1, use)
			l.addNodes(1, 0) // which has gangs tried again
			k.evictsNobody(2 * time.Second)
			l.none("g")
		})
	}
}

// overThreeSeconds has eight pods end one by one over three seconds.
func overThreeSeconds(_, nth int) time.Duration {
	return time.Duration(nth%8+1) * 375 * time.Millisecond
}

// killed runs a preemption of eight victims that are created again at once, during
// which kill does what it likes to the scheduler. In the end the gang is placed, and
// those eight are the only ones that were evicted.
func killed(t *testing.T, kill func(l *lab, proxy *network.Proxy, gang func(), restart func())) {
	t.Helper()
	l := newLab(t, 1, 8)
	proxy := server.NewProxy(t, "", 0)
	start := func() { l.start("--kubeconfig=" + proxy.Kubeconfig) }
	start()
	low, high := l.classes()
	k := l.keep(overThreeSeconds)
	l.replicaSet(8, low, lingering)
	l.runs("", 8)
	kill(l, proxy, func() { l.gang("high", 8, high) }, func() {
		l.scheduler.Kill()
		start()
	})
	k.evictsFor(8, map[string]int{"high": 8})
}

// The scheduler is killed at any moment of a preemption.
func TestKilledWhilePreempting(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			t.Parallel()
			killed(t, func(l *lab, _ *network.Proxy, gang, restart func()) {
				random := rand.New(rand.NewPCG(seed, seed))
				gang()
				l.after(time.Duration(random.Int64N(int64(3500 * time.Millisecond))))
				restart()
			})
		})
	}
}

// The scheduler is killed between the steps of a preemption. The request that it was
// about to make never reaches the API server.
func TestKilledBetweenSteps(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		like   string
		skip   int
	}{
		"Record":      {"What was decided is not written down.", `^(PATCH|PUT) /apis/scheduling\.run\.ai/[^/]+/namespaces/%s/podgroups/high$`, 0},
		"Nomination":  {"The first member is not nominated.", `^(PATCH|PUT) /api/v1/namespaces/%s/pods/high-[^/]+/status$`, 0},
		"FirstMark":   {"No victim is marked.", `^(PATCH|PUT) /api/v1/namespaces/%s/pods/low-[^/]+/status$`, 0},
		"FirstDelete": {"A victim is marked and not deleted.", `^DELETE /api/v1/namespaces/%s/pods/low-[^/]+$`, 0},
		"ThirdDelete": {"Two victims are deleted.", `^DELETE /api/v1/namespaces/%s/pods/low-[^/]+$`, 2},
		"LastDelete":  {"All victims but one are deleted.", `^DELETE /api/v1/namespaces/%s/pods/low-[^/]+$`, 7},
		"FirstBind":   {"There is room, and no member is bound.", `^POST /api/v1/namespaces/%s/pods/high-[^/]+/binding$`, 0},
		"FifthBind":   {"Half of the members are bound.", `^POST /api/v1/namespaces/%s/pods/high-[^/]+/binding$`, 4},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killed(t, func(l *lab, proxy *network.Proxy, gang, restart func()) {
				caught, release := proxy.Trap(t, fmt.Sprintf(tc.like, l.ns), tc.skip)
				gang()
				l.within(soon, "the request comes, or the gang is placed without it", func() error {
					select {
					case <-caught:
						return nil
					default:
					}
					if l.bound("high") == 8 {
						t.Log("the scheduler never makes this request")

						return nil
					}

					return errors.New("neither")
				})
				l.scheduler.Kill()
				release()
				restart()
			})
		})
	}
}
