package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// A State is how something is.
type State string

// The states, from good to bad.
const (
	OK      State = "ok"
	Unknown State = "unknown"
	Warning State = "warning"
	Problem State = "problem"
)

// A Check is one thing that was checked.
type Check struct {
	// About is the subject in one or two words, and Object its name.
	About  string `json:"about"`
	Object string `json:"object,omitempty"`
	State  State  `json:"state"`
	// Message is what was found, and Fix what to do about it if it is not ok.
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// A Report is the result of all checks.
type Report struct {
	// State is the worst of the checks.
	State  State   `json:"state"`
	Checks []Check `json:"checks"`
}

// NewReport returns the report of checks.
func NewReport(all []Check) Report { return Report{State: Worst(all), Checks: all} }

// Examine checks everything.
func Examine(f Facts, now time.Time) []Check {
	on := f.Running()

	return slices.Concat(
		f.server(),
		f.manager(on),
		f.leader(now),
		f.definitions(on),
		f.webhooks(on, now),
		f.authority(on, now),
		f.rights(),
		f.scheduler(now),
		f.backlog(now),
	)
}

// Running are the components that run: those of the Deployment, or else those whose kinds all
// exist.
func (f Facts) Running() []Part {
	named := f.named()

	return slices.DeleteFunc(slices.Clone(f.Parts), func(p Part) bool {
		if named != nil {
			return !slices.Contains(named, p.Name)
		}

		return slices.ContainsFunc(p.names(), func(name string) bool { return f.Definitions.Is[name] == nil })
	})
}

// named are the components of the Deployment, nil if there is no Deployment.
func (f Facts) named() []string {
	if f.Deployment.Is == nil {
		return nil
	}
	if list := Flag(f.Deployment.Is, "controllers", ""); list != "" {
		return strings.Split(list, ",")
	}
	var all []string
	for _, p := range f.Parts {
		all = append(all, p.Name)
	}

	return all
}

// Flag is what a Deployment gives its manager for a flag, or else what the manager
// takes.
func Flag(d *appsv1.Deployment, name, otherwise string) string {
	if d == nil {
		return otherwise
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
				return value
			}
		}
	}

	return otherwise
}

func (p Part) names() []string {
	all := make([]string, len(p.Definitions))
	for i, d := range p.Definitions {
		all[i] = d.Name
	}

	return all
}

// unknown is a check that could not be made.
func unknown(about, object string, err error) []Check {
	return []Check{{About: about, Object: object, State: Unknown, Message: err.Error(), Fix: "ask a user who has the permission to read it"}}
}

func ago(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}

	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
