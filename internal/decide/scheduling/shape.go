package scheduling

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A shape is what a scheduler reads to decide whether a pod fits.
type shape struct {
	Namespace                 string
	Labels                    map[string]string
	SchedulerName             string
	Priority                  int32
	NodeSelector              map[string]string
	Affinity                  *corev1.Affinity
	Tolerations               []corev1.Toleration
	TopologySpreadConstraints []corev1.TopologySpreadConstraint
	HostNetwork               bool
	Resources                 *corev1.ResourceRequirements
	Overhead                  corev1.ResourceList
	InitContainers            []containerShape
	Containers                []containerShape
}

type containerShape struct {
	Requests corev1.ResourceList
	// RestartPolicy distinguishes an init container that keeps running from one that does not.
	RestartPolicy *corev1.ContainerRestartPolicy
	HostPorts     []corev1.ContainerPort
}

// Shape returns the same text for pods that are the same to a scheduler, and "" for a pod that is
// unlike any other: one with its own claims. A nominated node does not count: it is tried first,
// and does not limit the other nodes.
//
// Labels are part of it only if the pod has affinity or spread terms, which may select
// them, or if labels is true: then other pods have terms that may select them. Pods of
// StatefulSets and indexed Jobs differ in a label.
func Shape(pod *corev1.Pod, labels bool) string {
	spec := &pod.Spec
	named := pod.Labels
	if !labels && len(spec.TopologySpreadConstraints) == 0 && (spec.Affinity == nil || spec.Affinity.PodAffinity == nil && spec.Affinity.PodAntiAffinity == nil) {
		named = nil
	}
	if len(spec.ResourceClaims) > 0 || slices.ContainsFunc(spec.Volumes, matters) {
		return ""
	}
	text, err := json.Marshal(shape{ //nolint:musttag // it is only hashed
		Namespace: pod.Namespace, Labels: named,
		SchedulerName: spec.SchedulerName, Priority: priority(pod),
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, HostNetwork: spec.HostNetwork,
		Resources: spec.Resources, Overhead: spec.Overhead,
		InitContainers: containers(spec.InitContainers), Containers: containers(spec.Containers),
	})
	if err != nil {
		return ""
	}

	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// matters reports whether a volume limits the nodes of a pod. The rest is created on the node, or
// exists on every node.
func matters(v corev1.Volume) bool {
	return v.ConfigMap == nil && v.Secret == nil && v.EmptyDir == nil && v.DownwardAPI == nil &&
		v.Projected == nil && v.HostPath == nil && v.Image == nil
}

func containers(all []corev1.Container) []containerShape {
	shapes := make([]containerShape, len(all))
	for i := range all {
		c := &all[i]
		shapes[i] = containerShape{Requests: c.Resources.Requests, RestartPolicy: c.RestartPolicy}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				shapes[i].HostPorts = append(shapes[i].HostPorts,
					corev1.ContainerPort{HostPort: port.HostPort, HostIP: port.HostIP, Protocol: port.Protocol})
			}
		}
	}

	return shapes
}
