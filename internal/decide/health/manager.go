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

// oldest is the first Kubernetes that has all that is needed: match conditions of
// webhooks.
var oldest = version.MustParseGeneric("1.30.0")

func (f Facts) server() []Check {
	const about = "Kubernetes"
	v := f.Server.Is
	switch {
	case f.Server.Err != nil:
		return unknown(about, "", f.Server.Err)
	case v.LessThan(oldest):
		return []Check{{About: about, State: Problem, Message: fmt.Sprintf("it is v%s, which has no match conditions of webhooks", v), Fix: fmt.Sprintf("upgrade it to v%d.%d or later", oldest.Major(), oldest.Minor())}}
	}

	return []Check{{About: about, State: OK, Message: fmt.Sprintf("v%s", v)}}
}

func (f Facts) manager(on []Part) []Check {
	const about = "manager"
	d := f.Deployment.Is
	var parts []string
	for _, p := range on {
		parts = append(parts, p.Name)
	}
	runs := strings.Join(parts, ", ")
	switch {
	case f.Deployment.Err != nil:
		return unknown(about, "", f.Deployment.Err)
	case d == nil && len(on) == 0:
		return []Check{{
			About: about, State: Problem, Message: fmt.Sprintf("there is no Deployment of it in namespace %s, and none of its kinds", f.Namespace),
			Fix: "install Arbor, or name its namespace with --arbor-namespace",
		}}
	case d == nil:
		return []Check{{About: about, State: OK, Message: "it runs outside of the cluster, as far as one can see; there are the kinds of " + runs}}
	}

	return []Check{replicas(about, d, "running "+runs)}
}

// replicas is about those of a Deployment, which do something.
func replicas(about string, d *appsv1.Deployment, does string) Check {
	wanted, ready := int32(1), d.Status.AvailableReplicas
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	c := Check{About: about, Object: d.Namespace + "/" + d.Name, State: OK, Message: fmt.Sprintf("%d of %d replicas are available, %s", ready, wanted, does)}
	look := fmt.Sprintf("kubectl -n %s describe deployment %s, and the log of its pods", d.Namespace, d.Name)
	switch {
	case wanted == 0:
		c.State, c.Fix = Problem, fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=2", d.Namespace, d.Name)
	case ready == 0:
		c.State, c.Fix = Problem, look
	case ready < wanted:
		c.State, c.Fix = Warning, look
	case d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < wanted:
		c.State, c.Message, c.Fix = Warning, c.Message+"; not all of them are of its last version", look
	}

	return c
}

// leader checks that a manager leads.
func (f Facts) leader(now time.Time) []Check {
	const about = "leader"
	l := f.Lease.Is
	name := f.Namespace + "/" + Flag(f.Deployment.Is, "leader-election-id", names.Lease)
	switch {
	case f.Lease.Err != nil:
		return unknown(about, name, f.Lease.Err)
	case l == nil && f.answered():
		return []Check{{About: about, Object: name, State: OK, Message: "there is no Lease: the manager that answers runs without leader election"}}
	case l == nil:
		return []Check{{
			About: about, Object: name, State: Warning, Message: "there is no Lease: no manager has led, or it runs with --leader-elect=false",
			Fix: "if no manager runs, start one; else run no more than one without leader election",
		}}
	}

	return []Check{holder(name, l, now, "manager", "nothing is reconciled")}
}

// holder checks the holder of the Lease of a program. Without a holder, there is a consequence.
func holder(name string, l *coordinationv1.Lease, now time.Time, program, consequence string) Check {
	c := Check{About: "leader", Object: name, State: OK}
	by, renewed, seconds := l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds
	if by == nil || *by == "" {
		c.State, c.Message = Problem, fmt.Sprintf("no %s leads, and %s", program, consequence)
		c.Fix = fmt.Sprintf("see that a %s runs; its log shows why it does not lead", program)

		return c
	}
	c.Message = *by
	if renewed == nil || seconds == nil {
		return c
	}
	c.Message = fmt.Sprintf("%s, renewed %s ago", *by, ago(now, renewed.Time))
	if ends := renewed.Add(time.Duration(*seconds) * time.Second); now.After(ends) {
		c.State, c.Message = Problem, c.Message+": it is gone or hangs, and no other replica took over"
		c.Fix = fmt.Sprintf("see that a %s runs and reaches the API server", program)
	}

	return c
}

// answered reports whether any webhook did what it should: then a manager runs.
func (f Facts) answered() bool {
	for _, text := range f.Answers.Is {
		if text == "" {
			return true
		}
	}

	return false
}

// rights checks the permissions of the manager.
func (f Facts) rights() []Check {
	const about = "rights"
	switch {
	case f.Deployment.Is == nil:
		return nil // its identity is not known
	case f.Lacking.Err != nil:
		return unknown(about, "", f.Lacking.Err)
	case len(f.Lacking.Is) > 0:
		return []Check{{
			About: about, State: Problem, Message: "the manager may not " + strings.Join(f.Lacking.Is, ", nor "),
			Fix: "upgrade the chart with all components that --controllers names, or grant its ServiceAccount these permissions",
		}}
	}

	return []Check{{About: about, State: OK, Message: "the manager may do what its parts need"}}
}

// stuckAfter is how long something may wait before people should look.
const stuckAfter = 3 * time.Minute

func (f Facts) backlog(now time.Time) []Check {
	var all []Check
	for _, b := range f.Backlog {
		if b.Err != nil {
			all = append(all, unknown("backlog", b.Kind, b.Err)...)

			continue
		}
		c := Check{About: "backlog", Object: b.Kind, State: OK, Message: fmt.Sprintf("%d, and none waits", b.Total)}
		if b.Waiting > 0 {
			c.Message = fmt.Sprintf("%d of %d wait, %s for %s", b.Waiting, b.Total, b.First, ago(now, b.Oldest))
			if b.Why != "" {
				c.Message += ": " + b.Why
			}
		}
		if b.Waiting > 0 && now.Sub(b.Oldest) > stuckAfter {
			c.State, c.Fix = Warning, fixes[b.Kind]
		}
		all = append(all, c)
	}

	return all
}

// fixes are where to look for what waits, by kind.
var fixes = map[string]string{
	"PodGroup":        "arbor audit lists what is wrong with each",
	"SubnetPool":      "arbor pools show NAME, and add a pool or free what is not needed",
	"SubnetClaim":     "kubectl describe subnetclaim shows why; arbor pools simulate shows what would fit",
	"SubnetPoolClaim": "kubectl describe subnetpoolclaim shows why; arbor pools simulate shows what would fit",
	"Composition":     "arbor compositions explain NAME shows which resource is stuck, and why",
}
