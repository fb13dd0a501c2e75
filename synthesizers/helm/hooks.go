package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/internal/stock"
)

// Annotations of Helm, and those of Arbor that take their place.
const (
	hookAnnotation   = "helm.sh/hook"
	weightAnnotation = "helm.sh/hook-weight"
	deleteAnnotation = "helm.sh/hook-delete-policy"
	logAnnotation    = "helm.sh/hook-output-log-policy"
	policyAnnotation = "helm.sh/resource-policy"

	readiness        = "eno.azure.io/readiness"
	readinessGroup   = "eno.azure.io/readiness-group"
	deletionStrategy = "eno.azure.io/deletion-strategy"
	prune            = "arbor-control.dev/prune"
)

// Groups of objects that do not name one. Kinds that others need are in the first.
const (
	firstGroup = -100
	lastGroup  = 0
)

// A moment is when an object is delivered.
type moment int

const (
	never moment = iota
	before
	along
	after
)

// A hook is an object that Helm would deliver before or after the others.
type hook struct {
	stock.Object

	when   moment
	weight int
}

// arrange makes hooks ordinary objects in groups before or after all others, one
// group for each weight, and leaves out those that Helm would not run at an
// installation or an upgrade.
func arrange(in stock.Rendering) (stock.Rendering, error) {
	if err := check(in.Objects); err != nil {
		return stock.Rendering{}, err
	}
	out := stock.Rendering{Warnings: in.Warnings}
	low, high := firstGroup, lastGroup
	var hooks []hook
	for _, o := range in.Objects {
		h, err := newHook(o)
		if err != nil {
			return stock.Rendering{}, err
		}
		switch h.when {
		case never:
			name, _ := o.Annotation(hookAnnotation)
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s: %s is left out: it is a hook for %q, which has no meaning here", o.Source, o, name))

			continue
		case along:
			group, ok, err := groupOf(o)
			if err != nil {
				return stock.Rendering{}, err
			}
			if ok {
				low, high = min(low, group), max(high, group)
			}
			if policy, _ := o.Annotation(policyAnnotation); strings.EqualFold(strings.TrimSpace(policy), "keep") {
				keep(o)
			}
		default:
			hooks = append(hooks, h)
		}
		out.Objects = append(out.Objects, o)
	}
	if err := group(hooks, low, high); err != nil {
		return stock.Rendering{}, err
	}

	return out, nil
}

func newHook(o stock.Object) (hook, error) {
	events, ok := o.Annotation(hookAnnotation)
	if !ok {
		return hook{Object: o, when: along}, nil
	}
	h := hook{Object: o, when: moments(events)}
	if text, ok := o.Annotation(weightAnnotation); ok {
		weight, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return hook{}, fmt.Errorf("%s: metadata.annotations[%s] %q is not a whole number", o.Source, weightAnnotation, text)
		}
		h.weight = weight
	}

	return h, nil
}

// moments is when an object is delivered that is a hook for some events. If it is
// one before and one after, what happens at the installation counts: before an
// upgrade everything is there that it needs, before an installation it is not.
func moments(events string) moment {
	when := never
	for event := range strings.SplitSeq(events, ",") {
		switch strings.ToLower(strings.TrimSpace(event)) {
		case "pre-install":
			return before
		case "post-install":
			return after
		case "pre-upgrade":
			when = before
		case "post-upgrade":
			if when == never {
				when = after
			}
		}
	}

	return when
}

// group puts hooks into groups: before low, or after high.
func group(hooks []hook, low, high int) error {
	weights := map[moment][]int{}
	for _, h := range hooks {
		weights[h.when] = append(weights[h.when], h.weight)
	}
	for when := range weights {
		slices.Sort(weights[when])
		weights[when] = slices.Compact(weights[when])
	}
	for _, h := range hooks {
		at, _ := slices.BinarySearch(weights[h.when], h.weight)
		number := high + 1 + at
		if h.when == before {
			number = low - len(weights[before]) + at
		}
		if _, ok, err := groupOf(h.Object); err != nil {
			return err
		} else if !ok {
			h.Annotate(readinessGroup, strconv.Itoa(number))
		}
		if err := h.settle(); err != nil {
			return err
		}
	}

	return nil
}

// settle makes a hook an ordinary object. One that runs to its end is ready then,
// and has another name whenever it is another: it cannot be changed in place, and
// is to run again.
func (h hook) settle() error {
	for _, name := range []string{hookAnnotation, weightAnnotation, deleteAnnotation, logAnnotation} {
		h.RemoveAnnotation(name)
	}
	done := map[string]string{
		"Job": `self.status.conditions.filter(c, c.type == "Complete")`,
		"Pod": `self.status.phase == "Succeeded"`,
	}[h.Kind()]
	if done == "" {
		return nil
	}
	if _, ok := h.Annotation(readiness); !ok {
		h.Annotate(readiness, done)
	}
	data, err := json.Marshal(h.Content["spec"])
	if err != nil {
		return fmt.Errorf("%s: cannot encode %s: %w", h.Source, h, err)
	}
	sum := sha256.Sum256(data)
	metadata, _ := h.Content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	metadata["name"] = strings.TrimRight(name[:min(len(name), maxName-1-digits)], "-.") + "-" + hex.EncodeToString(sum[:])[:digits]

	return nil
}

const (
	// maxName is how long the names of Jobs and Pods may be, so that they fit labels.
	maxName = 63
	// digits of the hash in their names.
	digits = 8
)

// groupOf is the group that an object names.
func groupOf(o stock.Object) (number int, ok bool, err error) {
	text, ok := o.Annotation(readinessGroup)
	if !ok {
		return 0, false, nil
	}
	if number, err = strconv.Atoi(text); err != nil {
		return 0, false, fmt.Errorf("%s: metadata.annotations[%s] %q is not a whole number", o.Source, readinessGroup, text)
	}

	return number, true, nil
}

// keep has an object stay when the Composition is deleted, or when the chart does
// not have it any more, unless the author says otherwise. Helm never deletes what
// is in crds/ either.
func keep(o stock.Object) {
	for name, value := range map[string]string{deletionStrategy: "orphan", prune: "never"} {
		if _, ok := o.Annotation(name); !ok {
			o.Annotate(name, value)
		}
	}
}
