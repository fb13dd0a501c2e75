package compositions

import (
	"fmt"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	synthesisrules "github.com/arbor-control/arbor/internal/decide/synthesis"
)

// RolloutsView is what arbor compositions rollout prints for programs.
type RolloutsView struct {
	// Rollouts are sorted by Synthesizer.
	Rollouts []RolloutView `json:"rollouts"`
}

// A RolloutView is how far one Synthesizer is rolled out.
type RolloutView struct {
	Synthesizer string `json:"synthesizer"`
	Generation  int64  `json:"generation"`
	Updated     int    `json:"updated"`
	Running     int    `json:"running"`
	Waiting     int    `json:"waiting"`
	Other       int    `json:"other"`
	// Failed are sorted by namespace and name.
	Failed []FailedComposition `json:"failed"`
	Halted bool                `json:"halted"`
	// Resumed is set if a user wants this generation to go on whatever fails.
	Resumed bool `json:"resumed"`
	// Message is why the rollout is halted.
	Message string `json:"message,omitempty"`
}

// A FailedComposition is one that a rollout has broken.
type FailedComposition struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Error     string `json:"error,omitempty"`
}

// Rollouts returns the view of Synthesizers and of the Compositions that use them.
func (d *Objects) Rollouts(all []*enov1.Synthesizer) RolloutsView {
	v := RolloutsView{Rollouts: []RolloutView{}}
	users := map[string][]*enov1.Composition{}

	for _, c := range d.Sorted() {
		users[c.Spec.Synthesizer.Name] = append(users[c.Spec.Synthesizer.Name], c)
	}

	for _, s := range all {
		r := RolloutView{Synthesizer: s.Name, Generation: s.Generation, Failed: []FailedComposition{}, Resumed: synthesisrules.IsResumed(s)}

		var messages []string
		for _, c := range synthesisrules.AllHalts(s) {
			messages = append(messages, c.Message)
		}

		r.Halted, r.Message = len(messages) > 0, strings.Join(messages, " ")

		for _, c := range users[s.Name] {
			r.add(c, synthesisrules.StageOf(c, s))
		}

		v.Rollouts = append(v.Rollouts, r)
	}

	return v
}

func (r *RolloutView) add(c *enov1.Composition, stage synthesisrules.Stage) {
	switch stage {
	case synthesisrules.StageUpdated:
		r.Updated++
	case synthesisrules.StageRunning:
		r.Running++
	case synthesisrules.StageWaiting:
		r.Waiting++
	case synthesisrules.StageFailed:
		r.Failed = append(r.Failed, FailedComposition{Namespace: c.Namespace, Name: c.Name, Error: rolloutError(c)})
	case synthesisrules.StageOther:
		r.Other++
	}
}

// rolloutError is why a composition counts as failed.
func rolloutError(c *enov1.Composition) string {
	in := c.Status.InFlightSynthesis

	switch {
	case c.Annotations[enov1.AnnotationRollback] != "":
		return "a user has rolled it back"
	case in != nil && in.Canceled == nil:
		return fmt.Sprintf("attempt %d runs", in.Attempts)
	case in != nil:
		return synthesisrules.Failure(in)
	case c.Status.Simplified != nil:
		return c.Status.Simplified.Error
	default:
		return ""
	}
}
