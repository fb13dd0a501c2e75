package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/identity"
)

// An annotator is a command that writes annotations of a composition.
type annotator struct {
	deliveryScope

	servers serverConnector
	dryRun  bool
}

// conflictTries is how often a command is tried whose object changes all the time.
const conflictTries = 5

// errChanged is about an object that was written after it was read.
var errChanged = errors.New("was changed by another client at the same time, and nothing was written: try again")

// changed is the error of a command that another client was faster than.
func changed(ref identity.Ref) error {
	return &command.ExitError{Code: command.ExitFound, Err: fmt.Errorf("%s %w", ref, errChanged)}
}

// retried repeats a command that reads an object and then writes it, while other clients
// are faster: controllers write conditions whenever something changes.
func retried(do func() error) error {
	err := do()
	for n := 1; n < conflictTries && errors.Is(err, errChanged); n++ {
		err = do()
	}

	return err
}

// annotate sets annotations on the composition as it was read, and removes those that
// are nil.
func (o *annotator) annotate(ctx context.Context, c *enov1.Composition, annotations map[string]*string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": c.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return command.Blind("%w", err)
	}

	s, err := o.servers(o.Flags)
	if err != nil {
		return command.Blind("%w", err)
	}

	ref := identity.Ref{APIVersion: enov1.GroupVersion.String(), Kind: enov1.CompositionKind, Namespace: c.Namespace, Name: c.Name}

	err = s.Annotate(ctx, ref, patch, o.dryRun)
	if apierrors.IsConflict(err) {
		return changed(ref)
	}

	if err != nil {
		return &command.ExitError{Code: command.ExitFound, Err: fmt.Errorf("cannot change %s: %w", ref, err)}
	}

	return nil
}

// say prints what was done to a composition.
func (o *annotator) say(c *enov1.Composition, text string) error {
	lines := strings.Split("composition "+c.Namespace+"/"+c.Name+" "+text, "\n")
	for i := range lines {
		lines[i] = render.Clean(command.Typed(lines[i]))
	}

	_, err := fmt.Fprintln(o.Out, strings.Join(lines, "\n"))

	return err
}
