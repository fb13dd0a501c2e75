package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controlplane"
)

// Announced are so many Synthesizers, with so much of their commands.
const (
	maxAnnounced = 10
	maxCommand   = 100
)

// announce prints which commands of an earlier run will run again, before they do. An
// API server that does not have the kind has none of them.
func announce(ctx context.Context, out io.Writer, c controlplane.Cluster) {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return
	}
	found, err := client.Resource(enov1.GroupVersion.WithResource("synthesizers")).List(ctx, metav1.ListOptions{})
	if err != nil || len(found.Items) == 0 {
		return
	}
	fmt.Fprintf(out, "  commands of %d Synthesizers in this directory can run as you:\n", len(found.Items))
	for i := range found.Items {
		if i == maxAnnounced {
			fmt.Fprintf(out, "    and %d more\n", len(found.Items)-maxAnnounced)

			break
		}
		fmt.Fprintf(out, "    %s: %s\n", found.Items[i].GetName(), commandOf(&found.Items[i]))
	}
}

// commandOf is the command of a Synthesizer in one line, without control characters.
func commandOf(s *unstructured.Unstructured) string {
	command, _, err := unstructured.NestedStringSlice(s.Object, "spec", "command")
	if err != nil || len(command) == 0 {
		return "no command"
	}
	text := fmt.Sprintf("%q", strings.Join(command, " "))
	if len(text) > maxCommand {
		text = text[:maxCommand] + "..."
	}

	return text
}
