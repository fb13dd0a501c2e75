package pools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/ipam/transfer"
)

const poolsExportExamples = `  # Back up all pools, Subnets and claims
  arbor pools export -A > pools.yaml

  # Move them to another cluster; every claim keeps its block
  arbor pools import -f pools.yaml --context other

  # A list of who has what, for a spreadsheet or for NetBox
  arbor pools export -n network -o csv
  arbor pools export -n network -o netbox > prefixes.csv

  # Make a backup of an older version fit to be restored
  arbor pools export --from old-backup.yaml > backup.yaml`

type poolsExportOptions struct {
	poolScope

	format string
}

// newPoolsExport returns the command that writes pools down for others.
func newPoolsExport(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &poolsExportOptions{poolScope: poolScope{source.NewScope(streams, connect)}}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write pools, Subnets and claims for another cluster or system",
		Long: `Write the pools, Subnets and claims of a namespace, or of all with -A.

  yaml, json  objects for arbor pools import and kubectl apply, without status, UIDs
              and owner references; a claim with a block has the annotation that keeps it
  csv         namespace,pool,cidr,clusterID,claim,parent; a pool has no clusterID
  netbox      CSV for NetBox's import of prefixes; pools are containers
  aws         JSON as get-ipam-pool-cidrs and get-ipam-pool-allocations print it

Subnets that Failed and objects that are being deleted are left out.

Exit codes: 0 it is written, 2 no such namespace, or the cluster or a file could not be read.`,
		Example: poolsExportExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", render.FormatYAML, "output format: yaml, json, csv, netbox or aws")
	o.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *poolsExportOptions) run(ctx context.Context) error {
	if err := render.CheckFormat(o.format, render.FormatYAML, render.FormatJSON, string(transfer.FormatCSV), string(transfer.FormatNetBox), string(transfer.FormatAWS)); err != nil {
		return err
	}

	namespace, err := o.Namespace()
	if err != nil {
		return command.Blind("%w", err)
	}

	a, bad, err := o.Addresses(ctx, namespace)
	if err != nil {
		return command.Blind("%w", err)
	}

	if bad {
		// A part of a backup is worse than none: it looks like all.
		return &command.ExitError{Code: command.ExitBlind}
	}

	if a.Empty() {
		if err := o.ExplainEmpty(ctx, namespace); err != nil {
			return err
		}
	}

	var out bytes.Buffer
	if err := writeEstate(&out, transfer.Format(o.format), a.Estate()); err != nil {
		return command.Blind("cannot write %s: %w", o.format, err)
	}

	_, err = out.WriteTo(o.Out)

	return err
}

func writeEstate(w io.Writer, format transfer.Format, e ipamaudit.Inventory) error {
	switch format {
	case transfer.FormatCSV:
		return transfer.WriteCSV(w, transfer.Rows(e))
	case transfer.FormatNetBox:
		return transfer.WriteNetBox(w, transfer.Rows(e))
	case transfer.FormatAWS:
		return transfer.WriteAWS(w, transfer.Rows(e))
	case transfer.FormatYAML, transfer.FormatJSON:
	}

	return writeObjects(w, format, transfer.Portable(e))
}

// writeObjects writes pools first, and claims after the Subnets that they had.
func writeObjects(w io.Writer, format transfer.Format, e ipamaudit.Inventory) error {
	var all []map[string]any

	for _, kind := range []any{e.Pools, e.Subnets, e.PoolClaims, e.Claims} {
		data, err := json.Marshal(kind)
		if err != nil {
			return err
		}

		var some []map[string]any
		if err := json.Unmarshal(data, &some); err != nil {
			return err
		}

		for _, o := range some {
			delete(o, "status")
			all = append(all, o)
		}
	}

	if format == transfer.FormatJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")

		return encoder.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": append([]map[string]any{}, all...)})
	}

	for _, o := range all {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}

		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}

	return nil
}
