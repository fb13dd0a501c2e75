package subnets_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// documentedEvents returns what the table of events in docs/concepts/subnets.md has, as
// "Kind reason".
func documentedEvents(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "concepts", "subnets.md"))
	must(t, err)
	row := regexp.MustCompile(`(?m)^\| (Subnet\w*) \| (?:Normal|Warning)[^|]*\| ([^|]*) \|`)
	reason := regexp.MustCompile("`(\\w+)`")
	found := map[string]bool{}
	for _, r := range row.FindAllStringSubmatch(string(text), -1) {
		for _, name := range reason.FindAllStringSubmatch(r[2], -1) {
			found[r[1]+" "+name[1]] = true
		}
	}
	if len(found) < 12 {
		t.Fatalf("the documentation has only the events %v", slices.Sorted(maps.Keys(found)))
	}

	return found
}

// Every event that the documentation lists is really sent, for what it reports.
func TestEvents(t *testing.T) {
	c := newClient(t)
	server.StartManager(t, only, noWebhooks)
	w := newWorld(t, c)
	w.rejectSubnets("rejected")
	first := w.claim("p", "first", 25)
	w.create(w.pool("p", "10.0.0.0/22", ""), first)
	w.bound(first)
	w.createWithoutBlock()
	w.createAroundDeletion()

	want := documentedEvents(t)
	cluster.Eventually(t, "all documented events were sent", func() error {
		list := &corev1.EventList{}
		must(t, c.List(t.Context(), list, client.InNamespace(w.ns)))
		missing := maps.Clone(want)
		for _, e := range list.Items {
			delete(missing, e.InvolvedObject.Kind+" "+e.Reason)
		}
		if len(missing) > 0 {
			return fmt.Errorf("these were not: %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
		}

		return nil
	})
}

// createWithoutBlock creates claims and Subnets that cannot have what they ask for, one
// for each reason.
func (w *world) createWithoutBlock() {
	w.t.Helper()
	same, recorded := w.claim("p", "same", 28), w.claim("p", "recorded", 25)
	same.Spec.ClusterID = "first"
	recorded.Annotations = map[string]string{v1alpha1.BlockAnnotation: "p/10.0.0.0/25"}
	unreadable := w.claim("p", "unreadable", 25)
	unreadable.Annotations = map[string]string{v1alpha1.BlockAnnotation: "p/block"}
	waits := newSubnet(w.ns, "waits", "10.0.9.0/24")
	waits.Spec.PoolRef = "overlaps"
	restored := w.pool("restored", "10.8.0.0/16", "")
	restored.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: "of-the-past"}
	fresh := w.claim("restored", "fresh", 24)
	w.create(
		w.claim("nowhere", "pool-not-found", 24),
		w.claim("p", "exhausted", 22),
		w.exact("p", "taken", "10.0.0.0/26"),
		same, recorded, unreadable, restored, fresh,
		w.claim("p", "too-large", 8),
		w.exact("p", "outside", "10.200.0.0/24"),
		w.claim("p", "rejected", 28),
		w.pool("overlaps", "10.0.0.0/16", ""), w.claim("overlaps", "pool-not-ready", 24), waits,
		w.claim("p", "foreign", 28), w.poolClaim("foreign", "p", 28),
		w.poolClaim("mine", "p", 28),
		newSubnet(w.ns, "overlap", "10.0.0.0/26"),
		newSubnet(w.ns, "outside", "10.200.0.0/24"),
	)
	orphan := newSubnet(w.ns, "orphan", "10.0.0.0/26")
	orphan.Spec.PoolRef = "nowhere"
	one, two := w.forged("p", "same-cluster-1", "10.0.3.192/28"), w.forged("p", "same-cluster-2", "10.0.3.208/28")
	one.Spec.ClusterID, two.Spec.ClusterID = "forged", "forged"
	w.create(orphan, one, two)
}

// createAroundDeletion deletes a pool that is in use, and a Subnet that a claim has.
func (w *world) createAroundDeletion() {
	w.t.Helper()
	used := newSubnet(w.ns, "used", "10.9.0.0/24")
	used.Spec.PoolRef = "deleted"
	deleted := w.pool("deleted", "10.9.0.0/16", "")
	w.create(deleted)
	allocated(w.t, w.c, used)
	w.remove(deleted)
	late := newSubnet(w.ns, "late", "10.9.1.0/24")
	late.Spec.PoolRef = "deleted"
	w.create(w.claim("deleted", "pool-invalid", 24), late)

	lost := w.claim("p", "lost", 28)
	w.create(lost)
	w.bound(lost)
	w.remove(newSubnet(w.ns, lost.Status.SubnetRef, ""))
}
