package uninstall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
)

const uninstallExamples = `  # Show how many objects have finalizers, and change nothing
  arbor uninstall --keep-objects

  # Remove Arbor, then its finalizers; pools, Subnets and claims stay
  helm uninstall arbor -n arbor-system
  arbor uninstall --keep-objects --yes

  # Afterwards the CRDs can be deleted, and all objects with them
  kubectl delete crd subnetpools.plexaubnet.io subnets.plexaubnet.io subnetclaims.plexaubnet.io subnetpoolclaims.plexaubnet.io`

type uninstallOptions struct {
	genericiooptions.IOStreams

	flags   *genericclioptions.ConfigFlags
	connect source.Connector
	edit    source.EditorConnector
	keep    bool
	yes     bool
	now     func() time.Time
}

// New returns the command that removes Arbor's finalizers.
func New(streams genericiooptions.IOStreams, connect source.Connector, edit source.EditorConnector) *cobra.Command {
	o := &uninstallOptions{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), connect: connect, edit: edit, now: time.Now}
	cmd := &cobra.Command{
		Use:   "uninstall --keep-objects",
		Short: "Remove Arbor's finalizers from pools, Subnets and claims",
		Long: `Remove Arbor's finalizers from all pools, Subnets and claims of a cluster. Without a
manager nothing removes them, and an object with one can never be deleted: neither can
its namespace or its CRD.

Nothing is deleted, except objects whose deletion only waited for a finalizer. Without
--yes this is a dry run.

Remove the manager first, with helm uninstall for example: a manager adds the finalizers
again, and the webhooks of one that is only stopped refuse the changes. The command
refuses to write while the Lease of the leader election is held. A manager may have
another Lease or none: the command first removes the finalizer of one pool, and writes
nothing else if a manager adds it again within three seconds. Without a pool that has
a finalizer, make sure yourself that no manager runs.

Exit codes: 0 done, 1 some objects could not be changed, 2 the cluster could not be
read, or a manager runs.`,
		Example: uninstallExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	cmd.Flags().BoolVar(&o.keep, "keep-objects", false, "remove finalizers and keep all objects; required")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "write; without it nothing is changed")
	o.flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *uninstallOptions) run(ctx context.Context) error {
	if !o.keep {
		return command.Blind("only --keep-objects is offered: it removes finalizers, so that you can delete the CRDs; to remove the manager, use helm uninstall")
	}

	e, err := o.edit(o.flags)
	if err != nil {
		return command.Blind("%w", err)
	}

	probed := 0

	if o.yes {
		if probed, err = o.check(ctx, e); err != nil {
			return command.Blind("%w", err)
		}
	}

	rows, failed := [][]string{{render.ColumnKind, "OBJECTS", "FINALIZERS", "FAILED"}}, 0

	for _, k := range findings.EstateKinds {
		c := &cleaner{editor: e, kind: k.Name, yes: o.yes}
		if k.Name == v1alpha1.SubnetPoolKind {
			c.had = probed
		}

		stop := render.Progress(o.ErrOut, c.String)
		err := e.Pages(ctx, k.Name, func(page []metav1.PartialObjectMetadata) error { return c.clean(ctx, page) })

		stop()

		if err != nil {
			return command.Blind("%w", err)
		}

		for _, f := range c.failures {
			_, _ = fmt.Fprintln(o.ErrOut, f)
		}

		failed += len(c.failures)
		rows = append(rows, []string{k.Name, strconv.FormatInt(c.seen.Load(), 10), strconv.Itoa(c.had), strconv.Itoa(len(c.failures))})
	}

	return o.conclude(rows, failed)
}

func (o *uninstallOptions) conclude(rows [][]string, failed int) error {
	render.WriteTable(o.Out, rows)

	switch {
	case !o.yes:
		_, _ = fmt.Fprintln(o.ErrOut, "dry run: nothing was written; remove the manager and add --yes")
	case failed > 0:
		_, _ = fmt.Fprintf(o.ErrOut, "%s could not be changed: run the command again\n", show.Count(failed, "object"))

		return command.Found()
	default:
		_, _ = fmt.Fprintln(o.ErrOut, "no object has a finalizer of Arbor any more; the CRDs can be deleted")
	}

	return nil
}

// A cleaner removes the finalizers of the objects of one kind.
type cleaner struct {
	editor source.Editor
	kind   string
	yes    bool

	seen     atomic.Int64 // read by who shows the progress
	had      int
	failures []string
}

func (c *cleaner) String() string {
	return fmt.Sprintf("removing finalizers of %ss, %d so far", c.kind, c.seen.Load())
}

// clean goes through one page. Its objects were read some time ago, so each is changed
// only in the version that was read.
func (c *cleaner) clean(ctx context.Context, page []metav1.PartialObjectMetadata) error {
	for i := range page {
		o := &page[i]
		c.seen.Add(1)

		if !slices.Contains(o.Finalizers, v1alpha1.Finalizer) {
			continue
		}

		c.had++

		if !c.yes {
			continue
		}

		if err := c.strip(ctx, o); err != nil && !apierrors.IsNotFound(err) {
			c.failures = append(c.failures, fmt.Sprintf("%s %s/%s: %v", c.kind, o.Namespace, o.Name, source.Explain(err)))
		}
	}

	return ctx.Err()
}

func (c *cleaner) strip(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	left := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == v1alpha1.Finalizer })

	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": left, "resourceVersion": o.ResourceVersion}})
	if err != nil {
		return err
	}

	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(c.kind))

	if err := c.editor.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}

	o.Finalizers = left

	return nil
}
