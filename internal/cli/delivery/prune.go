package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/rehearsal"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

const deliveryPruneExamples = `  # Which manifest cannot be applied, and which objects wait to be deleted?
  arbor compositions show web -n shop

  # Delete the old Service now: it has the node port that the new one needs
  arbor compositions prune web -n shop --first Service/web-v1

  # If several objects are called like this, add the API group or the namespace
  arbor compositions prune web -n shop --first Ingress.networking.k8s.io/shop/web

  # Only check it
  arbor compositions prune web -n shop --first Service/web-v1 --dry-run`

// maxChoices is how many objects an error lists.
const maxChoices = 10

type deliveryPruneOptions struct {
	annotator

	first []string
}

func newDeliveryPrune(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector) *cobra.Command {
	o := &deliveryPruneOptions{annotator: annotator{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}}
	cmd := &cobra.Command{
		Use:   "prune COMPOSITION --first KIND/NAME",
		Short: "Delete an object now that a composition would delete last",
		Long: `Delete an object that the current synthesis of a composition no longer has, without
waiting until all manifests are applied. This is for an apply that needs the old object
to be gone first, for example because both claim one node port, or because of a quota:
the condition ` + enov1.ConditionPruneWaiting + ` of the composition names the manifest and the object.

The object is named as KIND/NAME, KIND.GROUP/NAME, or with its namespace as
KIND/NAMESPACE/NAME. It must wait to be deleted. Only this object is deleted, also if the
deletion of all others waits for a confirmation, and only for the current synthesis.

It writes the annotation ` + enov1.AnnotationPruneFirst + `, and nothing else. Delivery deletes
the object.

Exit codes: 0 it is requested, or was already, 1 no such object waits to be deleted,
or it could not be changed, 2 there is no such composition, or the cluster could not be read.`,
		Example: deliveryPruneExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			return retried(func() error { return o.run(cmd.Context(), args[0]) })
		},
	}

	cmd.Flags().StringArrayVar(&o.first, "first", nil, "the object to delete now, as KIND[.GROUP]/[NAMESPACE/]NAME; may be repeated")
	command.AddDryRun(cmd.Flags(), &o.dryRun, "have the server check it, and change nothing")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))

	return cmd
}

func (o *deliveryPruneOptions) run(ctx context.Context, name string) error {
	if len(o.first) == 0 {
		return command.Blind("cannot tell which object to delete: use --first KIND/NAME")
	}

	d, c, err := o.oneComposition(ctx, name)
	if err != nil {
		return err
	}

	current := c.Status.CurrentSynthesis

	switch {
	case c.DeletionTimestamp != nil:
		return cannotDo("cannot prune %s/%s: it is being deleted, with all of its objects", c.Namespace, c.Name)
	case current == nil:
		return cannotDo("cannot prune %s/%s: it has no synthesis yet", c.Namespace, c.Name)
	}

	if err := d.readSlices(ctx, c, current); err != nil {
		return command.Blind("%w", err)
	}

	s, err := o.servers(o.Flags)
	if err != nil {
		return command.Blind("%w", err)
	}

	d.Scopes = s.Scope

	all, missing := d.Manifests(c, current)
	if len(missing) > 0 {
		return cannotDo("cannot prune %s/%s: manifests of its current synthesis are gone (%s)", c.Namespace, c.Name, strings.Join(missing, ", "))
	}

	all = compositions.WithoutKept(all)

	var objects []identity.Identity

	for _, text := range o.first {
		id, err := findTombstone(c, all, text)
		if err != nil {
			return err
		}

		objects = append(objects, id)
	}

	return o.request(ctx, c, objects)
}

// request writes the annotation, with the objects that it has already for this synthesis.
func (o *deliveryPruneOptions) request(ctx context.Context, c *enov1.Composition, objects []identity.Identity) error {
	request := decide.ParsePruneFirst(c.Annotations[enov1.AnnotationPruneFirst])
	if request.Synthesis != c.Status.CurrentSynthesis.UUID {
		request = decide.PruneFirst{Synthesis: c.Status.CurrentSynthesis.UUID}
	}

	var names []string

	added := false

	for _, id := range objects {
		names = append(names, id.String())

		if !slices.Contains(request.Objects, id) {
			request.Objects, added = append(request.Objects, id), true
		}
	}

	what := strings.Join(names, ", ")
	if !added {
		return o.say(c, "deletes "+what+" already: it was requested before")
	}

	value := request.String()
	if err := o.annotate(ctx, c, map[string]*string{enov1.AnnotationPruneFirst: &value}); err != nil {
		return err
	}

	if o.dryRun {
		return o.say(c, "would delete "+what+" now (dry run: nothing was written)")
	}

	return o.say(c, "deletes "+what+" now\n"+
		"This is for synthesis "+compositions.ShortUUID(request.Synthesis)+" only. Other objects are deleted when all manifests have been applied.\n"+
		"To see how far it is: arbor compositions show "+c.Name+" -n "+c.Namespace)
}

// findTombstone finds the waiting tombstone that a text names.
func findTombstone(c *enov1.Composition, all []compositions.Manifest, text string) (identity.Identity, error) {
	wanted, ok := identity.ParseSelector(text)
	if !ok {
		return identity.Identity{}, command.Blind("cannot read --first %q: write KIND/NAME, KIND.GROUP/NAME or KIND/NAMESPACE/NAME", text)
	}

	var found, waiting []identity.Identity

	why := "no manifest of the current synthesis, and none that it dropped, is called so"

	for _, one := range all {
		id, state := one.ID, notWaiting(one, c)

		if state == "" {
			waiting = append(waiting, id)
		}

		switch {
		case !wanted.Matches(id, pluralOf):
		case state == "":
			found = append(found, id)
		default:
			why = id.String() + " " + state
		}
	}

	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return identity.Identity{}, cannotDo("%s does not wait to be deleted: %s; %s", text, why, choicesOf(waiting))
	}

	return identity.Identity{}, cannotDo("%s is the name of several objects: choose %s", text, arguments(found))
}

// notWaiting returns why a manifest is not an object that waits to be deleted, "" if it is.
func notWaiting(one compositions.Manifest, c *enov1.Composition) string {
	if one.Err != nil || one.Ref.Name == "" {
		return "cannot be read"
	}

	if !one.Tombstone {
		return "is a manifest of the current synthesis"
	}

	if one.State.Deleted {
		return "is deleted already"
	}

	d := &rehearsal.Differ{Composition: c, Reader: decide.NewReader()}

	switch r, _ := d.Read(one); {
	case r == nil:
		return "cannot be read"
	case r.Prune == enov1.PruneNever:
		return "is never pruned: annotation " + enov1.AnnotationPrune + " says so"
	case !r.Prunes():
		return "is left alone"
	}

	return ""
}

// pluralOf is the name of the resource of a kind, as far as it can be guessed.
func pluralOf(kind string) string {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})

	return plural.Resource
}

// choicesOf lists objects for the one who has to choose.
func choicesOf(waiting []identity.Identity) string {
	if len(waiting) == 0 {
		return "no object waits to be deleted"
	}

	return "these objects do: " + arguments(waiting)
}

func arguments(all []identity.Identity) string {
	names := make([]string, 0, maxChoices)
	for _, id := range all[:min(len(all), maxChoices)] {
		names = append(names, id.Argument())
	}

	if n := len(all) - maxChoices; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}

	return strings.Join(names, ", ")
}
