package health_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/arbor-control/arbor/internal/decide/health"
)

// scheduled is a cluster in which the scheduler is healthy, too.
func scheduled(t *testing.T) health.Facts {
	t.Helper()
	f := well(t)
	f.Deployment.Is.Labels = map[string]string{"app.kubernetes.io/version": "0.2.0"}
	f.Scheduler.Deployment.Is = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "arbor-system", Name: "arbor-scheduler", Labels: map[string]string{"app.kubernetes.io/version": "0.2.0"}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Args: []string{"--scheduler-name=arbor-scheduler,kai-scheduler"}},
		}}}},
		Status: appsv1.DeploymentStatus{AvailableReplicas: 2, UpdatedReplicas: 2},
	}
	f.Scheduler.Lease.Is = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("two"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(now.Add(-time.Second))),
	}}

	return f
}

// aboutScheduler are the checks that a cluster without a scheduler does not have.
func aboutScheduler(t *testing.T, all []health.Check) []health.Check {
	t.Helper()

	return slices.DeleteFunc(all, func(c health.Check) bool {
		return c.About != "scheduler" && c.About != "pods" && !strings.HasSuffix(c.Object, "arbor-scheduler")
	})
}

// waitingPods are two that ask for the scheduler.
func waitingPods(f *health.Facts, age time.Duration) {
	f.Scheduler.Pods.Is = health.Pods{Count: 2, First: "ml/worker-0", Since: now.Add(-age)}
}

func TestScheduler(t *testing.T) {
	const (
		object = "arbor-system/arbor-scheduler"
		places = "2 of 2 replicas are available, placing pods for arbor-scheduler, kai-scheduler"
		renews = "two, renewed 1s ago"
	)
	good := health.Check{About: "scheduler", Object: object, State: health.OK, Message: places}
	leads := health.Check{About: "leader", Object: object, State: health.OK, Message: renews}
	dead := health.Check{
		About: "leader", Object: object, State: health.Problem, Message: "two, renewed 1h ago: it is gone or hangs, and no other replica took over",
		Fix: "see that a scheduler runs and reaches the API server",
	}
	die := func(f *health.Facts) { f.Scheduler.Lease.Is.Spec.RenewTime.Time = now.Add(-time.Hour) }
	with := func(c health.Check, change func(*health.Check)) health.Check {
		change(&c)

		return c
	}
	cases := map[string]struct {
		reason string
		do     func(*health.Facts)
		want   []health.Check
	}{
		"Well":    {"It runs, leads and is of the same release.", func(*health.Facts) {}, []health.Check{good, leads}},
		"None":    {"A cluster need not have one.", func(f *health.Facts) { f.Scheduler = health.Scheduler{} }, nil},
		"Outside": {"It may run elsewhere, with a Lease.", func(f *health.Facts) { f.Scheduler.Deployment.Is = nil }, []health.Check{leads}},
		"Uninstalled": {"Its Lease stays behind, and no pod needs it.", func(f *health.Facts) {
			f.Scheduler.Deployment.Is = nil
			die(f)
		}, nil},
		"UninstalledTooEarly": {"Its Lease stays behind, and pods need it.", func(f *health.Facts) {
			f.Scheduler.Deployment.Is = nil
			die(f)
			waitingPods(f, time.Minute)
		}, []health.Check{with(dead, func(c *health.Check) { c.Message += "; 2 pods that ask for it have no node, ml/worker-0 for 1m" })}},
		"NeverInstalled": {"Pods ask for what was never there.", func(f *health.Facts) {
			f.Scheduler = health.Scheduler{}
			waitingPods(f, time.Hour)
		}, []health.Check{{
			About: "scheduler", State: health.Warning, Message: "there is neither a Deployment nor a Lease of it, and 2 pods that ask for it have no node, ml/worker-0 for 1h",
			Fix: "install it with scheduler.enabled, or name another scheduler in spec.schedulerName of the pods",
		}}},
		"JustCreated": {"A pod may wait for a moment: arbor up runs a scheduler without a Lease.", func(f *health.Facts) {
			f.Scheduler = health.Scheduler{}
			waitingPods(f, time.Minute)
		}, nil},
		"Waiting": {
			"Pods that wait for room are shown, and are no problem of the scheduler.", func(f *health.Facts) { waitingPods(f, time.Hour) },
			[]health.Check{good, with(leads, func(c *health.Check) { c.Message += "; 2 pods that ask for it have no node, ml/worker-0 for 1h" })},
		},
		"Dead": {"It ended without releasing the lease.", die, []health.Check{good, dead}},
		"NoHolder": {"It released the lease, and no other took it.", func(f *health.Facts) { f.Scheduler.Lease.Is.Spec.HolderIdentity = nil }, []health.Check{good, {
			About: "leader", Object: object, State: health.Problem, Message: "no scheduler leads, and no pod that asks for it gets a node", Fix: "see that a scheduler runs; its log shows why it does not lead",
		}}},
		"NoLease": {"It has not led yet.", func(f *health.Facts) { f.Scheduler.Lease.Is = nil }, []health.Check{good, {
			About: "leader", Object: object, State: health.Warning, Message: "there is no Lease: no scheduler has led yet", Fix: "its log shows why it does not lead",
		}}},
		"OneAvailable": {"One crashes.", func(f *health.Facts) { f.Scheduler.Deployment.Is.Status.AvailableReplicas = 1 }, []health.Check{{
			About: "scheduler", Object: object, State: health.Warning, Message: "1 of 2 replicas are available, placing pods for arbor-scheduler, kai-scheduler",
			Fix: "kubectl -n arbor-system describe deployment arbor-scheduler, and the log of its pods",
		}, leads}},
		"OldServer": {"The API server does not serve what it reads.", func(f *health.Facts) { f.Server.Is = version.MustParseGeneric("1.35.2") }, []health.Check{{
			About: "scheduler", Object: object, State: health.Problem, Message: "Kubernetes is v1.35.2, and the scheduler waits for kinds that it does not serve",
			Fix: "upgrade it to v1.36 or later, or set scheduler.enabled to false",
		}, leads}},
		"OtherVersion": {"Only one of the two was upgraded.", func(f *health.Facts) { f.Scheduler.Deployment.Is.Labels["app.kubernetes.io/version"] = "0.1.0" }, []health.Check{{
			About: "scheduler", Object: object, State: health.Warning, Message: "it is of version 0.1.0, and the manager of version 0.2.0", Fix: "upgrade both with the same chart",
		}, leads}},
		"Configured": {"Profiles have the names, not the flag.", func(f *health.Facts) {
			f.Scheduler.Deployment.Is.Spec.Template.Spec.Containers[0].Args = []string{"--config=/etc/arbor/scheduler/config.yaml"}
		}, []health.Check{with(good, func(c *health.Check) {
			c.Message = "2 of 2 replicas are available, placing pods for the profiles of its configuration"
		}), leads}},
		"Denied": {"You may not look.", func(f *health.Facts) { f.Scheduler.Deployment.Err = errDenied }, []health.Check{
			{About: "scheduler", State: health.Unknown, Message: "forbidden", Fix: unknownFix},
		}},
		"DeniedLease": {"You may not look at Leases.", func(f *health.Facts) { f.Scheduler.Lease.Err = errDenied }, []health.Check{
			good, {About: "leader", Object: object, State: health.Unknown, Message: "forbidden", Fix: unknownFix},
		}},
		"DeniedPods": {"You may not look at pods.", func(f *health.Facts) { f.Scheduler.Pods.Err = errDenied }, []health.Check{
			good, leads, {About: "pods", State: health.Unknown, Message: "forbidden", Fix: unknownFix},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := scheduled(t)
			tc.do(&f)
			got := aboutScheduler(t, health.Examine(f, now))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const unknownFix = "ask a user who has the permission to read it"
