package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
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

// defaultDepth keeps a chain of thousands of subgroups from drawing a
// triangle of megabytes. Trees that people write are a few levels deep.
const defaultDepth = 50

type groupsOptions struct {
	scope

	format string
	depth  int
	name   string
}

// NewGroups returns the command that draws the trees of PodGroups, and those
// that ask a scheduler about them.
func NewGroups(streams genericiooptions.IOStreams, s Scheduling) *cobra.Command {
	cmd := newGroups(streams, connect)
	cmd.AddCommand(asShow(newGroups(streams, connect), "NAME"), newGroupsFit(streams, s), newGroupsExplain(streams, s), newGroupsDump(streams, connect, s))

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

func newGroups(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	o := &groupsOptions{scope: newScope(streams, connect)}
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

	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: table (the drawing), json or yaml")
	cmd.Flags().IntVar(&o.depth, "depth", defaultDepth, "levels of subgroups to draw, 0 for all")
	o.addFlags(cmd.Flags())
	checkUsage(cmd, cobra.MaximumNArgs(1))

	return cmd
}

func (o *groupsOptions) run(ctx context.Context) error {
	if err := checkFormat(o.format, formatTable, formatText, formatJSON, formatYAML); err != nil {
		return err
	}

	namespace, err := o.namespace()
	if err != nil {
		return blind("%w", err)
	}

	gather := o.fromCluster
	if o.offline() {
		gather = o.fromFiles
	}

	groups, bad, err := gather(ctx, namespace)
	if err != nil {
		return blind("%w", err)
	}

	if err := o.print(groups, o.place(namespace)); err != nil || !bad {
		return err
	}

	return &ExitError{Code: ExitBlind}
}

func (o *groupsOptions) fromCluster(ctx context.Context, namespace string) (groups []*v2alpha2.PodGroup, bad bool, err error) {
	list, err := o.connect(o.flags, o.ErrOut)
	if err != nil {
		return nil, false, err
	}

	objects, err := list(ctx, query{resource: podGroupResource, namespace: namespace, name: o.name})
	if errors.Is(err, errNotInstalled) {
		return nil, false, fmt.Errorf("the PodGroup API (%s) is %w", v2alpha2.GroupVersion, err)
	}

	if err != nil {
		return nil, false, err
	}

	groups = make([]*v2alpha2.PodGroup, len(objects))
	for i, obj := range objects {
		groups[i], _ = decodePodGroup(obj)
	}

	return groups, false, nil
}

// fromFiles returns the groups in the given files that the arguments ask for.
func (o *groupsOptions) fromFiles(ctx context.Context, namespace string) (groups []*v2alpha2.PodGroup, bad bool, err error) {
	files, bad, err := o.files(ctx)

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
	if !isPodGroup(refOf(obj)) {
		return nil
	}

	pg, _ := decodePodGroup(obj)
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
		return &ExitError{Code: ExitFound, Err: fmt.Errorf("pod group %q was not found in %s: %s", o.name, place, o.advice())}
	}

	if o.format == formatJSON || o.format == formatYAML {
		_, err := printMachine(o.Out, o.format, viewOf(groups))

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
	s := styleOf(o.Out, os.Getenv)

	for i, pg := range groups {
		if i > 0 && (len(pg.Spec.SubGroups) > 0 || len(groups[i-1].Spec.SubGroups) > 0) {
			if _, err := fmt.Fprintln(o.Out); err != nil {
				return err
			}
		}

		if err := draw(o.Out, pg, newForest(pg, podgroup.Check(pg)), o.depth, s); err != nil {
			return err
		}
	}

	return nil
}
