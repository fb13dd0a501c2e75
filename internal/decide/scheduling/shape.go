package scheduling

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A shape is what a scheduler looks at when it asks whether a pod fits.
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
	// RestartPolicy tells an init container that keeps running from one that
	// does not.
	RestartPolicy *corev1.ContainerRestartPolicy
	HostPorts     []corev1.ContainerPort
}

// Shape returns the same text for pods that are the same to a scheduler, and ""
// for a pod that is like no other: one with claims of its own. A nominated node
// does not count: it is tried first, and says nothing about the others.
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
	text, err := json.Marshal(shape{ //nolint:musttag // it is hashed, and nobody reads it
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

// matters says whether a volume has to do with where a pod can be. Those that
// do not are made on the node, or are there on every node.
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
