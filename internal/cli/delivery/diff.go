package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	synthesisrules "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/rehearsal"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

const deliveryDiffExamples = `  # What would the next apply change?
  arbor compositions plan web -n shop

  # What would going back change?
  arbor compositions plan web -n shop --to previous

  # What would a composition change that is not in the cluster yet, or is another there? For CI
  arbor compositions plan -f composition.yaml --synthesizer synthesizer.yaml
  arbor compositions plan -f composition.yaml --exec 'go run ./synthesizer'

  # Which removals are blocked, and by whom?
  arbor compositions plan web -n shop -o json | jq '.objects[] | select(.blocked != []) | {object, blocked}'`

type deliveryDiffOptions struct {
	deliveryScope
	renderer

	output.Flags

	servers   serverConnector
	synthesis string
	manager   string
}

func newDeliveryDiff(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector) *cobra.Command {
	o := &deliveryDiffOptions{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}
	cmd := &cobra.Command{
		Use:     "plan COMPOSITION | -f COMPOSITION.yaml (--synthesizer FILE | --exec COMMAND)",
		Aliases: []string{"diff"},
		Short:   "Show what the next apply of a composition would change",
		Long: `Have the server dry-run the apply of each manifest of a composition, as --field-manager, and
show what it would change: a unified diff for each object, new objects as additions, and
pruned objects as deletions. Settings and overrides are followed as by the delivery.
Fields that the apply cannot remove because other field managers own them are listed with
those managers, and so are applies that the server rejects.
Values of Secrets are not shown. Nothing is written.

It compares the manifests of the synthesis in flight if there are any yet, and else
of the current one. --to takes another one of the history: then it shows what
a rollback to that would change.

With -f, the program is run on this machine first, as "arbor compositions render" does, and its
manifests are compared: with what they would change, and which objects of the current
synthesis they no longer have. The composition need not be in the cluster.

It needs permission to get and to patch the objects, and to create those that are new.
Objects that cannot be read are listed.

Exit codes: 0 no difference, or --exit-code=false, 1 differences or blocked removals, 2 there
is no such composition, or the cluster or one of the objects could not be read.`,
		Example: deliveryDiffExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.rehearse(cmd.Context())
			}

			return o.run(cmd.Context(), args[0])
		},
	}

	o.Add(cmd, output.Text)
	o.AddExitCode(cmd, true, "there are differences or blocked removals")
	cmd.Flags().StringArrayVarP(&o.Paths, "filename", "f", nil, "file or folder with the Composition and inputs, - for standard input; may be repeated")
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.manager, "field-manager", decide.Manager, "the --field-manager of the manager that delivers the composition")
	cmd.Flags().StringVar(&o.synthesis, "to", "", "the synthesis to compare: its uuid or the beginning of that, or previous")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.MaximumNArgs(1))

	return command.AcceptAs(cmd, map[string]string{"synthesis": "to"})
}

// rehearse compares what a program makes of a composition in a file.
func (o *deliveryDiffOptions) rehearse(ctx context.Context) error {
	if err := o.Check(); err != nil {
		return err
	}

	if err := o.check(o.Paths); err != nil {
		return err
	}

	if o.synthesis != "" {
		return command.Blind("cannot compare both a file and --to: leave one of them out")
	}

	done, err := o.render(ctx, &o.renderer, o.servers)
	o.report(done)

	if err != nil {
		return command.Blind("%w", err)
	}

	c := done.composition

	s, err := o.servers(o.Scope.Flags)
	if err != nil {
		return command.Blind("%w", err)
	}

	all, before, err := o.replacing(ctx, done, s)
	if err != nil {
		return command.Blind("%w", err)
	}

	v := o.compareAll(ctx, rehearsal.New(s, c, before, o.manager), all)
	v.Namespace, v.Name, v.Role = c.Namespace, c.Name, roleRendered

	return o.end(v)
}

// replacing are rendered manifests and tombstones of what the current synthesis in the
// cluster has besides them, with what was applied before.
func (o *deliveryDiffOptions) replacing(ctx context.Context, done *rendering, s rehearsal.Server) (all []compositions.Manifest, before map[identity.Identity]compositions.Manifest, err error) {
	d, err := o.newDeliveries()
	if err != nil {
		return nil, nil, err
	}

	d.Scopes = s.Scope

	c := done.composition
	if err := d.read(ctx, source.Query{Resource: source.CompositionResource, Namespace: c.Namespace, Name: c.Name}); err != nil {
		return nil, nil, err
	}

	var (
		current []*enov1.ResourceSlice
		states  = map[identity.Identity]enov1.ResourceState{}
		known   = map[identity.Identity]bool{}
	)

	before = map[identity.Identity]compositions.Manifest{}

	for _, live := range d.Sorted() {
		now := live.Status.CurrentSynthesis
		if err := d.readSlices(ctx, live, now); err != nil {
			return nil, nil, err
		}

		earlier, missing := d.Manifests(live, now)
		if len(missing) > 0 {
			return nil, nil, fmt.Errorf("cannot compare with synthesis %s: its manifests are gone (%s)", compositions.ShortUUID(now.UUID), strings.Join(missing, ", "))
		}

		for _, one := range earlier {
			states[one.ID] = enov1.ResourceState{UID: one.State.UID}

			if !one.Tombstone && one.Err == nil {
				before[one.ID] = one
			}
		}

		current = d.SlicesOf(live, now)
	}

	fresh := make([]string, len(done.output.Items))
	for i, item := range done.output.Items {
		fresh[i] = item.Manifest
	}

	for _, m := range synthesisrules.Manifests(fresh, current, "", synthesisrules.Edited) {
		one := d.ReadManifest(m, known)
		one.State = states[one.ID]
		all = append(all, one)
	}

	return compositions.WithoutKept(all), before, nil
}

func (o *deliveryDiffOptions) run(ctx context.Context, name string) error {
	if len(o.Paths) > 0 || o.synthesizer != "" || o.command != "" {
		return command.Blind("cannot compare both a composition of the cluster and one of a file: leave out %q, or -f, --synthesizer and --exec", name)
	}

	if err := o.Check(); err != nil {
		return err
	}

	d, c, err := o.oneComposition(ctx, name)
	if err != nil {
		return asBlind(err)
	}

	chosen, err := o.choose(c)
	if err != nil {
		return asBlind(err)
	}

	s, err := o.servers(o.Scope.Flags)
	if err != nil {
		return command.Blind("%w", err)
	}

	d.Scopes = s.Scope

	all, before, err := d.toCompare(ctx, c, chosen)
	if err != nil {
		return command.Blind("%w", err)
	}

	v := o.compareAll(ctx, rehearsal.New(s, c, before, o.manager), all)
	v.Namespace, v.Name, v.Synthesis, v.Role = c.Namespace, c.Name, chosen.UUID, compositions.RoleOf(c, chosen)

	return o.end(v)
}

// asBlind is for a command whose code 1 means that there are differences.
func asBlind(err error) error {
	if exit, ok := errors.AsType[*command.ExitError](err); ok {
		return &command.ExitError{Code: command.ExitBlind, Err: exit.Err}
	}

	return err
}

// choose is the synthesis whose manifests are compared.
func (o *deliveryDiffOptions) choose(c *enov1.Composition) (*enov1.Synthesis, error) {
	if o.synthesis != "" {
		return pick(c, o.synthesis)
	}

	for _, s := range []*enov1.Synthesis{c.Status.InFlightSynthesis, c.Status.CurrentSynthesis} {
		if s != nil && (len(s.ResourceSlices) > 0 || s.Synthesized != nil) {
			return s, nil
		}
	}

	return nil, command.Blind("composition %s/%s has no manifests yet: it is %s", c.Namespace, c.Name, compositions.CompositionState(c))
}

// toCompare are the manifests of a synthesis, and what was applied before them.
// Of an older synthesis, what only the current one has is to go.
func (d *deliveries) toCompare(ctx context.Context, c *enov1.Composition, chosen *enov1.Synthesis) (all []compositions.Manifest, before map[identity.Identity]compositions.Manifest, err error) {
	current := c.Status.CurrentSynthesis

	last := current
	if chosen == current {
		last = c.Status.PreviousSynthesis
	}

	if err := d.readSlices(ctx, c, chosen, last); err != nil {
		return nil, nil, err
	}

	all, missing := d.Manifests(c, chosen)
	if len(missing) > 0 {
		return nil, nil, fmt.Errorf("cannot compare %s: its manifests are gone (%s)", compositions.ShortUUID(chosen.UUID), strings.Join(missing, ", "))
	}

	before = map[identity.Identity]compositions.Manifest{}

	earlier, _ := d.Manifests(c, last)
	for _, one := range earlier {
		if one.Tombstone || one.Err != nil {
			continue
		}

		before[one.ID] = one

		if isOld := chosen != current && chosen != c.Status.InFlightSynthesis; isOld && !one.ID.IsPatch() {
			one.Tombstone = true
			all = append(all, one)
		}
	}

	return compositions.WithoutKept(all), before, nil
}

func (o *deliveryDiffOptions) compareAll(ctx context.Context, d *rehearsal.Differ, all []compositions.Manifest) rehearsal.DiffView {
	v := rehearsal.DiffView{Objects: []rehearsal.ObjectDiff{}, Summary: map[rehearsal.Change]int{}}

	var done atomic.Int64

	stop := render.Progress(o.ErrOut, func() string {
		return fmt.Sprintf("rehearsing, %d of %s done", done.Load(), show.Count(len(all), "object"))
	})
	defer stop()

	for _, one := range all {
		v = v.With(d.Compare(ctx, one))
		done.Add(1)
	}

	return v
}
