package podgroups_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const finalizer = "test.arbor/hold"

// storeUnchecked stores a group while no webhook is registered, as an upgrade
// from a release without one would find it.
func storeUnchecked(t *testing.T, c client.Client, pg *v2alpha2.PodGroup) {
	t.Helper()
	server.StartManager(t, podGroupsOnly, "--webhooks=false").Stop() // installs the CRD
	unregister(t, c)
	cluster.Eventually(t, "it can be stored", func() error { return c.Create(t.Context(), pg.DeepCopy(), client.DryRunAll) })
	if err := c.Create(t.Context(), pg); err != nil {
		t.Fatal(err)
	}
}

// Nothing that is stored is ever bricked, and no update can make it worse.
func TestStoredBeforeTheRule(t *testing.T) {
	c := newClient(t, nil)
	pg := group(cluster.Namespace(t, c), "old", sub("Master"), under("Master", "workers"))
	pg.Finalizers = []string{finalizer}
	storeUnchecked(t, c, pg)
	startManager(t)

	steps := []struct {
		reason string
		change func(*v2alpha2.PodGroup)
		want   string
	}{
		{"Labels are not the tree's business.", func(pg *v2alpha2.PodGroup) { pg.Labels = map[string]string{"a": "b"} }, ""},
		{"Nor is the queue.", func(pg *v2alpha2.PodGroup) { pg.Spec.Queue = "other" }, ""},
		{"A change of the tree must make it valid.", func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups = append(pg.Spec.SubGroups, sub("x")) }, `subgroup name "Master" must be lowercase`},
		{"Half fixed is not fixed.", func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups[0].Name = "master" }, `parent of subgroup "workers": subgroup name "Master" must be lowercase`},
	}
	for _, s := range steps {
		if got := verdict(t, update(t, c, pg, s.change)); got != s.want {
			t.Errorf("%s\ngot  %q\nwant %q", s.reason, got, s.want)
		}
	}

	if err := c.Delete(t.Context(), pg); err != nil {
		t.Fatalf("it cannot be deleted: %v", err)
	}
	if err := update(t, c, pg, func(pg *v2alpha2.PodGroup) { pg.Finalizers = nil }); err != nil {
		t.Fatalf("it cannot lose its finalizer: %v", err)
	}
	cluster.Eventually(t, "it is gone", func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(pg), pg)
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(errors.New("it is still there"), err)
	})
}

// The condition shows a broken group, follows it when it is fixed, and reports both in events.
func TestValidCondition(t *testing.T) {
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)
	pg := group(ns, "old", sub("Master"))
	storeUnchecked(t, c, pg)
	startManager(t)

	awaitValid(t, c, pg, metav1.ConditionFalse, v2alpha2.ReasonNameNotLowercase, `subgroup name "Master" must be lowercase`)
	awaitEvent(t, c, pg, corev1.EventTypeWarning, v2alpha2.ReasonNameNotLowercase, `subgroup name "Master" must be lowercase`)

	if err := update(t, c, pg, func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups[0].Name = "master" }); err != nil {
		t.Fatal(err)
	}
	awaitValid(t, c, pg, metav1.ConditionTrue, v2alpha2.ReasonTreeValid, "the subgroups form a tree")
	awaitEvent(t, c, pg, corev1.EventTypeNormal, v2alpha2.ReasonTreeValid, "the subgroups form a tree")
}

// A condition of another client is kept, and one of ours that was lost comes back.
func TestConditionsOfOthers(t *testing.T) {
	startManager(t)
	c := newClient(t, nil)
	pg := group(cluster.Namespace(t, c), "shared", sub("master"))
	if err := c.Create(t.Context(), pg); err != nil {
		t.Fatal(err)
	}
	awaitValid(t, c, pg, metav1.ConditionTrue, v2alpha2.ReasonTreeValid, "the subgroups form a tree")

	theirs := v2alpha2.PodGroupCondition{Type: "Theirs", Status: metav1.ConditionTrue, TransitionID: "7"}
	base := pg.DeepCopy()
	pg.Status.Conditions = []v2alpha2.PodGroupCondition{theirs}
	if err := c.Status().Patch(t.Context(), pg, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	awaitValid(t, c, pg, metav1.ConditionTrue, v2alpha2.ReasonTreeValid, "the subgroups form a tree")
	if len(pg.Status.Conditions) != 2 || pg.Status.Conditions[0] != theirs {
		t.Errorf("conditions are %+v", pg.Status.Conditions)
	}
}

// An idle group costs nothing: after the condition is there, nothing is
// written, not even when the manager starts again.
func TestIdleGroupIsNotWritten(t *testing.T) {
	m := startManager(t)
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)
	pg := group(ns, "idle", sub("master"))
	if err := c.Create(t.Context(), pg); err != nil {
		t.Fatal(err)
	}
	awaitValid(t, c, pg, metav1.ConditionTrue, v2alpha2.ReasonTreeValid, "the subgroups form a tree")
	m.Stop()

	startManager(t)
	// A later group passes through the same queue: when it is done, so is the
	// idle one.
	later := group(ns, "later", sub("master"))
	if err := c.Create(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	awaitValid(t, c, later, metav1.ConditionTrue, v2alpha2.ReasonTreeValid, "the subgroups form a tree")
	got := &v2alpha2.PodGroup{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pg), got); err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != pg.ResourceVersion {
		t.Errorf("it was written again: resourceVersion %s, then %s", pg.ResourceVersion, got.ResourceVersion)
	}
}

func awaitValid(t *testing.T, c client.Client, pg *v2alpha2.PodGroup, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("Valid is %s", status), func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pg), pg); err != nil {
			return err
		}
		for _, cond := range pg.Status.Conditions {
			if cond.Type == v2alpha2.PodGroupValid && cond.Status == status && cond.ObservedGeneration == pg.Generation {
				if cond.Reason != reason || cond.Message != message {
					t.Errorf("the condition reports %s: %q, want %s: %q", cond.Reason, cond.Message, reason, message)
				}

				return nil
			}
		}

		return fmt.Errorf("conditions are %+v", pg.Status.Conditions)
	})
}

func awaitEvent(t *testing.T, c client.Client, pg *v2alpha2.PodGroup, kind, reason, message string) {
	t.Helper()
	cluster.Eventually(t, "there is an event", func() error {
		list := &corev1.EventList{}
		if err := c.List(t.Context(), list, client.InNamespace(pg.Namespace)); err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if e.InvolvedObject.UID == pg.UID && e.Type == kind && e.Reason == reason && e.Message == message {
				return nil
			}
			seen = append(seen, e.Type+" "+e.Reason+" "+e.Message)
		}

		return errors.New("events are " + strings.Join(seen, "; "))
	})
}
