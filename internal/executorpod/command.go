package executorpod

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/executor"
)

// DefaultSocket is where the two containers of a pod meet.
const DefaultSocket = "/eno/executor.sock"

// cgroup is where a container has its cgroups mounted.
const cgroup = "/sys/fs/cgroup"

// NewCommand returns the program.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "arbor-executor",
		Short: "Run syntheses in pods",
		Long: `Run syntheses in pods. The manager creates these pods if it is started with
--executor-image; you do not need to run this command yourself.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newInstall(), newServe(), newPublish())

	return cmd
}

func newInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install PATH",
		Short: "Copy this program to a path",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return install(args[0])
		},
	}
}

// install copies this program. It appears under its name as a whole.
func install(path string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	from, err := os.Open(self)
	if err != nil {
		return fmt.Errorf("cannot read this program: %w", err)
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot install to %s: %w", path, err)
	}
	defer os.Remove(to.Name())
	if _, err = io.Copy(to, from); err == nil {
		err = to.Chmod(0o555)
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(to.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot install to %s: %w", path, err)
	}

	return nil
}

func newServe() *cobra.Command {
	socket := DefaultSocket
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one command for the first client that connects to the socket, and exit",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return executor.Serve(cmd.Context(), socket, &executor.Process{Inherit: true, Cgroup: cgroup, Log: cmd.ErrOrStderr()})
		},
	}
	cmd.Flags().StringVar(&socket, "socket", socket, "Path of the unix socket.")

	return cmd
}

func newPublish() *cobra.Command {
	o := options{socket: DefaultSocket, timeout: 30 * time.Second, historyLimit: decide.DefaultHistoryLimit, scope: string(tenancy.Cluster), job: jobFromEnvironment()}
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Run the synthesis that the environment names",
		Long: `Run the synthesis that the environment names (COMPOSITION_NAMESPACE,
COMPOSITION_NAME, SYNTHESIS_UUID, IMAGE): read its inputs, run its program on
the other side of the socket, write its ResourceSlices and make them current.
If the synthesis was canceled or superseded, write nothing and exit with 0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return publish(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&o.socket, "socket", o.socket, "Path of the unix socket.")
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig of the cluster. Defaults to the ServiceAccount of the pod, or to the kubeconfig that kubectl uses.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", o.timeout, "How long the synthesis may take.")
	cmd.Flags().IntVar(&o.historyLimit, "history-limit", o.historyLimit, "How many syntheses before the previous one a composition keeps.")
	cmd.Flags().StringVar(&o.scope, "delivery-scope", o.scope, "Scope of the composition: cluster or namespace, as in the manager.")
	cmd.Flags().StringSliceVar(&o.inputNamespaces, "input-namespaces", nil, "With --delivery-scope=namespace, the namespaces that inputs may be in, in addition to that of the composition.")

	return cmd
}
