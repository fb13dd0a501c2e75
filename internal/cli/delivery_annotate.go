package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// An annotator is a command that writes annotations of a composition.
type annotator struct {
	scope

	servers serverConnector
	dryRun  bool
}

// annotate sets annotations on the composition as it was read, and removes those that
// are nil.
func (o *annotator) annotate(ctx context.Context, c *enov1.Composition, annotations map[string]*string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": c.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return blind("%w", err)
	}

	s, err := o.servers(o.flags)
	if err != nil {
		return blind("%w", err)
	}

	ref := ObjectRef{APIVersion: enov1.GroupVersion.String(), Kind: enov1.CompositionKind, Namespace: c.Namespace, Name: c.Name}

	err = s.Annotate(ctx, ref, patch, o.dryRun)
	if apierrors.IsConflict(err) {
		return cannotDo("%s was changed by another client at the same time, and nothing was written: try again", ref)
	}

	if err != nil {
		return &ExitError{Code: ExitFound, Err: fmt.Errorf("cannot change %s: %w", ref, err)}
	}

	return nil
}

// say prints what was done to a composition.
func (o *annotator) say(c *enov1.Composition, text string) error {
	lines := strings.Split("composition "+c.Namespace+"/"+c.Name+" "+text, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}

	_, err := fmt.Fprintln(o.Out, strings.Join(lines, "\n"))

	return err
}
