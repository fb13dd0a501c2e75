package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// some are ConfigMaps, of which some come and go with the round.
func some(round, n int) []string {
	var all []string
	for i := range n {
		if (i+round)%3 != 0 {
			all = append(all, configMap(fmt.Sprintf("c%03d", i), strconv.Itoa(round), "eno.azure.io/readiness-group", strconv.Itoa(i%4)))
		}
	}

	return all
}

// agrees expects the namespace to hold the objects of the last synthesis, and nothing else that was
// delivered.
func (w *world) agrees(round, n int) {
	w.Helper()
	want := map[string]bool{}
	for i := range n {
		if (i+round)%3 != 0 {
			want[fmt.Sprintf("c%03d", i)] = true
		}
	}
	cluster.Eventually(w, "the cluster agrees", func() error {
		list := &corev1.ConfigMapList{}
		must(w, w.c.List(w.Context(), list, client.InNamespace(w.ns)))
		found := 0
		for _, o := range list.Items {
			if o.Name == "kube-root-ca.crt" {
				continue
			}
			if !want[o.Name] || o.Data["a"] != strconv.Itoa(round) {
				return fmt.Errorf("there is %s with %s", o.Name, o.Data["a"])
			}
			found++
		}
		if found != len(want) {
			return fmt.Errorf("there are %d, want %d", found, len(want))
		}

		return nil
	})
}

// TestKilled kills the manager in the middle of its work, again and again.
func TestKilled(t *testing.T) {
	const n = 60
	r := rand.New(rand.NewPCG(7, 7))
	w := newWorld(t)
	w.perSlice = 25
	for round := range 10 {
		m := start(t)
		w.synthesize(some(round, n)...)
		<-time.After(time.Duration(r.IntN(400)) * time.Millisecond)
		m.Kill()
	}
	start(t)
	w.ready()
	w.agrees(9, n)
	w.remove()
	w.deleted()
	list := &corev1.ConfigMapList{}
	must(t, w.c.List(t.Context(), list, client.InNamespace(w.ns)))
	for _, o := range list.Items {
		if o.Name != "kube-root-ca.crt" {
			t.Errorf("%s was left behind", o.Name)
		}
	}
}

// TestTwoManagers has two that do not know of each other, and syntheses that come
// faster than they are delivered.
func TestTwoManagers(t *testing.T) {
	const n = 60
	w := newWorld(t)
	w.perSlice = 25
	one, two := start(t), start(t)
	for round := range 6 {
		w.synthesize(some(round, n)...)
		if round%2 == 1 {
			w.ready()
		}
	}
	w.ready()
	w.agrees(5, n)
	quiet(t, one, 2*time.Second)
	quiet(t, two, 2*time.Second)
	w.agrees(5, n)
	w.remove()
	w.deleted()
}
