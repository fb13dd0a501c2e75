package controlplane

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// nodeLabel marks the nodes that this package made, and may remove.
const nodeLabel = "arbor-control.dev/played-by"

// syncNodes makes sure that there are n nodes of ours, no more and no fewer.
// Nodes that somebody else made are left alone.
func syncNodes(ctx context.Context, config *rest.Config, n int) error {
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	list, err := client.Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeLabel})
	if err != nil {
		return fmt.Errorf("cannot list nodes: %w", err)
	}

	spare := sets.New[string]()
	for _, node := range list.Items {
		spare.Insert(node.Name)
	}
	for i := range n {
		node := newNode(i + 1)
		if spare.Has(node.Name) {
			spare.Delete(node.Name)

			continue
		}
		if _, err := client.Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create node %s: %w", node.Name, err)
		}
	}
	for name := range spare {
		if err := client.Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot delete node %s: %w", name, err)
		}
	}

	return nil
}

// nodesReady tells when all of our nodes are.
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

func newNode(i int) *corev1.Node {
	name := fmt.Sprintf("arbor-node-%d", i)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
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
