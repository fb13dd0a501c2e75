package findings

import (
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// PodGroup checks a PodGroup of a cluster.
func PodGroup(obj map[string]any) []show.Finding {
	return judgePodGroup(obj, podgroup.Check)
}

// LintPodGroup checks a PodGroup of a manifest.
func LintPodGroup(obj map[string]any) []show.Finding {
	return judgePodGroup(obj, podgroup.Lint)
}

func judgePodGroup(obj map[string]any, judge func(*v2alpha2.PodGroup) verdict.Verdict) []show.Finding {
	pg, undecodable := podgroup.Decode(obj)
	v := judge(pg)
	v.Problems = append(undecodable, v.Problems...)

	return fromVerdict(identity.RefOf(obj), v)
}

func fromVerdict(ref identity.Ref, v verdict.Verdict) []show.Finding {
	var out []show.Finding

	for _, p := range v.Problems {
		out = append(out, show.Finding{
			Severity: show.SeverityError, Object: ref, Reason: p.Reason,
			Field: p.Field, Value: p.Value, Message: p.Message, Fix: p.Fix,
		})
	}

	for _, w := range v.Warnings {
		out = append(out, show.Finding{
			Severity: show.SeverityWarning, Object: ref, Reason: show.ReasonWarning, Field: w.Field, Message: w.Message,
		})
	}

	return out
}
