package podgroups_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const notDuration = `preemptionDelay "abc" is not a duration such as 30s or 1h30m`

// The webhook rejects an invalid duration. One that is stored is reported, does
// not lock its object, and does not stop the manager from seeing other groups.
func TestInvalidDuration(t *testing.T) {
	c := newClient(t, nil)
	ns := cluster.Namespace(t, c)
	stored := group(ns, "stored", sub("master"))
	stored.Spec.PreemptionDelay = &v2alpha2.Duration{Invalid: `"abc"`}
	storeUnchecked(t, c, stored)
	startManager(t)

	awaitValid(t, c, stored, metav1.ConditionFalse, v2alpha2.ReasonInvalidDuration, notDuration)
	if err := update(t, c, stored, func(pg *v2alpha2.PodGroup) { pg.Labels = map[string]string{"a": "b"} }); err != nil {
		t.Errorf("the stored group cannot be labeled: %v", err)
	}
	if err := update(t, c, stored, func(pg *v2alpha2.PodGroup) {
		pg.Spec.PreemptionDelay = &v2alpha2.Duration{Duration: time.Second}
	}); err != nil {
		t.Errorf("the stored group cannot be fixed: %v", err)
	}
	awaitValid(t, c, stored, metav1.ConditionTrue, v2alpha2.ReasonTreeValid, "the subgroups form a tree")

	bad := group(ns, "bad", sub("master"))
	bad.Spec.PreemptionDelay = &v2alpha2.Duration{Invalid: `"abc"`}
	if got := verdict(t, c.Create(t.Context(), bad)); got != notDuration {
		t.Errorf("an invalid duration: got %q, want %q", got, notDuration)
	}
}
