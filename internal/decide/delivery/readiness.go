package delivery

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/decide/delivery/expression"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

const conditionTrue = "True"

// A check is one readiness expression.
type check struct {
	name  string
	ready *expression.Program
}

// Watched reports whether the object must do more than exist to be ready.
func (r *Resource) Watched() bool {
	return len(r.checks) > 0 || r.Defines.Kind != "" || r.Kstatus && objecthealth.RuleOf(r.GVK.GroupKind()) != objecthealth.Applied
}

// StatusTimeout is how long a status that is older than the object is not used for its readiness.
const StatusTimeout = 2 * time.Minute

// An Observation is which generation of an object its status is about.
type Observation struct {
	Generation, Observed int64
	// Since is when this was first seen.
	Since time.Time
}

// Observe reads which generation the status of an object is about, given what was seen before.
// outdated is set if the status is older than the object, and has not followed for less than
// StatusTimeout: then readiness does not depend on it. Objects without status.observedGeneration
// are never outdated.
func Observe(before Observation, live *unstructured.Unstructured, now time.Time) (_ Observation, outdated bool) {
	observed, found, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if err != nil || !found || observed >= live.GetGeneration() {
		return Observation{}, false
	}
	if before.Since.IsZero() || before.Generation != live.GetGeneration() || before.Observed != observed {
		return Observation{Generation: live.GetGeneration(), Observed: observed, Since: now}, true
	}

	return before, now.Sub(before.Since) < StatusTimeout
}

// Behind reports whether the status is older than the object.
func (o Observation) Behind() bool { return !o.Since.IsZero() }

// Ready returns since when an object is ready. Without a check, it is ready at once; a CRD is ready
// when its kind is served, and an object with the setting Kstatus when it is healthy. An expression
// that fails is not met: what it reads does not exist yet. The error is that it exceeds a limit,
// and cannot be met.
func (r *Resource) Ready(live *unstructured.Unstructured, composition *metav1.ObjectMeta, now time.Time) (since time.Time, ok bool, _ error) {
	since = now
	if len(r.checks) > 0 {
		since = time.Time{}
	}
	if r.Defines.Kind != "" && !established(live) || r.Kstatus && objecthealth.Of(live).State != objecthealth.Current {
		return time.Time{}, false, nil
	}
	for _, c := range r.checks {
		out, err := c.ready.Eval(map[string]any{expression.VarSelf: live.Object, expression.VarComposition: func() any { return about(composition) }})
		if limit, exceeded := errors.AsType[expression.LimitError](err); exceeded {
			return time.Time{}, false, fmt.Errorf("annotation %s: %w", c.name, limit)
		}
		if err != nil {
			return time.Time{}, false, nil //nolint:nilerr // it is not met yet
		}
		at, ok := readySince(out.Value(), now)
		if !ok {
			return time.Time{}, false, nil
		}
		if at.After(since) {
			since = at
		}
	}

	return since, true, nil
}

// readySince reads the answer of an expression: true, or conditions of which one
// is.
func readySince(answer any, now time.Time) (time.Time, bool) {
	if yes, ok := answer.(bool); ok {
		return now, yes
	}
	for _, item := range items(answer) {
		condition, ok := item.(map[string]any)
		if !ok || condition["status"] != conditionTrue {
			continue
		}
		text, _ := condition["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at, true
		}

		return now, true
	}

	return time.Time{}, false
}

// items are those of a list as CEL returns it, or the value itself if it is not a list.
func items(answer any) []any {
	if one, ok := answer.(map[string]any); ok {
		return []any{one}
	}
	v := reflect.ValueOf(answer)
	if v.Kind() != reflect.Slice {
		return nil
	}
	all := make([]any, 0, v.Len())
	for i := range v.Len() {
		item := v.Index(i).Interface()
		if wrapped, ok := item.(interface{ Value() any }); ok {
			item = wrapped.Value()
		}
		all = append(all, item)
	}

	return all
}

// established reports whether a CRD is served.
func established(live *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" {
			return condition["status"] == conditionTrue
		}
	}

	return false
}
