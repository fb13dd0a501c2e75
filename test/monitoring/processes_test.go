package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// reviews are requests of the webhook of PodGroups, about PriorityClasses.
const reviews = `^POST /apis/authorization\.k8s\.io/v1/subjectaccessreviews$`

// guarded asks for PodGroups of a PriorityClass that not every user may use.
func (w *world) guarded(t *testing.T, good func(error) bool) (stop func()) {
	t.Helper()

	return load(t, 500*time.Millisecond, func(int) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		err := w.client.Create(ctx, &v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "guarded"}, Spec: v2alpha2.PodGroupSpec{MinMember: new(int32(1)), PriorityClassName: "system-node-critical"},
		}, client.DryRunAll)
		if !good(err) {
			return fmt.Errorf("it was answered with: %w", err)
		}

		return nil
	})
}

func undecided(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	allow := w.proxy.Forbid(t, reviews)
	stop := w.guarded(t, func(err error) bool { return err != nil })

	return map[string]string{"job": plainJob, "kind": "PodGroup"}, func() {
		stop()
		allow()
	}
}

func slowReviews(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	hurry := w.proxy.Slow(t, reviews, 1500*time.Millisecond)
	stop := w.guarded(t, func(err error) bool { return err == nil })

	return map[string]string{"job": plainJob, "kind": "PodGroup"}, func() {
		stop()
		hurry()
	}
}

// waitingGang has one that finds no room, and dates back since when it waits.
func waitingGang(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	must(t, w.gang(t.Context(), "waits", "", 3, seat))
	group := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "waits"}}
	cluster.Eventually(t, "the gang has waited for an hour", func() error {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}
		for i, c := range group.Status.Conditions {
			if c.Type != v2alpha2.PodGroupScheduled || c.Status != metav1.ConditionFalse {
				continue
			}
			group.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour))
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": group.ResourceVersion}, "status": map[string]any{"conditions": group.Status.Conditions}})
			must(t, err)

			return w.client.Status().Patch(t.Context(), group, client.RawPatch(types.MergePatchType, patch))
		}

		return errors.New("it does not wait")
	})

	return map[string]string{"job": gangsJob}, func() {
		w.delete(t, group)
		for i := range 3 {
			w.delete(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("waits-%d", i)}})
		}
	}
}

// leaderless has another manager, whose lease is held by a process that does not exist.
func leaderless(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	must(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaderlessJob}}))
	now := metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaderlessJob, Name: "arbor-manager"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("gone"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
	}}
	must(t, w.client.Create(t.Context(), lease))
	m := server.StartManager(t, server.Administrator(), "--leader-elect=true", "--controllers=delivery", "--webhooks=false",
		"--namespace="+leaderlessJob, "--composition-namespace="+leaderlessJob, "--log-format=text")
	w.scrape(t, leaderlessJob, m.Metrics)
	t.Cleanup(func() { w.scrape(t, leaderlessJob) })

	return map[string]string{"job": leaderlessJob}, func() { w.delete(t, lease) }
}

// restarting serves what a manager does that starts again and again. A real one would take
// longer to start than Prometheus looks back here.
func restarting(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	var ended atomic.Bool
	var starts atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		if !ended.Load() {
			starts.Add(1)
		}
		out.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintf(out, "process_start_time_seconds %d\nleader_election_master_status{name=\"arbor-manager\"} 1\n", starts.Load())
	}))
	t.Cleanup(s.Close)
	address := strings.TrimPrefix(s.URL, "http://")
	w.scrape(t, restartingJob, address)
	t.Cleanup(func() { w.scrape(t, restartingJob) })

	return map[string]string{"job": restartingJob, "instance": address}, func() { ended.Store(true) }
}
