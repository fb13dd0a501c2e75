package groups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/grouptree"
)

const groupsExamples = `  # Draw the pod groups of the current namespace
  arbor groups

  # Draw one of them, or those of all namespaces
  arbor groups training-job -n research
  arbor groups -A

  # Draw what a manifest says, without a cluster
  arbor groups -f podgroup.yaml

  # The top of a very large tree
  arbor groups training-job --depth 2

  # One that is called like one of the commands below
  arbor groups podgroup/fit

  # Will a gang fit, and why does another one wait?
  arbor groups fit -f gang.yaml
  arbor groups explain training-job`

type groupsOptions struct {
	source.Scope

	format string
	depth  int
	name   string
}

// New returns the command that draws the trees of PodGroups, and those
// that ask a scheduler about them.
func New(streams genericiooptions.IOStreams, connect source.Connector, s Scheduling) *cobra.Command {
	cmd := newGroups(streams, connect)
	cmd.AddCommand(command.AsShow(newGroups(streams, connect), "NAME"), newGroupsFit(streams, s), newGroupsExplain(streams, s), newGroupsDump(streams, connect, s))

	return cmd
}

// groupName is what people call a group: its name, or its type and name, which
// is the way out for one that is called like a command.
func groupName(arg string) string {
	kind, name, both := strings.Cut(arg, "/")
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	if both && (kind == "podgroup" || kind == "podgroups") {
		return name
	}

	return arg
}

func newGroups(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &groupsOptions{Scope: source.NewScope(streams, connect)}
	cmd := &cobra.Command{
		Use:     "groups [NAME]",
		Aliases: []string{"group", "podgroups", "podgroup", "pg"},
		Short:   "Draw the trees of pod groups",
		Long: `Draw each pod group as the tree that its subgroups form, with the minimums that
must be placed, and mark what is wrong. A group whose subgroups form no tree is
drawn as far as it goes; subgroups that hang in the air stand below it with the
reason and the way to mend it.`,
		Example: groupsExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.name = groupName(args[0])
			}

			return o.run(cmd.Context())
		},
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", render.FormatTable, "output format: table (the drawing), json or yaml")
	cmd.Flags().IntVar(&o.depth, "depth", render.DefaultDepth, "levels of subgroups to draw, 0 for all")
	o.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.MaximumNArgs(1))

	return cmd
}

func (o *groupsOptions) run(ctx context.Context) error {
	if err := render.CheckFormat(o.format, render.FormatTable, render.FormatText, render.FormatJSON, render.FormatYAML); err != nil {
		return err
	}

	namespace, err := o.Namespace()
	if err != nil {
		return command.Blind("%w", err)
	}

	gather := o.fromCluster
	if o.Offline() {
		gather = o.fromFiles
	}

	groups, bad, err := gather(ctx, namespace)
	if err != nil {
		return command.Blind("%w", err)
	}

	if err := o.print(groups, o.Place(namespace)); err != nil || !bad {
		return err
	}

	return &command.ExitError{Code: command.ExitBlind}
}

func (o *groupsOptions) fromCluster(ctx context.Context, namespace string) (groups []*v2alpha2.PodGroup, bad bool, err error) {
	list, err := o.Connect(o.Flags, o.ErrOut)
	if err != nil {
		return nil, false, err
	}

	objects, err := list(ctx, source.Query{Resource: source.PodGroupResource, Namespace: namespace, Name: o.name})
	if errors.Is(err, source.ErrNotInstalled) {
		return nil, false, fmt.Errorf("the PodGroup API (%s) is %w", v2alpha2.GroupVersion, err)
	}

	if err != nil {
		return nil, false, err
	}

	groups = make([]*v2alpha2.PodGroup, len(objects))
	for i, obj := range objects {
		groups[i], _ = podgroup.Decode(obj)
	}

	return groups, false, nil
}

// fromFiles returns the groups in the given files that the arguments ask for.
func (o *groupsOptions) fromFiles(ctx context.Context, namespace string) (groups []*v2alpha2.PodGroup, bad bool, err error) {
	files, bad, err := o.Files(ctx)

	for _, f := range files {
		for _, d := range f.Documents {
			if pg := o.wanted(d.Object, namespace); pg != nil {
				groups = append(groups, pg)
			}
		}
	}

	return groups, bad, err
}

// wanted returns the PodGroup that an object is, if it is asked for. An
// object without a namespace may be meant for any.
func (o *groupsOptions) wanted(obj map[string]any, namespace string) *v2alpha2.PodGroup {
	if !podgroup.IsPodGroup(identity.RefOf(obj)) {
		return nil
	}

	pg, _ := podgroup.Decode(obj)
	if o.name != "" && pg.Name != o.name {
		return nil
	}

	if namespace != "" && pg.Namespace != "" && pg.Namespace != namespace {
		return nil
	}

	return pg
}

func (o *groupsOptions) print(groups []*v2alpha2.PodGroup, place string) error {
	if o.name != "" && len(groups) == 0 {
		return &command.ExitError{Code: command.ExitFound, Err: fmt.Errorf("pod group %q was not found in %s: %s", o.name, place, o.Advice())}
	}

	if o.format == render.FormatJSON || o.format == render.FormatYAML {
		_, err := render.PrintMachine(o.Out, o.format, grouptree.ViewOf(groups))

		return err
	}

	if len(groups) == 0 {
		_, err := fmt.Fprintf(o.ErrOut, "No pod groups found in %s.\n", place)

		return err
	}

	return o.drawAll(groups)
}

// drawAll keeps groups with a tree apart by an empty line.
func (o *groupsOptions) drawAll(groups []*v2alpha2.PodGroup) error {
	s := render.StyleOf(o.Out, os.Getenv)

	for i, pg := range groups {
		if i > 0 && (len(pg.Spec.SubGroups) > 0 || len(groups[i-1].Spec.SubGroups) > 0) {
			if _, err := fmt.Fprintln(o.Out); err != nil {
				return err
			}
		}

		if err := draw(o.Out, pg, grouptree.New(pg, podgroup.Check(pg)), o.depth, s); err != nil {
			return err
		}
	}

	return nil
}
