package groups

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/placement"
)

const groupsExplainExamples = `  # Why does this gang wait, and which nodes come closest?
  arbor groups explain training

  # All groups of all namespaces, and where their pods are
  arbor groups explain -A

  # As it was when somebody wrote it down
  arbor groups explain training -n research --from cluster.yaml

  # Which groups wait for room, for a script
  arbor groups explain -A -o json | jq -r '.groups[] | select(.reason == "Unschedulable") | .namespace + "/" + .name'`

type groupsExplainOptions struct {
	askOptions

	names []string
	now   func() time.Time
}

func newGroupsExplain(streams genericiooptions.IOStreams, s Scheduling) *cobra.Command {
	o := &groupsExplainOptions{askOptions: newAskOptions(streams, s), now: time.Now}
	cmd := &cobra.Command{
		Use:   "explain [NAME...]",
		Short: "Say why a pod group waits, or where its pods are",
		Long: `Say of a pod group which subgroup stands in its way and how many pods it lacks,
which nodes come closest to taking one more, and what each of them is short of; or,
if it has its minimum, where its pods are. It shows what the scheduler has written on
the object, and what it would decide now. Nothing is written.

FITS is how many such pods a node has room for now, before others of the group take
some of it.

-o wide shows every pod and every node. Which groups -o name, json and yaml contain does
not depend on whether they wait.

Exit codes: 0 all have their minimum, 1 one has not, or pods wait for a group that does
not exist, 2 there is no group of that name, or the cluster could not be read.
--exit-code=false turns 1 into 0.`,
		Example: groupsExplainExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				o.names = append(o.names, groupName(arg))
			}

			return o.run(cmd.Context())
		},
	}

	o.addAskFlags(cmd)
	o.output.AddSelector(cmd, "pod groups")
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, true, "a pod group does not have its minimum")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ArbitraryArgs)

	return cmd
}

func (o *groupsExplainOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}

	return o.output.Run(ctx, &o.IOStreams, o.once)
}

func (o *groupsExplainOptions) once(ctx context.Context) error {
	namespace, err := o.namespace()
	if err != nil {
		return command.Blind("%w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	oracle, err := o.open(ctx)
	if err != nil {
		return command.Blind("%w", err)
	}
	keys, err := o.wanted(oracle, namespace)
	if err != nil {
		return err
	}
	report, err := o.ask(ctx, oracle, keys)
	if err != nil {
		return command.Blind("%w", err)
	}

	return o.print(report, namespace)
}

func (o *groupsExplainOptions) ask(ctx context.Context, oracle Oracle, keys []types.NamespacedName) (placement.PlacesReport, error) {
	stop := render.Progress(o.ErrOut, func() string { return "asking about " + show.Count(len(keys), "pod group") })
	defer stop()
	report := placement.PlacesReport{Groups: []placement.PlacesView{}}
	for _, key := range keys {
		pg, pods := oracle.Group(key)
		if !o.output.Matches(pg.Labels) {
			continue
		}
		answer, err := oracle.Fit(ctx, pg, pods)
		if err != nil {
			return report, fmt.Errorf("PodGroup %s: %w", key, err)
		}
		report.Groups = append(report.Groups, placement.New(pg, answer).WithStatus(pg))
	}

	return report, nil
}

// wanted are the groups that the arguments ask for.
func (o *groupsExplainOptions) wanted(oracle Oracle, namespace string) ([]types.NamespacedName, error) {
	keys := slices.DeleteFunc(oracle.Groups(), func(k types.NamespacedName) bool {
		return namespace != "" && k.Namespace != namespace || len(o.names) > 0 && !slices.Contains(o.names, k.Name)
	})
	for _, name := range o.names {
		if slices.ContainsFunc(keys, func(k types.NamespacedName) bool { return k.Name == name }) {
			continue
		}
		if _, pods := oracle.Group(types.NamespacedName{Namespace: namespace, Name: name}); len(pods) > 0 {
			return nil, &command.ExitError{Code: command.ExitFound, Err: fmt.Errorf("PodGroup %s/%s does not exist, and %s for it: create it, or remove their annotation %s",
				namespace, name, podsWait(len(pods)), scheduling.GroupAnnotation)}
		}

		return nil, command.NotFound("pod group %q was not found in %s: %s", name, o.Place(namespace), o.Advice())
	}

	return keys, nil
}

func podsWait(pods int) string {
	if pods == 1 {
		return "1 pod waits"
	}

	return fmt.Sprintf("%d pods wait", pods)
}

func (o *groupsExplainOptions) print(report placement.PlacesReport, namespace string) error {
	end := o.output.Found(slices.ContainsFunc(report.Groups, func(v placement.PlacesView) bool { return !v.Scheduled }))
	if done, err := o.output.Print(o.Out, placement.Kind, report); done {
		if err != nil {
			return err
		}

		return end
	}
	if len(report.Groups) == 0 {
		_, _ = fmt.Fprintf(o.ErrOut, "No pod groups found in %s.\n", o.Place(namespace))
	}
	p := placesDrawer{w: o.Out, s: render.StyleOf(o.Out, os.Getenv), output: &o.output, now: metav1.NewTime(o.now())}
	for i, v := range report.Groups {
		if i > 0 {
			_, _ = fmt.Fprintln(o.Out)
		}
		p.explain(v)
	}

	return end
}
