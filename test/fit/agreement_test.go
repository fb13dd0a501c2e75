package fit_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

var (
	seed   = flag.Uint64("seed", 1, "the random trials of TestAgreement")
	trials = flag.Int("trials", 100, "how many of them there are")
)

// batch is how many trials are held at the same time.
const batch = 40

// An answer is what arbor groups fit -o json says of one group.
type answer struct {
	Name    string `json:"name"`
	Fits    bool   `json:"fits"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Pods    []struct {
		Name string `json:"name"`
		Node string `json:"node"`
	} `json:"pods"`
}

// TestAgreement asks whether gangs fit, creates them, and finds every pod on the
// node that was named, or on none.
func TestAgreement(t *testing.T) {
	t.Logf("the trials are those of -seed=%d", *seed)
	a := &agreement{T: t, c: server.Client(t, nil), m: maker{rand.New(rand.NewPCG(*seed, 0))}, reasons: map[string]bool{}}
	for first := 0; first < *trials; first += batch {
		var all []*trial
		for i := first; i < min(*trials, first+batch); i++ {
			all = append(all, a.m.trial(i))
		}
		if !a.hold(all) {
			return
		}
	}
	t.Logf("%d of %d groups fit; %d pods are where they were said to be, %d have no place, as was said", a.fit, *trials, a.placed, a.unplaced)
	for _, reason := range []string{"Fits", v2alpha2.ReasonScheduled, v2alpha2.ReasonUnschedulable, v2alpha2.ReasonTooFewPods} {
		if *trials >= 100 && !a.reasons[reason] {
			t.Errorf("no trial was %s", reason)
		}
	}
	if *trials >= 100 && (a.fit < *trials/5 || a.fit > *trials*4/5) {
		t.Errorf("%d of %d groups fit: trials that all end in the same way show nothing", a.fit, *trials)
	}
}

type agreement struct {
	*testing.T

	c client.Client
	m maker

	fit, placed, unplaced int
	// reasons are those of which the group was asked as well.
	reasons map[string]bool
}

// hold asks about some trials and then carries them out. It is false if the
// answers were wrong.
func (a *agreement) hold(all []*trial) bool {
	a.Helper()
	a.each(all, func(tr *trial) error { return a.createAll(tr.world()) })
	last := a.last(all[0].name)
	answers := a.ask(all)

	// The group asks for too much at first, so that it is not tried before all of
	// its pods exist.
	a.each(all, func(tr *trial) error {
		early := tr.group.DeepCopy()
		early.Spec.MinMember = new(int32(1000))
		if err := a.create(early); err != nil {
			return err
		}

		return a.createAll(tr.gang()[1:])
	})
	a.seen(last)
	a.each(all, func(tr *trial) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"minMember": tr.group.Spec.MinMember}})
		if err != nil {
			return err
		}

		return a.c.Patch(a.Context(), tr.group.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	})

	nodes := a.outcome(all, answers)
	for _, tr := range all {
		if wrong := a.compare(tr, answers[tr.name], nodes); wrong != "" {
			a.Errorf("trial %s, seed %d: %s\n\nAsk again with 'arbor groups fit -f gang.yaml --from cluster.yaml'.\n--- cluster.yaml\n%s--- gang.yaml\n%s", tr.name, *seed, wrong, list(a.T, tr.world()), list(a.T, tr.gang()))

			return false
		}
		if reason := answers[tr.name].Reason; !a.reasons[reason] {
			a.reasons[reason] = true
			a.told(tr, answers[tr.name])
		}
	}
	// Without their groups, nobody tries for those who wait while others go.
	for _, kind := range []client.Object{&v2alpha2.PodGroup{}, &corev1.Pod{}} {
		if err := a.c.DeleteAllOf(a.Context(), kind, client.InNamespace(namespace)); err != nil {
			a.Fatal(err)
		}
	}
	if err := a.c.DeleteAllOf(a.Context(), &corev1.Node{}); err != nil {
		a.Fatal(err)
	}

	return true
}

func (a *agreement) create(o client.Object) error {
	if err := a.c.Create(a.Context(), o); err != nil {
		return fmt.Errorf("cannot create %s: %w", o.GetName(), err)
	}

	return nil
}

// createAll leaves the objects as they are.
func (a *agreement) createAll(all []client.Object) error {
	for _, o := range all {
		c, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", o)
		}
		if err := a.create(c); err != nil {
			return err
		}
	}

	return nil
}

// each does something for all trials, some at a time.
func (a *agreement) each(all []*trial, do func(*trial) error) {
	a.Helper()
	failed := make([]error, len(all))
	next := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range next {
				failed[i] = do(all[i])
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		a.Fatal(err)
	}
}

// ask runs the command once for all groups.
func (a *agreement) ask(all []*trial) map[string]answer {
	a.Helper()
	var items []client.Object
	for _, tr := range all {
		items = append(items, tr.gang()...)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		a.Fatal(err)
	}
	file := filepath.Join(a.TempDir(), "groups.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.Fatal(err)
	}
	stdout, stderr, code := server.Arbor(a.T, "groups", "fit", "-f", file, "-o", "json")
	var report struct {
		Groups []answer `json:"groups"`
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code > 1 || len(report.Groups) != len(all) {
		a.Fatalf("exit %d, %d groups, %v: %s", code, len(report.Groups), err, stderr)
	}
	answers := map[string]answer{}
	for _, g := range report.Groups {
		answers[g.Name] = g
	}

	return answers
}

// last is a plain pod with a node for it, which is there before anybody asks:
// nodes are counted in answers.
func (a *agreement) last(name string) *corev1.Pod {
	a.Helper()
	tr := &trial{name: name + "-last"}
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("1")}
	if err := a.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: tr.name, Labels: map[string]string{caseLabel: tr.name}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}); err != nil {
		a.Fatal(err)
	}

	return a.m.pod(tr, tr.name, 0, 0)
}

// seen waits until the scheduler knows all pods that were created: it hears of
// them in order, so it is enough that it has placed one that came last.
func (a *agreement) seen(last *corev1.Pod) {
	a.Helper()
	if err := a.create(last); err != nil {
		a.Fatal(err)
	}
	cluster.Eventually(a.T, "a plain pod has a place", func() error {
		if err := a.c.Get(a.Context(), client.ObjectKeyFromObject(last), last); err != nil {
			return err
		}
		if last.Spec.NodeName == "" {
			return errors.New("it has none")
		}

		return nil
	})
}

// watch hears of all pods of gangs as they are, and from now on.
func (a *agreement) watch() watch.Interface {
	a.Helper()
	kube, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		a.Fatal(err)
	}
	w, err := kube.CoreV1().Pods(namespace).Watch(a.Context(), metav1.ListOptions{LabelSelector: leafLabel})
	if err != nil {
		a.Fatal(err)
	}

	return w
}

// outcome waits until every pod has a node or was told that there is none, and
// returns the nodes.
func (a *agreement) outcome(all []*trial, answers map[string]answer) map[string]string {
	a.Helper()
	waits := map[string]bool{}
	for _, tr := range all {
		// Of too few pods the group tells, and they are not told.
		if answers[tr.name].Reason == v2alpha2.ReasonTooFewPods {
			continue
		}
		for _, p := range tr.pods {
			waits[p.Name] = true
		}
	}
	nodes := map[string]string{}
	patience := time.After(5 * time.Minute)
	w := a.watch()
	defer func() { w.Stop() }()
	for len(waits) > 0 {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				w = a.watch() // an API server may end it at any time

				continue
			}
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				a.Fatalf("the watch of pods says %+v", e.Object)
			}
			nodes[p.Name] = p.Spec.NodeName
			if p.Spec.NodeName != "" || refused(p) {
				delete(waits, p.Name)
			}
		case <-patience:
			a.Fatalf("these pods have no node and were not refused: %v", slices.Sorted(maps.Keys(waits)))
		}
	}

	return nodes
}

func refused(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}

	return false
}

// compare says what is not as it was said.
func (a *agreement) compare(tr *trial, said answer, nodes map[string]string) string {
	if len(said.Pods) != len(tr.pods) {
		return fmt.Sprintf("the answer is about %d of %d pods", len(said.Pods), len(tr.pods))
	}
	for _, p := range said.Pods {
		if p.Node != nodes[p.Name] {
			return fmt.Sprintf("pod %s is on node %q, and was said to be on %q (fits: %t, %s)", p.Name, nodes[p.Name], p.Node, said.Fits, said.Message)
		}
		if p.Node == "" {
			a.unplaced++
		} else {
			a.placed++
		}
	}
	if said.Fits {
		a.fit++
	}

	return ""
}

// told compares the answer with what the scheduler writes on the group.
func (a *agreement) told(tr *trial, said answer) {
	a.Helper()
	cluster.Eventually(a.T, "the group "+tr.name+" says the same", func() error {
		pg := &v2alpha2.PodGroup{}
		if err := a.c.Get(a.Context(), client.ObjectKeyFromObject(tr.group), pg); err != nil {
			return err
		}
		for _, c := range pg.Status.Conditions {
			if c.Type != v2alpha2.PodGroupScheduled {
				continue
			}
			if fits := c.Status == metav1.ConditionTrue; fits == said.Fits && (fits || c.Reason == said.Reason && c.Message == said.Message) {
				return nil
			}
		}

		return fmt.Errorf("said was %q, %q; conditions are %v", said.Reason, said.Message, pg.Status.Conditions)
	})
}

// list is objects for whoever looks into them.
func list(t *testing.T, objects []client.Object) string {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
