package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/clusterfacts"
	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

const doctorExamples = `  # Is Arbor healthy in this cluster, and if not, what can be done?
  arbor doctor

  # Arbor is installed in a namespace of another name
  arbor doctor --arbor-namespace=platform

  # What would change for Compositions with --delivery-scope=namespace?
  arbor doctor --delivery-scope=namespace --default-service-account=deployer

  # After an installation: wait until it is healthy
  arbor doctor --wait=2m

  # For a script: exit with 1 for warnings too
  arbor doctor --strict -o json`

type doctorOptions struct {
	genericiooptions.IOStreams

	flags     *genericclioptions.ConfigFlags
	release   clusterfacts.Release
	connect   func(genericclioptions.RESTClientGetter) (*clusterfacts.Reader, error)
	now       func() time.Time
	namespace string
	scope     string
	account   string
	output    output.Flags
	wait      time.Duration
	strict    bool
}

// New returns the command that checks Arbor in a cluster.
func New(streams genericiooptions.IOStreams, release clusterfacts.Release) *cobra.Command {
	o := &doctorOptions{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), release: release, connect: clusterfacts.Connect, now: time.Now}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check Arbor in a cluster",
		Long: `Check what Arbor needs in a cluster: the version of Kubernetes, the CRDs, the webhooks and
their certificates, the leader, the permissions of the manager, arbor-scheduler if it is
installed, and objects that wait. For each problem, the report names what to do. Nothing is
changed; webhooks are tried with dry runs of objects that they must reject.

With --wait, it checks again until there is no problem, and prints the last report.

With --delivery-scope=namespace, it also lists what the manager could not deliver
any more if it ran with that flag: Compositions without a ServiceAccount, objects
outside of their namespaces, and permissions that their ServiceAccounts lack.

What you have no permission to read is listed as unknown. "arbor audit" checks objects.

Exit codes: 0 no problem, 1 problems, 2 the cluster could not be read.`,
		Example: doctorExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	o.output.Add(cmd, output.Table)
	o.output.AddExitCode(cmd, true, "there is a problem")
	command.AddWait(cmd, &o.wait, "check again until there is no problem")
	cmd.Flags().StringVar(&o.namespace, "arbor-namespace", names.Namespace, "namespace that Arbor is installed in")
	cmd.Flags().StringVar(&o.scope, "delivery-scope", string(tenancy.Cluster), "also list what would change for Compositions with this --delivery-scope of the manager: cluster (nothing) or namespace")
	cmd.Flags().StringVar(&o.account, "default-service-account", "", "with --delivery-scope=namespace: --default-service-account of the manager; empty: that of the Deployment")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with 1 for warnings and for what is unknown too")
	o.flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

// parseScope reads the flags about tenants.
func (o *doctorOptions) parseScope() (tenancy.Scope, error) {
	scope, err := tenancy.ParseScope(o.scope)
	if err != nil {
		return scope, command.Blind("--delivery-scope %q: %w", o.scope, err)
	}

	if o.account != "" && !scope.Restricts() {
		return scope, command.Blind("--default-service-account is for --delivery-scope=%s: set both", tenancy.Namespace)
	}

	if wrong := validation.IsDNS1123Subdomain(o.account); o.account != "" && len(wrong) > 0 {
		return scope, command.Blind("--default-service-account %q: %s", o.account, wrong[0])
	}

	return scope, nil
}

func (o *doctorOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	if *o.flags.Namespace != "" {
		return command.Blind("-n %s: doctor looks in all namespaces; --arbor-namespace names the one that Arbor is installed in", *o.flags.Namespace)
	}

	scope, err := o.parseScope()
	if err != nil {
		return err
	}

	var report health.Report

	err = command.Wait(ctx, o.wait, func(ctx context.Context) (bool, error) {
		var err error
		report, err = o.examine(ctx, scope)

		return !o.fails(report), err
	})
	if err != nil {
		return command.Blind("%w", err)
	}

	if err := o.print(report); err != nil {
		return err
	}

	return o.output.Found(o.fails(report))
}

// fails reports whether a report has what the command must not succeed with.
func (o *doctorOptions) fails(r health.Report) bool {
	return r.State == health.Problem || o.strict && r.State != health.OK
}

// examine reads the cluster and judges what it finds.
func (o *doctorOptions) examine(ctx context.Context, scope tenancy.Scope) (health.Report, error) {
	cluster, err := o.connect(o.flags)
	if err != nil {
		return health.Report{}, err
	}

	facts, err := cluster.Facts(ctx, o.release, o.namespace)
	if err != nil {
		return health.Report{}, err
	}

	all := health.Examine(facts, o.now())
	if scope.Restricts() {
		all = append(all, health.ExamineScope(cluster.ScopeFacts(ctx, facts.Deployment.Is, o.account))...)
	}

	return health.NewReport(all), nil
}

func (o *doctorOptions) print(r health.Report) error {
	if done, err := o.output.Print(o.Out, "HealthReport", r); done {
		return err
	}

	s := render.StyleOf(o.Out, os.Getenv)
	rows := [][]string{{"STATE", "CHECK", "OBJECT", "FOUND"}}

	for _, c := range r.Checks {
		rows = append(rows, []string{string(c.State), c.About, c.Object, c.Message})
	}

	o.output.Table(o.Out, rows)

	for _, c := range r.Checks {
		if c.Fix == "" {
			continue
		}

		about := c.About
		if c.Object != "" {
			about += " " + c.Object
		}

		_, _ = fmt.Fprintf(o.Out, "\n%s %s\n  %s\n  To do: %s\n", s.Paint(colourOf(c.State), string(c.State)+":"), render.Clean(about), render.Clean(c.Message), render.Clean(command.Typed(c.Fix)))
	}

	_, err := fmt.Fprintln(o.ErrOut, health.Summary(r.Checks))

	return err
}

func colourOf(s health.State) string {
	switch s {
	case health.Problem:
		return render.Red
	case health.Warning, health.Unknown:
		return render.Yellow
	default:
		return render.Green
	}
}
