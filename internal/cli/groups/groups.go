package groups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
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
  arbor groups --from podgroup.yaml

  # The top of a very large tree
  arbor groups training-job --depth 2

  # One line for each group, as kubectl prints lists, and those with a label
  arbor groups -A -o table
  arbor groups -l team=research -o name

  # Draw it again whenever it changes
  arbor groups training-job -w

  # One that is called like one of the commands below
  arbor groups podgroup/fit

  # Will a gang fit, and why does another one wait?
  arbor groups fit -f gang.yaml
  arbor groups explain training-job`

type groupsOptions struct {
	source.Scope

	output output.Flags
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
drawn as far as it goes; subgroups that are not part of the tree are drawn below
it, with the reason and how to fix it.

-o table lists one group in each line, and -o wide adds what is wrong with it.

Exit codes: 0 they are drawn, 1 with --exit-code if one has a problem, 2 no such group,
or the cluster or a file could not be read.`,
		Example: groupsExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.name = groupName(args[0])
			}

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Tree, output.Table, output.Wide, output.Name)
	o.output.AddDepth(cmd, "levels of subgroups")
	o.output.AddSelector(cmd, "pod groups")
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, false, "a pod group has a problem")
	o.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.MaximumNArgs(1))

	return cmd
}

func (o *groupsOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	if err := o.CheckWatch(o.output.Watch); err != nil {
		return err
	}

	return o.output.Run(ctx, &o.IOStreams, o.once)
}

func (o *groupsOptions) once(ctx context.Context) error {
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

	groups = slices.DeleteFunc(groups, func(pg *v2alpha2.PodGroup) bool { return !o.output.Matches(pg.Labels) })
	view := grouptree.ViewOf(groups)
	if err := o.print(groups, view, namespace); err != nil {
		return err
	}
	if bad {
		return &command.ExitError{Code: command.ExitBlind}
	}

	return o.output.Found(view.Problems() > 0)
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

func (o *groupsOptions) print(groups []*v2alpha2.PodGroup, view grouptree.GroupsView, namespace string) error {
	if o.name != "" && len(groups) == 0 {
		return command.NotFound("pod group %q was not found in %s: %s", o.name, o.Place(namespace), o.Advice())
	}

	if done, err := o.output.Print(o.Out, grouptree.Kind, view); done {
		return err
	}

	if len(groups) == 0 {
		_, err := fmt.Fprintf(o.ErrOut, "No pod groups found in %s.\n", o.Place(namespace))

		return err
	}

	if o.output.Is(output.Tree) {
		return o.drawAll(groups)
	}
	o.output.Table(o.Out, view.Rows(namespace == "", o.output.Is(output.Wide)))

	return nil
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

		if err := draw(o.Out, pg, grouptree.New(pg, podgroup.Check(pg)), o.output.Depth, s); err != nil {
			return err
		}
	}

	return nil
}
