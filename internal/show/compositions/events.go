package compositions

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/internal/identity"
)

// An EventView is an event of a composition or of one of its objects.
type EventView struct {
	Object identity.Ref `json:"object"`
	Type   string       `json:"type"`
	Reason string       `json:"reason"`
	// Time is when it was seen last.
	Time    metav1.Time `json:"time"`
	Message string      `json:"message"`
}

// Objects are the compositions of the view, and the objects of their syntheses.
func (v DeliveryView) Objects() []identity.Ref {
	all := v.Refs()

	for _, c := range v.Compositions {
		for _, s := range []*SynthesisView{c.InFlight, c.Current} {
			if s == nil {
				continue
			}

			for _, r := range s.Resources {
				all = append(all, r.Object)
			}
		}
	}

	return all
}

// EventsOf returns the events that are about some objects, oldest first.
func EventsOf(objects []identity.Ref, events []*corev1.Event) []EventView {
	wanted := map[identity.Ref]bool{}
	for _, ref := range objects {
		wanted[identity.Ref{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}] = true
	}

	all := []EventView{}

	for _, e := range events {
		about := e.InvolvedObject
		if !wanted[identity.Ref{Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}] {
			continue
		}

		ref := identity.Ref{APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}
		all = append(all, EventView{Object: ref, Type: e.Type, Reason: e.Reason, Time: lastSeen(e), Message: e.Message})
	}

	slices.SortStableFunc(all, func(a, b EventView) int { return a.Time.Compare(b.Time.Time) })

	return all
}

// lastSeen is the last time of an event, whichever API has written it.
func lastSeen(e *corev1.Event) metav1.Time {
	last := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time} {
		if t.After(last) {
			last = t
		}
	}

	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}

	return metav1.NewTime(last)
}

// EventNamespaces are the namespaces with events of the objects of a view. Those of cluster-scoped objects
// are in the default one.
func (v DeliveryView) EventNamespaces() []string {
	var all []string

	for _, ref := range v.Objects() {
		namespace := ref.Namespace
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}

		all = append(all, namespace)
	}

	slices.Sort(all)

	return slices.Compact(all)
}
