package controlplane

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// nodeLabel marks the nodes that this package made, and may remove.
const nodeLabel = "arbor-control.dev/played-by"

// gpu is the resource by which people ask for GPUs.
const gpu corev1.ResourceName = "nvidia.com/gpu"

// syncNodes makes sure that there are exactly n nodes of ours with so many GPUs each. Other nodes
// are not changed.
func syncNodes(ctx context.Context, config *rest.Config, n, gpus int) error {
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	list, err := client.Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeLabel})
	if err != nil {
		return fmt.Errorf("cannot list nodes: %w", err)
	}

	spare := map[string]corev1.Node{}
	for _, node := range list.Items {
		spare[node.Name] = node
	}
	for i := range n {
		node := newNode(i+1, gpus)
		if err := syncNode(ctx, client, spare, node); err != nil {
			return err
		}
		delete(spare, node.Name)
	}
	for name := range spare {
		if err := client.Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot delete node %s: %w", name, err)
		}
	}

	return nil
}

// syncNode makes a node, or gives one of an earlier run the GPUs that are asked
// for now.
func syncNode(ctx context.Context, client corev1client.CoreV1Interface, there map[string]corev1.Node, want *corev1.Node) error {
	has, ok := there[want.Name]
	if !ok {
		if _, err := client.Nodes().Create(ctx, want, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create node %s: %w", want.Name, err)
		}

		return nil
	}
	now, then := want.Status.Capacity[gpu], has.Status.Capacity[gpu]
	if now.Equal(then) {
		return nil
	}
	has.Status.Capacity, has.Status.Allocatable = want.Status.Capacity, want.Status.Allocatable
	if _, err := client.Nodes().UpdateStatus(ctx, &has, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot give node %s its GPUs: %w", has.Name, err)
	}

	return nil
}

// nodesReady reports when all of our nodes are ready.
func nodesReady(config *rest.Config) func(context.Context) error {
	return func(ctx context.Context) error {
		client, err := corev1client.NewForConfig(config)
		if err != nil {
			return err
		}
		list, err := client.Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeLabel})
		if err != nil {
			return err
		}
		for _, node := range list.Items {
			if !ready(node) {
				return fmt.Errorf("node %s is not ready", node.Name)
			}
		}

		return nil
	}
}

func ready(node corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}

	return false
}

func newNode(i, gpus int) *corev1.Node {
	name := fmt.Sprintf("arbor-node-%d", i)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	if gpus > 0 {
		resources[gpu] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}

	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				nodeLabel:              kwok,
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}
