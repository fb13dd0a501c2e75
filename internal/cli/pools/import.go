package pools

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/ipam/transfer"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const poolsImportExamples = `  # Show what would be created, and what does not fit
  arbor pools import -f pools.yaml --dry-run

  # Restore a backup, also one of a version with owner references
  arbor pools import -f pools.yaml

  # Take over prefixes from NetBox, or allocations from AWS, into a namespace
  arbor pools import -f prefixes.csv --format netbox -n network
  aws ec2 get-ipam-pool-allocations --ipam-pool-id ipam-pool-1 | arbor pools import -f - -n network`

type poolsImportOptions struct {
	poolScope

	edit          source.EditorConnector
	file          string
	from          string
	output        output.Flags
	dryRun        bool
	skipConflicts bool
}

// newPoolsImport returns the command that creates pools, claims and Subnets that were
// written down elsewhere.
func newPoolsImport(streams genericiooptions.IOStreams, connect source.Connector, edit source.EditorConnector) *cobra.Command {
	o := &poolsImportOptions{poolScope: poolScope{source.NewScope(streams, connect)}, edit: edit}
	cmd := &cobra.Command{
		Use:   "import -f FILE",
		Short: "Create pools, claims and Subnets from a file",
		Long: `Create the pools, Subnets and claims of a file in a cluster. What is there already
and is the same stays as it is, so that an import can be repeated.

The file is what "arbor pools export" writes, objects as kubectl get -o yaml prints them,
NetBox's CSV of prefixes, or the JSON of AWS' get-ipam-pool-cidrs and
get-ipam-pool-allocations. Status, UIDs and owner references of objects are not imported.
A block with a claim becomes a SubnetClaim for that very block, one without becomes a
Subnet. Where a file does not name the pool of a block, it is the smallest one around it.

First all objects are compared with those of the cluster. An object that overlaps
another, lies outside of its pool or has the name of another object is a conflict.
If there is one, nothing is created, unless you skip conflicts.

A claim object without a recorded block, which waited in the cluster that it comes from,
is no conflict if its block or clusterID is taken: it is created last, and waits again.
Objects of other kinds are ignored.

Pools of a backup hand out new blocks when their restore has ended: see
"arbor pools restored".

Exit codes: 0 everything is there, or would be, 1 there are conflicts or an object could
not be created, 2 the file or the cluster could not be read, or there is nothing to import
in the file.`,
		Example: poolsImportExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "file to read, - for standard input")
	cmd.Flags().StringVar(&o.from, "format", "", "format of the file: yaml, json, csv, netbox or aws (default: by its name and content)")
	o.output.Add(cmd, output.Table)
	command.AddDryRun(cmd.Flags(), &o.dryRun, "show what would be created, and change nothing")
	cmd.Flags().BoolVar(&o.skipConflicts, "skip-conflicts", false, "create what fits, and leave the rest out")
	o.Flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *poolsImportOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}

	namespace, err := o.Namespace()
	if err != nil {
		return command.Blind("%w", err)
	}

	have, err := o.AddressesOfCluster(ctx, "")
	if err != nil {
		return command.Blind("%w", err)
	}

	want, err := o.read(namespace, have.Estate())
	if err != nil {
		return command.Blind("cannot import %s: %w", o.file, err)
	}

	report, err := o.create(ctx, transfer.Plan(want, have.Estate()))
	if err != nil {
		return command.Blind("%w", err)
	}

	if err := o.print(report); err != nil {
		return err
	}

	if report.Summary.Failed > 0 || report.Summary.Conflicts > 0 && !o.skipConflicts {
		return command.Found()
	}

	return nil
}

func (o *poolsImportOptions) check() error {
	if err := o.output.Check(); err != nil {
		return err
	}

	if o.file == "" {
		return command.Blind("there is nothing to import: name a file with -f, or - for standard input")
	}

	switch transfer.Format(o.from) {
	case "", transfer.FormatYAML, transfer.FormatJSON, transfer.FormatCSV, transfer.FormatNetBox, transfer.FormatAWS:
		return nil
	default:
		return command.Blind("unknown format %q: use one of yaml, json, csv, netbox, aws", o.from)
	}
}

// read returns the objects of the file, at least one. Those without a namespace are for a
// given one.
func (o *poolsImportOptions) read(namespace string, have ipamaudit.Inventory) (ipamaudit.Inventory, error) {
	var (
		data []byte
		err  error
	)

	if o.file == "-" {
		data, err = io.ReadAll(o.In)
	} else {
		data, err = os.ReadFile(o.file)
	}

	if err != nil {
		return ipamaudit.Inventory{}, err
	}

	format := transfer.Format(o.from)
	if format == "" {
		format = transfer.Detect(o.file, data)
	}

	e, err := o.parse(format, data, namespace, have)
	if err == nil && len(e.Pools)+len(e.Subnets)+len(e.Claims)+len(e.PoolClaims) == 0 {
		err = fmt.Errorf("it has no pools, Subnets or claims: expected %s", expected[format])
	}

	return e, err
}

var expectedObjects = "SubnetPools, Subnets, SubnetClaims or SubnetPoolClaims of " + v1alpha1.GroupVersion.Group

// expected is what a file of a format contains.
var expected = map[transfer.Format]string{
	transfer.FormatYAML:   expectedObjects,
	transfer.FormatJSON:   expectedObjects,
	transfer.FormatCSV:    "rows below the header pool,cidr,clusterID",
	transfer.FormatNetBox: "rows below the header prefix,status",
	transfer.FormatAWS:    "elements in IpamPoolCidrs or IpamPoolAllocations",
}

func (o *poolsImportOptions) parse(format transfer.Format, data []byte, namespace string, have ipamaudit.Inventory) (ipamaudit.Inventory, error) {
	switch format {
	case transfer.FormatCSV:
		rows, err := transfer.ReadCSV(data, namespace)

		return transfer.Objects(rows), err
	case transfer.FormatNetBox:
		return placed(have)(transfer.ReadNetBox(data, namespace))
	case transfer.FormatAWS:
		return placed(have)(transfer.ReadAWS(data, namespace))
	case transfer.FormatYAML, transfer.FormatJSON:
	}

	return o.readObjects(data, namespace)
}

// placed finds the pools of rows that do not name them.
func placed(have ipamaudit.Inventory) func([]transfer.Row, error) (ipamaudit.Inventory, error) {
	return func(rows []transfer.Row, err error) (ipamaudit.Inventory, error) {
		if err == nil {
			rows, err = transfer.Place(rows, have)
		}

		return transfer.Objects(rows), err
	}
}

// readObjects decodes the objects of a file, and reports how many of other kinds it ignores.
func (o *poolsImportOptions) readObjects(data []byte, namespace string) (ipamaudit.Inventory, error) {
	f := manifest.Parse(o.file, data)
	for _, e := range f.Errors {
		return ipamaudit.Inventory{}, fmt.Errorf("line %d: %w", e.Line, e)
	}

	a, ignored := ipamplan.NewObjects(), 0

	for _, d := range f.Documents {
		if !isOfEstate(identity.RefOf(d.Object)) {
			ignored++

			continue
		}

		if identity.RefOf(d.Object).Namespace == "" {
			setNamespace(d.Object, namespace)
		}

		if err := source.Collect(a, d.Object, ""); err != nil {
			return ipamaudit.Inventory{}, fmt.Errorf("line %d: %s: %w", d.Line("spec"), identity.RefOf(d.Object), err)
		}
	}

	if ignored > 0 {
		_, _ = fmt.Fprintf(o.ErrOut, "ignored %s of other kinds\n", show.Count(ignored, "object"))
	}

	return transfer.Portable(a.Estate()), nil
}

// isOfEstate reports whether an object is a pool, a Subnet or a claim.
func isOfEstate(ref identity.Ref) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")

	return group == v1alpha1.GroupVersion.Group && slices.ContainsFunc(findings.EstateKinds, func(k findings.Kind) bool { return k.Name == ref.Kind })
}

// create creates what is missing, if all of it fits or the rest may be left out.
func (o *poolsImportOptions) create(ctx context.Context, steps []transfer.Step) (*ipam.ImportReport, error) {
	report := ipam.NewImportReport(steps)
	report.DryRun = o.dryRun || report.Summary.Conflicts > 0 && !o.skipConflicts

	if report.DryRun || report.Summary.Planned == 0 {
		return report, nil
	}

	e, err := o.edit(o.Flags)
	if err != nil {
		return nil, err
	}

	var done atomic.Int64

	planned := report.Summary.Planned

	stop := render.Progress(o.ErrOut, func() string { return fmt.Sprintf("creating objects, %d of %d", done.Load(), planned) })
	defer stop()

	for i, s := range steps {
		v := &report.Objects[i]
		if v.Result != ipam.ResultPlanned {
			continue
		}

		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		v.Result = ipam.ResultCreated

		object, _ := s.Object.(client.Object)
		if err := e.Create(ctx, object); apierrors.IsAlreadyExists(err) {
			v.Result, v.Message = ipam.ResultSame, ""
		} else if err != nil {
			v.Result, v.Message = ipam.ResultFailed, source.Explain(err).Error()
		}

		done.Add(1)
	}

	report.Count()

	return report, nil
}
