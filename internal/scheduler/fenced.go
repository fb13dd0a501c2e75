package scheduler

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"

	"github.com/arbor-control/arbor/internal/fence"
)

// fenced replaces the clients of a scheduler with leader election by clients that pass a fence.
// kube-scheduler alone goes on for up to the renew deadline after it was suspended for longer
// than its lease: it would bind pods, and evict victims that the new leader does not need to
// evict.
func fenced(c *schedulerserverconfig.Config) error {
	if c.LeaderElection == nil {
		return nil
	}
	le := c.ComponentConfig.LeaderElection
	f := fence.New(le.ResourceNamespace, le.ResourceName, le.RenewDeadline.Duration)
	c.KubeConfig = f.Around(rest.CopyConfig(c.KubeConfig))
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(c.KubeConfig, "scheduler"))
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	c.Client, c.InformerFactory = client, kubescheduler.NewInformerFactory(client, 0)
	// The lock is renewed through the fence, which learns from the answers whether this replica
	// leads. Its events are sent by another client, as before.
	c.LeaderElection.Lock, err = resourcelock.NewFromKubeconfig(le.ResourceLock, le.ResourceNamespace, le.ResourceName,
		resourcelock.ResourceLockConfig{
			Identity:      c.LeaderElection.Lock.Identity(),
			EventRecorder: c.EventBroadcaster.DeprecatedNewLegacyRecorder(c.ComponentConfig.Profiles[0].SchedulerName),
		}, c.KubeConfig, le.RenewDeadline.Duration)
	if err != nil {
		return fmt.Errorf("cannot make the lock of lease %s/%s: %w", le.ResourceNamespace, le.ResourceName, err)
	}

	return nil
}
