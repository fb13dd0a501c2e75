package groups

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/gangdraft"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/placement"
)

const groupsFitExamples = `  # Will this gang fit, and where would its pods be?
  arbor groups fit -f gang.yaml

  # Which node has each pod, and what does every node lack?
  arbor groups fit -f gang.yaml -o wide

  # In a cluster that was written to a file, as on the day of the question
  arbor groups dump > cluster.yaml
  arbor groups fit -f gang.yaml --from cluster.yaml

  # In a script
  arbor groups fit -f gang.yaml -o json | jq -r '.groups[].pods[] | [.name, .node] | @tsv'`

type groupsFitOptions struct {
	askOptions

	now func() time.Time
}

func newGroupsFit(streams genericiooptions.IOStreams, s Scheduling) *cobra.Command {
	o := &groupsFitOptions{askOptions: newAskOptions(streams, s), now: time.Now}
	cmd := &cobra.Command{
		Use:   "fit -f FILE...",
		Short: "Say whether a pod group would fit now, and where",
		Long: `Say whether the pod groups of a file would get their minimums now, and which node
each pod would have. It is decided with the scheduler's own code on a copy of the
cluster; nothing is written.

The files hold PodGroups and their pods: Pods, or anything with a template of pods
that carries the annotation ` + scheduling.GroupAnnotation + ` (Job, Deployment, StatefulSet and the
like; spec.replicas or spec.parallelism is how many). Pods of the group that the
cluster has already count too, each once. A PodGroup without pods in the files is
asked about with those of the cluster. Several groups are answered one by one, each
on the cluster as it is now.

A StatefulSet with podManagementPolicy OrderedReady, the default, creates a pod only
when the one before is ready. If the group needs more pods than that at once, it
does not fit, however much room there is.

Pods are given what the API server would give them: requests from limits, the
priority of their class, tolerations. LimitRanges, RuntimeClasses and other
admission of the cluster are not asked, volumeClaimTemplates are not looked at, and
nobody is preempted. Whichever scheduler the pods ask for, the answer is Arbor's.

Exit codes: 0 all fit, 1 one does not, 2 the cluster or a file could not be read.
--exit-code=false turns 1 into 0.`,
		Example: groupsFitExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	cmd.Flags().StringArrayVarP(&o.Paths, "filename", "f", nil, "file or folder with pod groups and their pods, - for standard input; may be repeated")
	o.addAskFlags(cmd)
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, true, "a pod group does not fit")
	o.Flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *groupsFitOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if len(o.Paths) == 0 {
		return command.Blind("no file to ask about: name one with -f; 'arbor groups explain' asks about groups of the cluster")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// Files first: what is wrong with them is told without a cluster.
	namespace, err := o.namespace()
	if err != nil {
		return command.Blind("%w", err)
	}
	objects, err := o.objects(ctx)
	if err != nil {
		return err
	}
	oracle, err := o.open(ctx)
	if err != nil {
		return command.Blind("%w", err)
	}
	d := &gangdraft.Drafter{Namespace: namespace, Now: metav1.NewTime(o.now().Truncate(time.Second)), Priority: oracle.Priority, Notef: o.notef}
	if err := d.AddAll(objects); err != nil {
		return command.Blind("%w", err)
	}
	d.LeftOut()
	report, err := o.ask(ctx, oracle, d.Drafts)
	if err != nil {
		return command.Blind("%w", err)
	}

	return o.print(report)
}

// objects are those of the files, all of which must be readable: the answer
// would be about something else.
func (o *groupsFitOptions) objects(ctx context.Context) ([]map[string]any, error) {
	files, bad, err := o.Files(ctx)
	if err != nil {
		return nil, command.Blind("%w", err)
	}
	if bad {
		return nil, &command.ExitError{Code: command.ExitBlind}
	}
	var all []map[string]any
	for _, f := range files {
		for _, d := range f.Documents {
			all = append(all, d.Object)
		}
	}

	return all, nil
}

func (o *groupsFitOptions) ask(ctx context.Context, oracle Oracle, drafts []*gangdraft.Draft) (placement.PlacesReport, error) {
	report := placement.PlacesReport{Groups: []placement.PlacesView{}}
	if len(drafts) == 0 {
		return report, fmt.Errorf("the files hold no PodGroup, and no pods that name one with the annotation %s", scheduling.GroupAnnotation)
	}
	stop := render.Progress(o.ErrOut, func() string { return "asking about " + show.Count(len(drafts), "pod group") })
	defer stop()
	for _, one := range drafts {
		pg, pods, err := subject(oracle, one)
		if err != nil {
			return report, err
		}
		answer, err := oracle.Fit(ctx, pg, pods)
		if err != nil {
			return report, fmt.Errorf("PodGroup %s: %w", one.Key, err)
		}
		view := placement.New(pg, answer)
		if answer.Gang != nil {
			if d := one.Deadlocked(answer.Gang); d != nil {
				view = view.WaitingFor(d)
			}
		}
		report.Groups = append(report.Groups, view)
	}

	return report, nil
}

// subject is the group of a draft with all its pods.
func subject(oracle Oracle, one *gangdraft.Draft) (*v2alpha2.PodGroup, []*corev1.Pod, error) {
	existing, pods := oracle.Group(one.Key)
	pg := one.Group
	if pg == nil {
		pg = existing
	}
	if pg == nil {
		return nil, nil, fmt.Errorf("%s names PodGroup %s, which is neither in the files nor in the cluster: add it, or correct the annotation %s",
			one.Crews[0].Owner, one.Key, scheduling.GroupAnnotation)
	}
	pods = one.Members(pods)
	if len(pods) == 0 {
		return nil, nil, fmt.Errorf("PodGroup %s has no pods, neither in the files nor in the cluster: add them to the file, as Pods, or as a Job or another workload whose template has the annotation %s: %s",
			one.Key, scheduling.GroupAnnotation, one.Key.Name)
	}

	return pg, pods, nil
}

func (o *groupsFitOptions) print(report placement.PlacesReport) error {
	fits := 0
	for _, v := range report.Groups {
		if v.Fits {
			fits++
		}
	}
	end := o.output.Found(fits < len(report.Groups))
	if done, err := o.output.Print(o.Out, placement.Kind, report); done {
		if err != nil {
			return err
		}

		return end
	}
	p := placesDrawer{w: o.Out, s: render.StyleOf(o.Out, os.Getenv), output: &o.output}
	for i, v := range report.Groups {
		if i > 0 {
			_, _ = fmt.Fprintln(o.Out)
		}
		p.fit(v)
	}
	if n := len(report.Groups); n > 1 {
		_, _ = fmt.Fprintf(o.ErrOut, "%d of %d pod groups fit, each alone on the cluster as it is now\n", fits, n)
	}

	return end
}
