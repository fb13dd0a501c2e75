package node_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// clients is how many send requests at the same time.
const clients = 4

var restarts = flag.Int("restarts", 3, "how many times the managers are replaced while requests are admitted")

// A stream of requests passes the webhook of pod groups.
type stream struct {
	requests atomic.Int64
	stop     context.CancelFunc
	done     sync.WaitGroup

	mu     sync.Mutex
	failed []string
}

// admit starts a stream. It ends with the test.
func admit(t *testing.T, c client.Client) *stream {
	t.Helper()
	where := cluster.Namespace(t, c)
	cluster.Eventually(t, "webhooks are called", func() error {
		wrong := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: where, Name: "wrong"}, Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "a", Parent: new("none")}}}}
		if err := c.Create(t.Context(), wrong, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "admission webhook") {
			return fmt.Errorf("a wrong PodGroup was answered with %w", err)
		}

		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	s := &stream{stop: stop}
	t.Cleanup(s.end)
	for n := range clients {
		s.done.Go(func() {
			for tick := time.NewTicker(10 * time.Millisecond); ; {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				group := &v2alpha2.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Namespace: where, Name: fmt.Sprintf("client-%d", n)},
					Spec:       v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "a"}}},
				}
				s.requests.Add(1)
				if err := c.Create(context.WithoutCancel(ctx), group, client.DryRunAll); err != nil {
					s.mu.Lock()
					s.failed = append(s.failed, time.Now().Format("15:04:05.000 ")+err.Error())
					s.mu.Unlock()
				}
			}
		})
	}

	return s
}

func (s *stream) end() {
	s.stop()
	s.done.Wait()
}

// check ends the stream, which must have had no failures.
func (s *stream) check(t *testing.T) {
	t.Helper()
	s.end()
	t.Logf("%d requests, %d failed", s.requests.Load(), len(s.failed))
	if s.requests.Load() < 100 {
		t.Errorf("only %d requests were sent", s.requests.Load())
	}
	if len(s.failed) > 0 {
		t.Errorf("%d of %d requests failed, the first with: %s", len(s.failed), s.requests.Load(), s.failed[0])
	}
}

// Requests are admitted while managers are replaced by rollouts.
func TestRollingRestart(t *testing.T) {
	c := server.Client(t, nil)
	s := admit(t, c)
	for n := range *restarts {
		restart(t, c, strconv.Itoa(n))
	}
	settled(t, c)
	s.check(t)
}

// restart does what `kubectl rollout restart` does, and waits for the new pods.
func restart(t *testing.T, c client.Client, value string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "arbor-manager"}}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, value)
	must(t, c.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(patch))))
	cluster.Eventually(t, "the managers are new", func() error { return rolledOut(t.Context(), c, d.Name) })
}

// settled waits until the pods of managers that are to end have ended.
func settled(t *testing.T, c client.Client) {
	t.Helper()
	cluster.Eventually(t, "old managers have ended", func() error {
		if n := len(managers(t, c)); n != 2 {
			return fmt.Errorf("there are %d pods", n)
		}

		return nil
	})
}

func managers(t *testing.T, c client.Client) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	must(t, c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"}))

	return pods.Items
}
