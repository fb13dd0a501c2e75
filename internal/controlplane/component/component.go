package component

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the components' client and queue metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Run runs the named component until it is stopped. The first arguments of kube-apiserver, up to
// "--", are for the etcd in the same process.
func Run(name string, args []string) error {
	switch name {
	case "kube-apiserver":
		i := slices.Index(args, "--")
		if i < 0 {
			return fmt.Errorf("cannot run %s: no -- between etcd's arguments and its own", name)
		}

		return withEtcd(args[:i], func(etcdFlags []string) error {
			return run(apiserver.NewAPIServerCommand(), append(etcdFlags, args[i+1:]...))
		})
	case "kube-controller-manager":
		return run(controllermanager.NewControllerManagerCommand(), args)
	case "kube-scheduler":
		return run(scheduler.NewSchedulerCommand(), args)
	case "kwok":
		return runKwok(args)
	default:
		return fmt.Errorf("unknown component %q", name)
	}
}

func run(cmd *cobra.Command, args []string) error {
	cmd.SetArgs(args)

	return cli.RunNoErrOutput(cmd)
}
