package clitest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/source"
)

// A Notebook is an editor that notes what it is asked for.
type Notebook struct {
	Lines    []string
	Fails    string // part of the lines that fail
	Metadata map[string][]metav1.PartialObjectMetadata
}

func (n *Notebook) note(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	n.Lines = append(n.Lines, line)

	if n.Fails != "" && strings.Contains(line, n.Fails) {
		return errors.New("the disk is full")
	}

	return nil
}

// Create implements [source.Editor].
func (n *Notebook) Create(_ context.Context, o client.Object) error {
	o.SetUID("uid-" + types.UID(o.GetName()))

	return n.note("create %s/%s %v", o.GetNamespace(), o.GetName(), o.GetFinalizers())
}

// UpdateStatus implements [source.Editor].
func (n *Notebook) UpdateStatus(_ context.Context, o client.Object) error {
	s, ok := o.(*v1alpha1.Subnet)
	if !ok {
		return n.note("status of a %T", o)
	}

	return n.note("status %s %s uid=%s pool=%s", s.Name, s.Status.Phase, s.Status.UID, s.Status.PoolUID)
}

// Patch implements [source.Editor].
func (n *Notebook) Patch(_ context.Context, o client.Object, p client.Patch) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}

	return n.note("patch %s/%s %s", o.GetNamespace(), o.GetName(), data)
}

// Pages implements [source.Editor].
func (n *Notebook) Pages(_ context.Context, kind string, visit func([]metav1.PartialObjectMetadata) error) error {
	for i := range n.Metadata[kind] {
		if err := visit(n.Metadata[kind][i : i+1]); err != nil {
			return err
		}
	}

	return nil
}

// Connect returns the notebook as the editor of a cluster.
func (n *Notebook) Connect(*genericclioptions.ConfigFlags) (source.Editor, error) { return n, nil }

// LeaseOf is the lease of a manager that was renewed some time ago.
func LeaseOf(holder string, ago time.Duration) map[string]any {
	return map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"namespace": "arbor-system", "name": "arbor-manager"},
		"spec": map[string]any{
			"holderIdentity": holder, "leaseDurationSeconds": int64(15),
			"renewTime": time.Now().Add(-ago).UTC().Format(metav1.RFC3339Micro),
		},
	}
}
