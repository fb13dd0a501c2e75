package node_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Containers become ready without a failed readiness probe on the way. This test is the first
// one: the kubelet probes managers that have ended, too, until it notices.
func TestNoProbeWarnings(t *testing.T) {
	c := server.Client(t, nil)
	events := &corev1.EventList{}
	must(t, c.List(t.Context(), events, client.InNamespace(namespace)))
	if len(events.Items) == 0 {
		t.Fatal("there are no events at all")
	}
	for _, e := range events.Items {
		if e.Reason == "Unhealthy" && strings.Contains(e.Message, "Readiness probe failed") {
			t.Errorf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
}
