package version

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
)

const versionExamples = `  # Versions of this program, of the cluster, and of Arbor in it
  arbor version

  # Of this program only
  arbor version --client

  # For a script
  arbor version -o json`

// Versions are those of this program, of a cluster, and of Arbor in it.
type Versions struct {
	Client Client `json:"client"`
	// Server is the version of the API server, absent with --client.
	Server string `json:"server,omitempty"`
	// Components are those that the chart has installed.
	Components []ComponentVersion `json:"components,omitempty"`
}

// A Client is that of this program, and of Kubernetes in it.
type Client struct {
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
}

// A ComponentVersion is a container of a Deployment of Arbor.
type ComponentVersion struct {
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	// Version is the label app.kubernetes.io/version.
	Version string `json:"version,omitempty"`
	Image   string `json:"image"`
}

type versionOptions struct {
	genericiooptions.IOStreams

	flags  *genericclioptions.ConfigFlags
	client Client
	output output.Flags
	local  bool
}

// New returns the command that prints versions.
func New(streams genericiooptions.IOStreams, client Client) *cobra.Command {
	o := &versionOptions{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), client: client}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program, of the cluster and of Arbor in it",
		Long: `Print the version of this program, of the API server, and of the Deployments of Arbor that the chart has
installed, in all namespaces or in the one that -n names.

Exit codes: 0 printed, 2 the cluster could not be asked. The version of this program is printed in any case.`,
		Example: versionExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.Add(cmd, output.Text)
	cmd.Flags().BoolVar(&o.local, "client", false, "print the version of this program only, and do not ask the cluster")
	o.flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *versionOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	all := Versions{Client: o.client}
	var unknown error
	if !o.local {
		all.Server, all.Components, unknown = o.ask(ctx)
	}
	if printed, err := o.output.Print(o.Out, "Versions", all); err != nil {
		return err
	} else if !printed {
		all.print(o.Out)
	}
	if unknown != nil {
		return command.Blind("%w", unknown)
	}

	return nil
}

// ask returns what can be found out. A cluster whose Deployments may not be listed still has a version.
func (o *versionOptions) ask(ctx context.Context) (server string, components []ComponentVersion, err error) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return "", nil, fmt.Errorf("cannot find a cluster: %w; --client prints the version of this program only", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	info, err := clients.Discovery().ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("cannot ask the cluster for its version: %w; --client prints the version of this program only", source.ShortError(err))
	}
	list, err := clients.AppsV1().Deployments(*o.flags.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=arbor"})
	if err != nil {
		return info.GitVersion, nil, fmt.Errorf("cannot find Arbor in the cluster: %w; -n looks in one namespace only", source.ShortError(err))
	}
	for _, d := range list.Items {
		components = append(components, componentsOf(d)...)
	}

	return info.GitVersion, components, nil
}

func componentsOf(d appsv1.Deployment) []ComponentVersion {
	var all []ComponentVersion
	for _, c := range d.Spec.Template.Spec.Containers {
		all = append(all, ComponentVersion{Namespace: d.Namespace, Deployment: d.Name, Version: d.Labels["app.kubernetes.io/version"], Image: c.Image})
	}

	return all
}

func (v Versions) print(w io.Writer) {
	rows := [][]string{{"client", v.Client.Version, "Kubernetes " + v.Client.Kubernetes}}
	if v.Server != "" {
		rows = append(rows, []string{"server", v.Server, ""})
	}
	for _, c := range v.Components {
		rows = append(rows, []string{c.Namespace + "/" + c.Deployment, c.Version, c.Image})
	}
	render.WriteTable(w, rows)
}
