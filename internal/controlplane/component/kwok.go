package component

import (
	"context"
	"flag"
	"fmt"
	"os/signal"
	"syscall"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokclient "sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/utils/client"
)

// runKwok plays the kubelet of every node: nodes get Ready and stay so, pods
// that are bound to one start at once, pods of Jobs complete.
func runKwok(args []string) error {
	var kubeconfig string
	flags := flag.NewFlagSet("kwok", flag.ContinueOnError)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	stages, err := kwokStages()
	if err != nil {
		return err
	}
	conf, err := kwokClients(kubeconfig)
	if err != nil {
		return err
	}
	conf.Clock = clock.RealClock{}
	conf.ID = "arbor"
	conf.ManageAllNodes = true
	conf.CIDR = "10.0.0.1/24"
	conf.NodeIP = "127.0.0.1"
	conf.LocalStages = stages
	conf.PodPlayStageParallelism = 4
	conf.NodePlayStageParallelism = 4
	conf.NodeLeaseDurationSeconds = 40
	conf.NodeLeaseParallelism = 4
	conf.PodsOnNodeSyncParallelism = 4

	controller, err := controllers.NewController(conf)
	if err != nil {
		return fmt.Errorf("cannot make kwok's controllers: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("cannot start kwok's controllers: %w", err)
	}
	<-ctx.Done()

	return nil
}

func kwokStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, raw := range []string{
		nodefast.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](raw)
		if err != nil {
			return nil, fmt.Errorf("cannot read kwok's stage: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}

	return stages, nil
}

func kwokClients(kubeconfig string) (controllers.Config, error) {
	var conf controllers.Config
	clients, err := client.NewClientset("", kubeconfig)
	if err != nil {
		return conf, fmt.Errorf("cannot read kubeconfig: %w", err)
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return conf, fmt.Errorf("cannot read kubeconfig: %w", err)
	}
	if conf.RESTMapper, err = clients.ToRESTMapper(); err != nil {
		return conf, fmt.Errorf("cannot map resources: %w", err)
	}
	if conf.RESTClient, err = rest.RESTClientFor(restConfig); err != nil {
		return conf, fmt.Errorf("cannot make a client: %w", err)
	}
	if conf.DynamicClient, err = dynamic.NewForConfig(restConfig); err != nil {
		return conf, fmt.Errorf("cannot make a client: %w", err)
	}
	if conf.TypedClient, err = kubernetes.NewForConfig(restConfig); err != nil {
		return conf, fmt.Errorf("cannot make a client: %w", err)
	}
	if conf.TypedKwokClient, err = kwokclient.NewForConfig(restConfig); err != nil {
		return conf, fmt.Errorf("cannot make a client: %w", err)
	}
	conf.ImpersonatingDynamicClient = clients.ToImpersonatingDynamicClient()
	conf.ImpersonatingTypedClient = clients.ToImpersonatingTypedClient()

	return conf, nil
}
