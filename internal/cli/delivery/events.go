package delivery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

// events reads the events of compositions and of their objects.
func (d *deliveries) events(ctx context.Context, v compositions.DeliveryView) ([]compositions.EventView, error) {
	var all []*corev1.Event

	for _, namespace := range v.EventNamespaces() {
		found, err := d.list(ctx, source.Query{Resource: corev1.SchemeGroupVersion.WithResource("events"), Namespace: namespace})
		if err != nil {
			return nil, err
		}

		for _, obj := range found {
			e := &corev1.Event{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, e); err != nil {
				return nil, fmt.Errorf("cannot use %s: %w", identity.RefOf(obj), err)
			}

			all = append(all, e)
		}
	}

	return compositions.EventsOf(v.Objects(), all), nil
}

// printEvents prints the events below everything else, if they are asked for.
func (o *deliveryOptions) printEvents(v compositions.DeliveryView) {
	if !o.events {
		return
	}

	_, _ = fmt.Fprintln(o.Out)
	if len(v.Events) == 0 {
		_, _ = fmt.Fprintln(o.Out, "No events.")

		return
	}

	rows := [][]string{{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
	for _, e := range v.Events {
		rows = append(rows, []string{render.Age(&e.Time, o.now()), e.Type, e.Reason, e.Object.String(), e.Message})
	}

	o.Table(o.Out, rows)
}
