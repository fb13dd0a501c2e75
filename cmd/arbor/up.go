package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/arbor-control/arbor/internal/controlplane"
	"github.com/arbor-control/arbor/internal/manager"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// upOptions are the flags of `arbor up`.
type upOptions struct {
	controlplane.Options

	controllers []string
	synthesis   manager.SynthesisOptions
	delivery    manager.DeliveryOptions
	scheduler   settings.Options
	bare        bool
	metrics     string
}

func newUp(streams genericiooptions.IOStreams) *cobra.Command {
	o := upOptions{controllers: manager.Parts(), synthesis: manager.DefaultSynthesisOptions(), delivery: manager.DefaultDeliveryOptions()}
	// It is the only scheduler here, so it handles all pods.
	o.scheduler = settings.DefaultOptions()
	o.scheduler.Names = []string{"default-scheduler", settings.Name, "kai-scheduler"}
	// There is no kubelet here that could run pods, and the processes belong to the user who starts
	// this.
	o.synthesis.Local = true
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a Kubernetes control plane with Arbor on it",
		Long: `Start a real Kubernetes control plane (etcd, kube-apiserver,
kube-controller-manager) with Arbor and its scheduler on it, in the foreground, on
127.0.0.1. No Docker, no download: everything is in this binary.

The kubeconfig appears when everything is ready, webhooks included. Ctrl-C stops
every process and keeps the data; started again on the same directory, it continues
where it stopped.`,
		Example: `  # Everything in ./.arbor
  arbor up

  # A control plane and nothing else, on a port of your choice
  arbor up --bare --port=6443

  # Elsewhere, with ten nodes, and with four that have eight GPUs each
  arbor up --dir=/tmp/lab --nodes=10
  arbor up --dir=/tmp/gpus --nodes=4 --node-gpus=8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = streams.ErrOut
			ctrl.SetLogger(logr.Discard()) // without a logger, controller-runtime prints a stack trace
			if o.synthesis.Image != "" && !cmd.Flags().Changed("local-synthesizers") {
				o.synthesis.Local = false
			}
			err := o.run(cmd.Context(), streams.Out)
			if errors.Is(err, context.Canceled) {
				return nil // that is what was asked for
			}

			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Dir, "dir", ".arbor", "Directory of everything that is kept: data, keys, logs.")
	fs.BoolVar(&o.TrustDir, "trust-dir", false, "Use --dir although arbor up has not created it for you: the Synthesizers in it run their commands as you. Needed once, for directories from elsewhere or of earlier releases.")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "Where the administrator's kubeconfig appears. (default kubeconfig in --dir)")
	fs.IntVar(&o.Port, "port", 0, "Port of the API server. (default the last one if it is free, or any free one)")
	fs.IntVar(&o.Nodes, "nodes", 3, "Number of nodes that kwok plays, so that pods run without a kubelet.")
	fs.IntVar(&o.NodeGPUs, "node-gpus", 0, "Number of GPUs (nvidia.com/gpu) of each of these nodes.")
	o.scheduler.AddFlags(fs)
	manager.AddControllersFlag(fs, &o.controllers)
	o.synthesis.AddFlags(fs)
	o.delivery.AddFlags(fs)
	fs.BoolVar(&o.bare, "bare", false, "Start the control plane only, without Arbor.")
	fs.StringVar(&o.metrics, "metrics-bind-address", "127.0.0.1:0", "Loopback address of Arbor's metrics; port 0 means any free one.")
	fs.StringVar(&o.AuditLog, "audit-log", "", "File that every request to the API server is written to, as JSON: the user, the request, and whether it was allowed.")
	fs.BoolVar(&o.Kubelets, "kubelets", false, "Prepare the API server for kubelets and the pods that they run. For tests.")
	_ = fs.MarkHidden("kubelets")
	fs.BoolVar(&o.NoFsync, "unsafe-no-fsync", false, "Do not wait for the disk; a power cut then loses everything. For tests.")

	return cmd
}

func (o *upOptions) run(ctx context.Context, out io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	fmt.Fprintf(o.Progress, "Starting Kubernetes %s\n", kubernetesVersion())
	if !o.bare {
		o.OwnScheduler = true
		o.Programs = func(c controlplane.Cluster) ([]controlplane.Program, error) {
			if slices.Contains(o.controllers, subnetsPart) {
				if err := protectSubnets(ctx, c); err != nil {
					return nil, err
				}
			}

			if o.runsLocally() {
				announce(ctx, o.Progress, c)
			}

			return o.programs(c)
		}
	}
	o.Ready = func(r controlplane.Report) { o.welcome(ctx, out, r) }

	return controlplane.Up(ctx, o.Options)
}

// runsLocally reports whether commands of Synthesizers run on this machine.
func (o *upOptions) runsLocally() bool {
	return o.synthesis.Local && slices.Contains(o.controllers, "synthesis")
}

func (o *upOptions) validate() error {
	if err := manager.ValidateControllers(o.controllers); err != nil {
		return err
	}
	if err := cmp.Or(o.synthesis.Validate(), o.delivery.Validate(), o.scheduler.Validate()); err != nil {
		return err
	}
	if o.Nodes < 0 || o.Nodes > 10000 {
		return fmt.Errorf("--nodes %d: it must be between 0 and 10000", o.Nodes)
	}
	if o.NodeGPUs < 0 || o.NodeGPUs > 1000 {
		return fmt.Errorf("--node-gpus %d: it must be between 0 and 1000", o.NodeGPUs)
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("--port %d: it must be between 1 and 65535, or 0 for a free one", o.Port)
	}

	return o.chooseMetrics()
}

// chooseMetrics checks where metrics are served, and takes a free port if none is
// named.
func (o *upOptions) chooseMetrics() error {
	host, port, err := net.SplitHostPort(o.metrics)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: it must be like 127.0.0.1:8080", o.metrics)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--metrics-bind-address %q: here metrics are served without TLS, so on a loopback address only", o.metrics)
	}
	if port == "0" {
		ports, err := controlplane.FreePorts(1)
		if err != nil {
			return err
		}
		o.metrics = net.JoinHostPort(host, strconv.Itoa(ports[0]))
	}

	return nil
}

// programs are Arbor's manager and its scheduler. They run without leader election, so that a
// second one can be started next to them.
func (o *upOptions) programs(c controlplane.Cluster) ([]controlplane.Program, error) {
	ports, err := controlplane.FreePorts(3)
	if err != nil {
		return nil, err
	}
	health := fmt.Sprintf("127.0.0.1:%d", ports[1])
	args := []string{
		"manager",
		"--kubeconfig=" + c.Kubeconfig,
		"--leader-elect=false",
		"--metrics-secure=false",
		"--metrics-bind-address=" + o.metrics,
		"--health-probe-bind-address=" + health,
		fmt.Sprintf("--webhook-port=%d", ports[0]),
	}
	args = slices.Concat(args, o.synthesis.Args(), o.delivery.Args())
	for _, name := range o.controllers {
		args = append(args, "--controllers="+name)
	}

	return []controlplane.Program{{
		Name: "arbor-manager",
		Args: args,
		Ready: func(ctx context.Context) error {
			if err := controlplane.Get(ctx, &http.Client{Timeout: 5 * time.Second}, "http://"+health+"/readyz"); err != nil {
				return err
			}

			return manager.Probe(ctx, c.Config, o.controllers)
		},
	}, o.schedule(c, ports[2])}, nil
}

// schedule is Arbor's scheduler in the place of that of Kubernetes.
func (o *upOptions) schedule(c controlplane.Cluster, port int) controlplane.Program {
	return controlplane.Program{
		Name: settings.Name,
		Args: append([]string{
			controlplane.Command, settings.Name,
			"--kubeconfig=" + c.Kubeconfig,
			"--authentication-kubeconfig=" + c.Kubeconfig,
			"--authorization-kubeconfig=" + c.Kubeconfig,
			"--bind-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(port),
			"--kube-api-qps=500", "--kube-api-burst=1000",
			"--leader-elect=false",
		}, o.scheduler.Args()...),
		Ready: func(ctx context.Context) error {
			return controlplane.Get(ctx, insecure(), fmt.Sprintf("https://127.0.0.1:%d/readyz", port))
		},
	}
}

// insecure asks a child on the loopback interface that has made its own
// certificate, in its memory, whether it is ready.
func insecure() *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing but "ready" is read or sent
		DisableKeepAlives: true,
	}}
}

// welcome prints what runs, and what to do next.
func (o *upOptions) welcome(ctx context.Context, out io.Writer, r controlplane.Report) {
	fmt.Fprintf(out, "\nKubernetes %s is up after %.1f s: %s\n\n", kubernetesVersion(), r.Took.Seconds(), r.Server)
	for _, c := range r.Children {
		fmt.Fprintf(out, "  %-24s process %d\n", c.Name, c.PID)
	}
	fmt.Fprintf(out, "  %-24s %s\n", "data and logs", r.Dir)
	if o.bare {
		fmt.Fprintf(out, "\nTry, in another terminal:\n\n  export KUBECONFIG=%s\n  kubectl get nodes\n", r.Kubeconfig)
		if manager.Registered(ctx, r.Kubeconfig) {
			fmt.Fprint(out, "\nArbor ran on this data before. Its webhooks are still registered, so requests for their kinds are\nrejected until a manager runs, or: kubectl delete validatingwebhookconfiguration arbor\n")
		}
	} else {
		fmt.Fprintf(out, "  %-24s http://%s/metrics\n", "metrics", o.metrics)
		fmt.Fprintf(out, `
Try, in another terminal:

  export KUBECONFIG=%s
  kubectl apply -f examples/podgroup-hierarchy.yaml     # accepted
  kubectl apply -f examples/podgroup-mixed-case.yaml    # refused, with the reason
  bin/arbor groups                                      # the tree
  bin/arbor groups fit -f examples/gang-training.yaml   # would it fit, and where?
  kubectl apply -f examples/subnet-pool.yaml            # a pool of addresses, and claims
  bin/arbor pools                                       # who has what
  kubectl apply -f examples/composition.yaml            # a program that makes manifests
  bin/arbor compositions                                # what came of them
`, r.Kubeconfig)
		if o.runsLocally() {
			fmt.Fprint(out, "\nPrograms of Synthesizers run as processes of yours, on this machine; their images are\nignored. --local-synthesizers=false has none run.\n")
		}
	}
	fmt.Fprint(out, "\nNo kubectl? bin/arbor kubectl is one. Ctrl-C stops everything and keeps the data.\n")
}
