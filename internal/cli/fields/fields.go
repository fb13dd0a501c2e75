package fields

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const fieldsExamples = `  # Who owns which field of a Deployment?
  arbor fields show deploy/web

  # Does eno own all of the init containers?
  arbor fields owned deploy/web --scope spec.template.spec.initContainers --manager eno

  # What would have to move for that, and what would a removal do then?
  arbor fields plan deploy/web --scope spec.template.spec.initContainers --to eno

  # Move it, and put it back
  arbor fields migrate deploy/web --scope spec.template.spec.initContainers --to eno
  arbor fields undo --last`

// New returns the commands about who owns which field of an object.
func New(streams genericiooptions.IOStreams, find finder, migrators migratorConnector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fields",
		Short: "Show and move the ownership of fields",
		Long: `Show who owns which field of an object, what that does to a removal, and move it.

The server keeps, in metadata.managedFields, which manager holds which field. What
one manager no longer applies is removed only if nobody else holds it. These
commands show who does, for objects of any kind, and move it to the manager that
needs it.`,
		Example: fieldsExamples,
	}
	cmd.AddCommand(
		newFieldsShow(streams, find), newFieldsCheck(streams, find), newFieldsPlan(streams, find),
		newFieldsMigrate(streams, find, migrators), newFieldsUndo(streams, migrators),
	)

	return cmd
}

// ownersOptions are what the commands about fields have in common: which
// objects, which part of them, and how it is printed.
type ownersOptions struct {
	source.Scope

	find     finder
	args     []string
	selector string
	output   output.Flags
	width    int
	// within is the text of --scope.
	within string
}

func newOwnersOptions(streams genericiooptions.IOStreams, find finder) ownersOptions {
	return ownersOptions{Scope: source.NewScope(streams, nil), find: find}
}

// addOwnersFlags adds the flags of commands that only look.
func (o *ownersOptions) addOwnersFlags(cmd *cobra.Command) {
	o.addSelectionFlags(cmd)
	o.AddFlags(cmd.Flags())
}

// addSelectionFlags adds what all of the commands have.
func (o *ownersOptions) addSelectionFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&o.selector, "selector", "l", "", "labels of the objects, like app=web")
	fs.StringVar(&o.within, "scope", "", "part of the object, like spec.template.spec.initContainers[name=~^aks-]")
	command.CheckUsage(cmd, o.checkArgs)
}

// checkArgs wants something to look for. Files can be looked at as a whole.
func (o *ownersOptions) checkArgs(cmd *cobra.Command, args []string) error {
	const message = "no object to look at: name one, like deploy/web, or a kind and labels, like deploy -l app=web"

	switch {
	case len(args) > 0 || o.Offline():
		return nil
	case cmd.Flags().Lookup("filename") == nil:
		return errors.New(message)
	default:
		return errors.New(message + ", or a file with -f")
	}
}

// parseWithin reads --scope.
func (o *ownersOptions) parseWithin() (fields.Scope, error) {
	if o.within == "" {
		return fields.Scope{}, nil
	}

	within, err := fields.ParseScope(o.within)
	if err != nil {
		return fields.Scope{}, command.Blind("%w", err)
	}

	return within, nil
}

// gather finds the objects. end is how the command should end when everything
// is printed: a part of the input may not have been usable, which is then said.
func (o *ownersOptions) gather(ctx context.Context) (all []*owners.Object, end, err error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	if o.Offline() {
		return o.fromFiles(ctx, namespace)
	}

	objects, err := o.find(ctx, o.Flags, o.ErrOut, search{args: o.args, selector: o.selector, namespace: namespace})
	if err != nil {
		return nil, nil, err
	}

	for _, obj := range objects {
		thing, err := owners.New(obj)
		all = append(all, thing)

		if err != nil {
			end = &command.ExitError{Code: command.ExitBlind}
			o.complainOf(thing.Ref, err)
		}
	}

	if len(all) == 0 {
		return nil, nil, o.nothing(namespace)
	}

	return all, end, nil
}

// nothing says that no object is like that.
func (o *ownersOptions) nothing(namespace string) error {
	return command.NotFound("nothing was found in %s: %s", o.Place(namespace), o.elsewhere())
}

// elsewhere says where else to look.
func (o *ownersOptions) elsewhere() string {
	if o.AllNamespaces || o.Offline() {
		return "ask for another kind, name or labels"
	}

	return o.Advice()
}

// complainOf says what is wrong with the entries of an object.
func (o *ownersOptions) complainOf(ref identity.Ref, err error) {
	_, _ = fmt.Fprintf(o.ErrOut, "%s: %s\n", render.Clean(ref.String()), render.Clean(err.Error()))
}
