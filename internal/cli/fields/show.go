package fields

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const fieldsShowExamples = `  # Who owns which field of a Deployment
  arbor fields show deploy/web

  # Of several objects, of any kind
  arbor fields show deploy/web svc/web
  arbor fields show certificates.cert-manager.io -l app=web -A

  # Only a part of it, or only what one manager has
  arbor fields show deploy/web --scope 'spec.template.spec.initContainers[name=~^aks-]'
  arbor fields show deploy/web --manager eno

  # What was saved of a cluster
  kubectl get deploy web -o yaml --show-managed-fields > web.yaml
  arbor fields show -f web.yaml

  # One line for each field, for grep; or fields with several owners, for a script
  arbor fields show deploy/web -o table
  arbor fields show deploy/web -o json | jq -r '.objects[].fields[] | select(.state == "CoOwned") | .path'`

type fieldsShowOptions struct {
	ownersOptions

	manager string
	depth   int
}

func newFieldsShow(streams genericiooptions.IOStreams, find finder) *cobra.Command {
	o := &fieldsShowOptions{ownersOptions: newOwnersOptions(streams, find)}
	cmd := &cobra.Command{
		Use:   "show KIND/NAME... | KIND -l LABELS | -f FILE",
		Short: "Draw an object with the owner of every field",
		Long: `Draw objects of any kind as trees, with who owns each field, and list the managers
with what they did. Items of lists are named by what the server knows them by.

  +  co-owned: several managers hold all of it
  ~  split: one part belongs to others than another part
  -  nobody's, like values that the server has filled in
  .  somebody holds the field itself, others hold what is in it
  ?  somebody holds it, but the object does not have it

What was written through a subresource has its name after the manager's:
kube-controller-manager/status. Values of Secrets are not shown.

Exit codes: 0 it was drawn, 1 no such object, scope or manager, 2 it could not
look.`,
		Example: fieldsShowExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Tree, output.Table, output.Name)
	cmd.Flags().StringVar(&o.manager, "manager", "", "only what this manager has")
	cmd.Flags().IntVar(&o.depth, "depth", render.DefaultDepth, "levels of fields to draw, 0 for all")
	command.AddWidth(cmd, &o.width)
	o.addOwnersFlags(cmd)

	return command.AcceptAs(cmd, map[string]string{"field-manager": "manager"})
}

func (o *fieldsShowOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	within, err := o.parseWithin()
	if err != nil {
		return err
	}

	all, end, err := o.gather(ctx)
	if err != nil {
		return err
	}

	if len(all) == 0 {
		return end
	}

	views, err := o.choose(all, within)
	if err != nil {
		return err
	}

	if err := o.print(views); err != nil {
		return err
	}

	return end
}

// choose leaves what is asked for of each object. Among several objects, some
// may have none of it.
func (o *fieldsShowOptions) choose(all []*owners.Object, within fields.Scope) ([]*owners.Tree, error) {
	var out []*owners.Tree

	known := o.manager == ""

	for _, thing := range all {
		c := owners.NewTree(thing, within, o.manager, o.within != "")
		if len(c.Fields) > 0 || o.within == "" && o.manager == "" {
			out = append(out, c)
		}

		known = known || thing.Has(o.manager)
	}

	switch {
	case !known:
		return nil, command.NotFound("manager %q has nothing in %s: %s", o.manager, them(all), managersOf(all))
	case len(out) == 0 && o.manager != "":
		return nil, command.NotFound("manager %q has nothing there in %s: leave out --scope to see what it has", o.manager, them(all))
	case len(out) == 0:
		return nil, command.NotFound("%s is not in %s: leave out --scope to see what is there", within, them(all))
	default:
		return out, nil
	}
}

// them names an object, or says how many there are.
func them(all []*owners.Object) string {
	if len(all) == 1 {
		return render.Clean(all[0].String())
	}

	return fmt.Sprintf("any of %d objects", len(all))
}

// managersOf names those that there are.
func managersOf(all []*owners.Object) string {
	const most = 8

	var names []string

	for _, o := range all {
		for _, e := range o.Managers {
			names = append(names, render.Clean(e.Manager))
		}
	}

	names = slices.Compact(slices.Sorted(slices.Values(names)))

	switch n := len(names); {
	case n == 0:
		return "there are no managers"
	case n > most:
		return fmt.Sprintf("there are %s and %d more", strings.Join(names[:most], ", "), n-most)
	default:
		return "there is only " + strings.Join(names, ", ")
	}
}

func (o *fieldsShowOptions) print(all []*owners.Tree) error {
	if done, err := o.output.Print(o.Out, "FieldOwners", owners.ViewOf(all)); done {
		return err
	}

	w := bufio.NewWriter(o.Out)

	if o.output.Is(output.Tree) {
		drawOwners(w, all, o.depth, o.Columns(o.width), render.StyleOf(o.Out, os.Getenv))
	} else {
		o.output.Table(w, ownersTable(all))
	}

	return w.Flush()
}

// ownersTable has a row for everything that comes and goes as one.
func ownersTable(all []*owners.Tree) [][]string {
	rows := [][]string{{"OBJECT", "FIELD", "STATE", "OWNERS", "VALUE"}}

	for _, c := range all {
		for _, n := range c.Fields {
			if !n.Live || n.Element.FieldName != nil && owners.HasLiveChildren(n) {
				continue
			}

			text := ""
			if v, ok := c.Value(n); ok {
				text = shorten(valueText(v), render.MaxColumn, "...")
			}

			rows = append(rows, []string{
				c.String(), fields.FormatPath(n.Path()), string(n.State), strings.Join(c.Names(n.Owners), ", "), text,
			})
		}
	}

	if len(all) == 1 {
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}

	return rows
}
