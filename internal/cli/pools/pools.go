package pools

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const poolsExamples = `  # Draw the pools of the current namespace
  arbor pools

  # Those of all namespaces, or one of them and what was taken from it
  arbor pools -A
  arbor pools core -n network

  # One line for each pool, as kubectl prints lists, and those with a label
  arbor pools -A -o table
  arbor pools -l site=east -o name

  # Draw them again whenever they change
  arbor pools -A -w

  # Draw what manifests say, without a cluster
  arbor pools --from network/

  # Only what is nearly full, for a script
  arbor pools -A -o json | jq '.pools[] | select(.utilizationPercent >= 90) | .name'`

type poolsOptions struct {
	poolScope

	output output.Flags
	name   string
}

// New returns the command that draws pools of addresses, and those that
// look at one of them.
func New(streams genericiooptions.IOStreams, connect source.Connector, edit source.EditorConnector) *cobra.Command {
	cmd := newPools(streams, connect)
	cmd.AddCommand(
		newPoolsShow(streams, connect), newPoolsPlan(streams, connect), newPoolsCheck(streams, connect),
		newPoolsMigrate(streams, connect, edit), newPoolsRestored(streams, connect, edit),
		newPoolsExport(streams, connect), newPoolsImport(streams, connect, edit),
	)

	return cmd
}

func newPools(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &poolsOptions{poolScope: poolScope{source.NewScope(streams, connect)}}
	cmd := &cobra.Command{
		Use:     "pools [NAME]",
		Aliases: []string{"pool", "subnetpools", "subnetpool"},
		Short:   "Draw the trees of address pools",
		Long: `Draw the pools of addresses as the trees that they form: how much of each is
taken, by how many Subnets and child pools, how many claims wait, and which
blocks are free. With a name, draw that pool and what was taken from it.

Free blocks are the largest ones that the free space is made of: "free /17 2×/20"
is one /17 and two /20, and "/17…/24" is one of each size between.

Everything is counted from the Subnets and pools themselves, not taken from the
status of pools. A status that says something else is marked.

-o table lists one pool in each line, and -o wide adds its parent, its strategy and what
is wrong with it.

Exit codes: 0 they are drawn, 1 with --exit-code if a pool is exhausted or has another
error, 2 no such pool or namespace, or the cluster or a file could not be read.`,
		Example: poolsExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.name = args[0]
			}

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Tree, output.Table, output.Wide, output.Name)
	o.output.AddDepth(cmd, "levels of pools")
	o.output.AddWidth(cmd)
	o.output.AddSelector(cmd, "pools")
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, false, "a pool is exhausted or has another error")
	o.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.MaximumNArgs(1))

	return cmd
}

func (o *poolsOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	if err := o.CheckWatch(o.output.Watch); err != nil {
		return err
	}

	return o.output.Run(ctx, &o.IOStreams, o.once)
}

func (o *poolsOptions) once(ctx context.Context) error {
	inv, end, err := o.inventory(ctx)
	if err != nil {
		return err
	}

	trees := ipam.TreesOf(inv, o.output.Matches)
	if o.name != "" {
		trees = slices.DeleteFunc(trees, func(t *ipam.Tree) bool { return !t.Narrow(o.name) })
	}

	if o.name != "" && len(trees) == 0 {
		return o.unknownPool(inv, o.name)
	}

	if len(trees) == 0 {
		if err := o.CheckNamespace(ctx, inv.Namespace); err != nil {
			return err
		}
	}

	view := ipam.PoolsViewOf(trees)
	if err := o.print(trees, view, inv); err != nil {
		return err
	}
	if end == nil {
		end = o.output.Found(view.Wrong())
	}

	return end
}

// A poolScope is where a command looks for pools.
type poolScope struct{ source.Scope }

// inventory counts what there is in the pools. end is how the command should
// end when everything is printed: a part of the input may not have been
// readable.
func (s *poolScope) inventory(ctx context.Context) (inv *ipamplan.Inventory, end, err error) {
	namespace, err := s.Namespace()
	if err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	a, bad, err := s.Addresses(ctx, namespace)
	if err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	if bad {
		end = &command.ExitError{Code: command.ExitBlind}
	}

	inv = ipamplan.NewInventory(a, s.Offline())
	inv.Namespace, inv.Place = namespace, s.Place(namespace)

	return inv, end, nil
}

// unknownPool says what could have been meant instead.
func (s *poolScope) unknownPool(inv *ipamplan.Inventory, name string) error {
	const most = 5

	var names []string
	for _, p := range inv.Pools {
		names = append(names, render.Clean(p.Name))
	}

	names = slices.Compact(slices.Sorted(slices.Values(names)))
	there := ""

	if n := len(names); n > most {
		there = fmt.Sprintf("there are %s and %d more; ", strings.Join(names[:most], ", "), n-most)
	} else if n > 0 {
		there = fmt.Sprintf("there is only %s; ", strings.Join(names, ", "))
	}

	return command.NotFound("pool %q was not found in %s: %s%s", name, inv.Place, there, s.Advice())
}

// onePool is the pool of a name that space can be counted of.
func (s *poolScope) onePool(inv *ipamplan.Inventory, name string) (*ipamplan.Pool, error) {
	var (
		found      *ipamplan.Pool
		namespaces []string
	)

	for _, p := range inv.Pools {
		if p.Name == name {
			found, namespaces = p, append(namespaces, namespaceText(p.Namespace))
		}
	}

	switch {
	case found == nil:
		return nil, s.unknownPool(inv, name)
	case len(namespaces) > 1:
		return nil, command.Blind("pool %q is in several namespaces: choose one of %s with -n", name, strings.Join(namespaces, ", "))
	case found.All == nil:
		return nil, &command.ExitError{Code: command.ExitFound, Err: fmt.Errorf("cannot use pool %q: %s", name, found.Unusable())}
	}

	return found, nil
}

func namespaceText(namespace string) string {
	if namespace == "" {
		return "(no namespace)"
	}

	return render.Clean(namespace)
}

func (o *poolsOptions) print(trees []*ipam.Tree, view ipam.PoolsView, inv *ipamplan.Inventory) error {
	if done, err := o.output.Print(o.Out, ipam.PoolsKind, view); done {
		return err
	}

	if len(trees) == 0 {
		_, err := fmt.Fprintf(o.ErrOut, "No pools found in %s.\n", inv.Place)

		return err
	}

	if o.output.Is(output.Tree) {
		return drawPools(o.Out, trees, o.output.Depth, o.output.Columns(o.Out, os.Getenv), render.StyleOf(o.Out, os.Getenv))
	}
	o.output.Table(o.Out, view.Rows(inv.Namespace == "", o.output.Is(output.Wide)))

	return nil
}
