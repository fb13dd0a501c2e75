package eno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// deployment is the manifest of web, with annotations, which are pairs.
func deployment(image string, annotations ...string) string {
	text := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
spec:
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: %q}]}}
metadata:
  name: web
  annotations:
    own: kept
`, image)
	for i := 1; i < len(annotations); i += 2 {
		text += fmt.Sprintf("    %s: %q\n", annotations[i-1], annotations[i])
	}

	return text
}

// pods has the pods of web with an image become ready, or not. There are no nodes, so that
// nothing else writes their status but the scheduler, which finds no place for them.
func (e *env) pods(image string, ready corev1.ConditionStatus) {
	e.Helper()
	cluster.Eventually(e, "there are pods of "+image, func() error {
		list, found := &corev1.PodList{}, false
		if err := e.List(e.Context(), list, client.InNamespace(e.namespace), client.MatchingLabels{"app": "web"}); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Spec.Containers[0].Image != image {
				continue
			}
			found = true
			patch := fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":%q}]}}`, ready)
			if err := e.Status().Patch(e.Context(), &list.Items[i], client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
				return err
			}
		}
		if !found {
			return errors.New("there is none")
		}

		return nil
	})
}

// health waits until the condition Healthy of app has a status, a reason and a message.
func (e *env) health(status metav1.ConditionStatus, reason, message string) {
	e.Helper()
	e.await("app", fmt.Sprintf("is %s: %s", reason, message), func(c *enov1.Composition) error {
		cond := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionHealthy)
		if cond == nil || cond.Status != status || cond.Reason != reason || cond.Message != message {
			return fmt.Errorf("the condition is %+v", cond)
		}

		return nil
	})
}

// requests is how many requests of any kind the manager has sent.
func (e *env) requests() float64 {
	e.Helper()

	return manager.Sum(e, "rest_client_requests_total")
}

// quiet waits until the manager has sent no request for longer than it waits between two
// reads of one object.
func (e *env) quiet() {
	e.Helper()
	const long = 6 * time.Second
	last, since := e.requests(), time.Now()
	cluster.Eventually(e, fmt.Sprintf("there is no request for %s", long), func() error {
		if now := e.requests(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < long {
			return fmt.Errorf("there were %v requests, the last %s ago", last, time.Since(since))
		}

		return nil
	})
}

// TestHealth has a Deployment roll out, break and recover. Ready is what it became once.
func TestHealth(t *testing.T) {
	e := newEnv(t)
	name := "Deployment " + e.namespace + "/web"
	e.compose("app", nil, deployment("a"), configMap("config", "1"))
	e.ready("app")
	e.health("Unknown", enov1.ReasonProgressing, "1 of 2 objects is not healthy (1 progressing): "+name+": LessAvailable: Available: 0/1")
	e.pods("a", corev1.ConditionTrue)
	e.health("True", enov1.ReasonHealthy, "2 objects are healthy")

	// At rest nothing is sent, whatever happens to objects without health.
	e.quiet()
	before := e.requests()
	must(t, e.Patch(t.Context(), e.config("config"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"another":"1"}}}`))))
	e.quiet()
	if n := e.requests() - before; n != 0 {
		t.Errorf("at rest there were %v requests", n)
	}

	e.pods("a", corev1.ConditionFalse)
	lost := "1 of 2 objects is not healthy (1 degraded): " + name + ": LessAvailable: Available: 0/1"
	e.health("False", enov1.ReasonDegraded, lost)
	if n := manager.Sum(t, "eno_compositions_unhealthy"); n != 1 {
		t.Errorf("%v compositions count as unhealthy, want 1", n)
	}
	e.ready("app")
	// One read of the Deployment, and one write of the condition; its controller may write
	// the status twice. What follows from that is in the caches.
	e.quiet()
	if n := e.requests() - before; n > 4 {
		t.Errorf("one change of the status caused %v requests", n)
	}

	// Many changes cost few requests: a read and a write in five seconds.
	before = e.requests()
	began := time.Now()
	for range 10 {
		e.pods("a", corev1.ConditionTrue)
		e.pods("a", corev1.ConditionFalse)
	}
	e.pods("a", corev1.ConditionTrue)
	e.health("True", enov1.ReasonHealthy, "2 objects are healthy")
	e.quiet()
	if n, most := e.requests()-before, 4+2*time.Since(began).Seconds()/5; n > most {
		t.Errorf("21 changes caused %v requests in %s, want at most %v", n, time.Since(began), most)
	}

	// The deadline of the Deployment itself.
	e.change("app", strings.Replace(deployment("b"), "Seconds: 600", "Seconds: 1", 1), configMap("config", "1"))
	e.await("app", "has failed", func(c *enov1.Composition) error {
		cond := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionHealthy)
		if cond.Reason != enov1.ReasonFailed || !strings.HasPrefix(cond.Message, "1 of 2 objects is not healthy (1 failed): "+name+": ProgressDeadlineExceeded: ") {
			return fmt.Errorf("the condition is %+v", cond)
		}

		return nil
	})

	e.restart()
	e.pods("b", corev1.ConditionTrue)
	e.health("True", enov1.ReasonHealthy, "2 objects are healthy")
	if n := manager.Sum(t, "eno_compositions_unhealthy"); n != 0 {
		t.Errorf("%v compositions count as unhealthy, want none", n)
	}
}

// TestHealthTimeout has a Deployment that does not roll out in time.
func TestHealthTimeout(t *testing.T) {
	e := newEnv(t)
	e.restartWith("--health-timeout=8s")
	name := "Deployment " + e.namespace + "/web"
	e.compose("app", nil, deployment("a"))
	e.health("Unknown", enov1.ReasonProgressing, "1 of 1 objects is not healthy (1 progressing): "+name+": LessAvailable: Available: 0/1")
	e.health("False", enov1.ReasonDegraded, "1 of 1 objects is not healthy (1 degraded): "+name+": Timeout: progressing for more than 8s: LessAvailable: Available: 0/1")
	e.pods("a", corev1.ConditionTrue)
	e.health("True", enov1.ReasonHealthy, "1 object is healthy")
}

// TestHealthNotDelivered has a manifest that the server rejects.
func TestHealthNotDelivered(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("good", "1"), "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 0}]}\n")
	e.await("app", "is degraded", func(c *enov1.Composition) error {
		cond := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionHealthy)
		if cond == nil || cond.Reason != enov1.ReasonDegraded || !strings.Contains(cond.Message, "Service "+e.namespace+"/bad: NotDelivered: ") {
			return fmt.Errorf("the condition is %+v", cond)
		}

		return nil
	})
	e.change("app", configMap("good", "1"), "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 80}]}\n")
	e.health("True", enov1.ReasonHealthy, "2 objects are healthy")
}

// TestHealthSuspended has no health computed while a composition is suspended, or deleted.
func TestHealthSuspended(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, deployment("a"), configMap("kept", "1"))
	e.ready("app")
	e.pods("a", corev1.ConditionTrue)
	e.health("True", enov1.ReasonHealthy, "2 objects are healthy")
	e.arbor(0, "delivery", "suspend", "app", "--reason", "testing")
	e.health("Unknown", enov1.ReasonSuspended, "the health of objects is not evaluated while the composition is suspended")
	e.pods("a", corev1.ConditionFalse)
	e.arbor(0, "delivery", "resume", "app")
	e.health("False", enov1.ReasonDegraded, "1 of 2 objects is not healthy (1 degraded): Deployment "+e.namespace+"/web: LessAvailable: Available: 0/1")

	web := &appsv1.Deployment{}
	must(t, e.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "web"}, web))
	must(t, e.Patch(t.Context(), web, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/test"]}}`))))
	e.edit("app", func(c *enov1.Composition) {
		c.Annotations = map[string]string{enov1.AnnotationDeletionStrategy: enov1.DeletionForeground}
	})
	e.remove("app")
	e.health("Unknown", enov1.ReasonDeleting, "the composition is being deleted")
	must(t, e.Patch(t.Context(), web, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	e.gone("app")
}

// TestReadinessByHealth has a group wait until an object of the one before is healthy: by
// the annotation of its manifest, by that of the composition, and by the flag.
func TestReadinessByHealth(t *testing.T) {
	const group, mode = enov1.AnnotationReadinessGroup, enov1.AnnotationReadinessMode
	waits := func(t *testing.T, e *env) {
		t.Helper()
		e.status("app", enov1.StatusReconciling, "")
		e.health("Unknown", enov1.ReasonProgressing, "2 of 2 objects are not healthy (2 progressing): ConfigMap "+e.namespace+"/after: NotApplied: it is not applied yet")
		e.pods("a", corev1.ConditionFalse)
		e.health("Unknown", enov1.ReasonProgressing, "2 of 2 objects are not healthy (2 progressing): ConfigMap "+e.namespace+"/after: NotApplied: it is not applied yet")
		if e.config("after") != nil {
			t.Error("the group is open")
		}
		e.pods("a", corev1.ConditionTrue)
		e.ready("app")
		e.exist("after")
		e.health("True", enov1.ReasonHealthy, "2 objects are healthy")
		d := &appsv1.Deployment{}
		must(t, e.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "web"}, d))
		if _, ok := d.Annotations[mode]; ok || d.Annotations["own"] != "kept" {
			t.Errorf("the annotations are %v", d.Annotations)
		}
	}
	after := configMap("after", "1", group, "2")
	t.Run("Manifest", func(t *testing.T) {
		e := newEnv(t)
		e.compose("app", nil, deployment("a", group, "1", mode, "kstatus"), after)
		waits(t, e)
	})
	t.Run("Composition", func(t *testing.T) {
		e := newEnv(t)
		e.compose("app", annotated(mode, "kstatus"), deployment("a", group, "1"), after)
		waits(t, e)
	})
	t.Run("Eno", func(t *testing.T) {
		e := newEnv(t)
		e.compose("app", nil, deployment("a", group, "1"), after)
		e.ready("app")
		e.exist("after")
	})
	t.Run("Flag", func(t *testing.T) {
		e := newEnv(t)
		e.restartWith("--readiness=kstatus")
		e.compose("app", nil, deployment("a", group, "1"), after)
		waits(t, e)
		// A new status is what a changed object needs.
		e.change("app", deployment("b", group, "1"), configMap("after", "2", group, "2"))
		e.status("app", enov1.StatusReconciling, "")
		e.health("Unknown", enov1.ReasonProgressing, "2 of 2 objects are not healthy (2 progressing): ConfigMap "+e.namespace+"/after: NotApplied: it is not applied yet")
		if o := e.config("after"); o.Data["a"] != "1" {
			t.Errorf("it was applied: %v", o.Data)
		}
		e.pods("b", corev1.ConditionTrue)
		e.value("after", "2")
		e.ready("app")
	})
}
