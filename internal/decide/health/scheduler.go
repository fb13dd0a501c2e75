package health

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/arbor-control/arbor/api/names"
)

// oldestScheduled is the first Kubernetes that serves all kinds that the scheduler reads.
var oldestScheduled = version.MustParseGeneric("1.36.0")

// A Scheduler is what was found of arbor-scheduler. It is optional: a cluster may have none.
type Scheduler struct {
	// Deployment of it. There is none if it runs elsewhere, or not at all.
	Deployment Found[*appsv1.Deployment]
	Lease      Found[*coordinationv1.Lease]
	// Pods that ask for it and have no node.
	Pods Found[Pods]
}

// Pods are those that wait for a node.
type Pods struct {
	Count int
	// First is the one that was created first, and Since when that was.
	First string
	Since time.Time
}

// SchedulerNames are the values of spec.schedulerName of pods that the scheduler of a Deployment
// places, nil if only its configuration has them.
func SchedulerNames(d *appsv1.Deployment) []string {
	if Flag(d, "config", "") != "" {
		return nil
	}

	return strings.Split(Flag(d, "scheduler-name", names.Scheduler), ",")
}

// scheduler is about arbor-scheduler, if there is one or pods ask for it.
func (f Facts) scheduler(now time.Time) []Check {
	const about = "scheduler"
	s := f.Scheduler
	d := s.Deployment.Is
	switch {
	case s.Deployment.Err != nil:
		return unknown(about, "", s.Deployment.Err)
	case d == nil && s.Lease.Is == nil && s.Lease.Err == nil:
		return s.missing(now)
	case d == nil:
		return f.schedulerLeader(now)
	}
	places := strings.Join(SchedulerNames(d), ", ")
	if places == "" {
		places = "the profiles of its configuration"
	}
	c := replicas(about, d, "placing pods for "+places)
	switch {
	case f.Server.Is != nil && f.Server.Is.LessThan(oldestScheduled):
		c.State, c.Message = Problem, fmt.Sprintf("Kubernetes is v%s, and the scheduler waits for kinds that it does not serve", f.Server.Is)
		c.Fix = fmt.Sprintf("upgrade it to v%d.%d or later, or set scheduler.enabled to false", oldestScheduled.Major(), oldestScheduled.Minor())
	case c.State == OK && f.versionsDiffer():
		c.State, c.Message = Warning, fmt.Sprintf("it is of version %s, and the manager of version %s", versionOf(d), versionOf(f.Deployment.Is))
		c.Fix = "upgrade both with the same chart"
	}

	return append([]Check{c}, f.schedulerLeader(now)...)
}

// missing checks for pods that name a scheduler which does not seem to run.
func (s Scheduler) missing(now time.Time) []Check {
	if p := s.Pods.Is; p.Count > 0 && now.Sub(p.Since) > stuckAfter {
		return []Check{{
			About: "scheduler", State: Warning, Message: "there is neither a Deployment nor a Lease of it, and " + p.text(now),
			Fix: "install it with scheduler.enabled, or name another scheduler in spec.schedulerName of the pods",
		}}
	}

	return nil
}

// schedulerLeader checks that a scheduler leads.
func (f Facts) schedulerLeader(now time.Time) []Check {
	name := f.Namespace + "/" + names.Scheduler
	s := f.Scheduler
	if s.Lease.Err != nil {
		return unknown("leader", name, s.Lease.Err)
	}
	c := Check{About: "leader", Object: name, State: Warning, Message: "there is no Lease: no scheduler has led yet", Fix: "its log shows why it does not lead"}
	if s.Lease.Is != nil {
		c = holder(name, s.Lease.Is, now, "scheduler", "no pod that asks for it gets a node")
	}
	if s.Deployment.Is == nil && c.State == Problem && s.Pods.Is.Count == 0 {
		return nil // a Lease stays when its scheduler is uninstalled
	}
	if s.Pods.Err != nil {
		return append([]Check{c}, unknown("pods", "", s.Pods.Err)...)
	}
	if s.Pods.Is.Count > 0 {
		c.Message += "; " + s.Pods.Is.text(now)
	}

	return []Check{c}
}

func (p Pods) text(now time.Time) string {
	if p.Count == 1 {
		return fmt.Sprintf("1 pod that asks for it has no node, %s for %s", p.First, ago(now, p.Since))
	}

	return fmt.Sprintf("%d pods that ask for it have no node, %s for %s", p.Count, p.First, ago(now, p.Since))
}

// versionsDiffer reports whether manager and scheduler are of different releases.
func (f Facts) versionsDiffer() bool {
	m, s := versionOf(f.Deployment.Is), versionOf(f.Scheduler.Deployment.Is)

	return m != "" && s != "" && m != s
}

func versionOf(d *appsv1.Deployment) string {
	if d == nil {
		return ""
	}

	return d.Labels[names.VersionLabel]
}
