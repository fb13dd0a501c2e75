package health

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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

	return []Check{deployment(d, runs)}
}

func deployment(d *appsv1.Deployment, runs string) Check {
	wanted, ready := int32(1), d.Status.AvailableReplicas
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	c := Check{About: "manager", Object: d.Namespace + "/" + d.Name, State: OK, Message: fmt.Sprintf("%d of %d replicas are available, running %s", ready, wanted, runs)}
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

// leader is about who does the work.
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
	case l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "":
		return []Check{{About: about, Object: name, State: Problem, Message: "nobody leads, and nothing is reconciled", Fix: "see that a manager runs; its log says why it does not lead"}}
	}
	c := Check{About: about, Object: name, State: OK}
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		c.Message = *l.Spec.HolderIdentity

		return []Check{c}
	}
	c.Message = fmt.Sprintf("%s, renewed %s ago", *l.Spec.HolderIdentity, ago(now, l.Spec.RenewTime.Time))
	if ends := l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second); now.After(ends) {
		c.State, c.Message = Problem, c.Message+": it is gone or hangs, and nobody took over"
		c.Fix = "see that a manager runs and reaches the API server"
	}

	return []Check{c}
}

// answered says whether any webhook did what it should: then a manager runs.
func (f Facts) answered() bool {
	for _, text := range f.Answers.Is {
		if text == "" {
			return true
		}
	}

	return false
}

// rights are those of the manager.
func (f Facts) rights() []Check {
	const about = "rights"
	switch {
	case f.Deployment.Is == nil:
		return nil // nobody knows who it is
	case f.Lacking.Err != nil:
		return unknown(about, "", f.Lacking.Err)
	case len(f.Lacking.Is) > 0:
		return []Check{{
			About: about, State: Problem, Message: "the manager may not " + strings.Join(f.Lacking.Is, ", nor "),
			Fix: "upgrade the chart with all parts that --controllers names, or give its service account these rights",
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
	"SubnetClaim":     "kubectl describe subnetclaim says why; arbor pools simulate tells what would fit",
	"SubnetPoolClaim": "kubectl describe subnetpoolclaim says why; arbor pools simulate tells what would fit",
	"Composition":     "arbor delivery NAME shows which resource is stuck, and why",
}
